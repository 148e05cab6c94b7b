package eval

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"tare/lab"
	"tare/stats"
)

// Poster is the poster's table, RTTs by method at rest, and its time series, RTTs beside 10 Mbit/s of traffic.
type Poster struct {
	RepliesPerRun int            `json:"replies_per_run"`
	Methods       []PosterMethod `json:"methods"`
	Series        []SeriesPoint  `json:"series"`
	SeriesMbits   float64        `json:"series_mbits"`
}

// PosterMethod is a row of the table: of all replies of a round the mean, the mode and the deviation, and of those the median
// over rounds.
type PosterMethod struct {
	Method      string         `json:"method"`
	MeanUs      stats.Interval `json:"mean_us"`
	ModeUs      stats.Interval `json:"mode_us"`
	DeviationUs stats.Interval `json:"deviation_us"`
	RoundsMean  []float64      `json:"rounds_mean_us"`
	RoundsMode  []float64      `json:"rounds_mode_us"`
	RoundsDev   []float64      `json:"rounds_deviation_us"`
}

// SeriesPoint is one reply of the time series, in us.
type SeriesPoint struct {
	Second      float64 `json:"second"`
	RawUs       float64 `json:"raw_us"`
	CorrectedUs float64 `json:"corrected_us"`
	TapUs       float64 `json:"tap_us"`
}

// posterRun is one ping and the rows that it gives.
type posterRun struct {
	at        place
	path      string
	extra     []string
	raw, tap  string // rows; empty: none
	corrected string
}

// The poster's own ping takes its times in userspace (ping -U).
func posterRuns() []posterRun {
	native, contained := places()
	return []posterRun{
		{at: native, path: "wire", raw: "native, original", tap: "native, at the NIC"},
		{at: native, path: "wire", extra: []string{"-U"}, raw: "native, no SO_TIMESTAMP"},
		{at: contained, path: "bare-metal", extra: []string{"-U"}, raw: "container, raw", corrected: "container, as bare-metal"},
		{at: contained, path: "inner-dev", extra: []string{"-U"}, corrected: "container, adjusted by inner-dev"},
		{at: contained, path: "max-dev", extra: []string{"-U"}, corrected: "container, adjusted by max-dev"},
		{at: contained, path: "syscalls", extra: []string{"-U"}, corrected: "container, adjusted by syscalls"},
		{at: contained, path: "wire", extra: []string{"-U"}, corrected: "container, as wire", tap: "container, at the NIC"},
	}
}

// posterRows is the order of the table.
var posterRows = []string{
	"native, original", "native, at the NIC", "native, no SO_TIMESTAMP", "container, raw", "container, at the NIC",
	"container, adjusted by inner-dev", "container, adjusted by max-dev", "container, adjusted by syscalls",
	"container, as bare-metal", "container, as wire",
}

const (
	posterInterval = "0.001"
	posterReplies  = 400
	// modeBinUs is how coarse the mode is: ping prints whole us, corrections move them by fractions.
	modeBinUs    = 1.0
	seriesMbits  = 10
	seriesTime   = 10 * time.Second
	seriesSpaced = "0.01"
)

func runPoster(ctx context.Context, options Options) (*Poster, error) {
	bed, err := newBed(ctx, PartPoster, 2)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	result := &Poster{RepliesPerRun: posterReplies, SeriesMbits: seriesMbits}
	if options.tiny {
		result.RepliesPerRun = tinyReplies
	}
	rows := map[string]*PosterMethod{}
	for _, name := range posterRows {
		rows[name] = &PosterMethod{Method: name}
	}
	runs, cpus := posterRuns(), allowedCPUs()
	order := stats.NewOrder(len(runs), options.Seed)
	pace := options.pace(4, 20, 12*time.Second, 50*time.Second)
	for pace.next() {
		cpu := cpus[pace.done%len(cpus)]
		for _, i := range order.Next() {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			options.progress("poster: round %d of %d", pace.done, pace.rounds)
			run := runs[i]
			argv := append([]string{"ping", "-n"}, run.extra...)
			argv = append(argv, "-i", posterInterval, "-c", strconv.Itoa(result.RepliesPerRun), "-w", "30", "-s", measuredPayload, bed.remote())
			measured, err := bed.byPath(ctx, run.path, run.at, pinned(cpu, argv))
			if err != nil {
				return nil, fmt.Errorf("%s by %s: %w", run.at.name, run.path, err)
			}
			rows[run.raw].add(measured.Raw)
			rows[run.corrected].add(measured.Corrected)
			rows[run.tap].add(measured.Tap)
		}
	}
	for _, name := range posterRows {
		result.Methods = append(result.Methods, rows[name].result(options.Seed))
	}
	options.progress("poster: time series beside %d Mbit/s", seriesMbits)
	result.Series, err = bed.series(ctx, options)
	return result, err
}

// byPath is refereed with an engine of its own.
func (b *bed) byPath(ctx context.Context, path string, at place, argv []string) (refereed, error) {
	engine, err := b.openPath(path)
	if err != nil {
		return refereed{}, err
	}
	defer engine.Close()
	return b.refereed(ctx, engine, at, argv, measuredIPBytes)
}

// add takes a round's RTTs; a row that nobody asks for is nil.
func (m *PosterMethod) add(rtts []float64) {
	if m == nil {
		return
	}
	mean := stats.Mean(rtts)
	sum := 0.0
	for _, v := range rtts {
		sum += (v - mean) * (v - mean)
	}
	deviation := math.Sqrt(sum / float64(max(len(rtts)-1, 1)))
	ns := func(us float64) float64 { return math.Round(us*1e3) / 1e3 }
	m.RoundsMean, m.RoundsMode, m.RoundsDev = append(m.RoundsMean, ns(mean)), append(m.RoundsMode, mode(rtts)), append(m.RoundsDev, ns(deviation))
}

func (m *PosterMethod) result(seed uint64) PosterMethod {
	over := func(rounds []float64) stats.Interval { return rounded(stats.BootstrapMedian(rounds, seed)) }
	m.MeanUs, m.ModeUs, m.DeviationUs = over(m.RoundsMean), over(m.RoundsMode), over(m.RoundsDev)
	return *m
}

// mode is the middle of the fullest bin.
func mode(values []float64) float64 {
	counts := map[int]int{}
	for _, v := range values {
		counts[int(math.Floor(v/modeBinUs+0.5))]++
	}
	best := 0
	for _, bin := range slices.Sorted(maps.Keys(counts)) {
		if counts[bin] > counts[best] {
			best = bin
		}
	}
	return float64(best) * modeBinUs
}

// series pings every 10 ms while another container sends 10 Mbit/s through the same bridge and NIC.
func (b *bed) series(ctx context.Context, options Options) ([]SeriesPoint, error) {
	seconds := seriesTime
	if options.Quick {
		seconds = 4 * time.Second
	}
	count := int(seconds / (10 * time.Millisecond))
	if options.tiny {
		count = tinyReplies
	}
	traffic, err := b.lab.StartBackground(ctx, lab.Background{UDPMbits: seriesMbits, For: seconds + toolTime})
	if err != nil {
		return nil, err
	}
	defer func() { _ = traffic.Stop() }()
	_, contained := places()
	argv := []string{"ping", "-n", "-U", "-i", seriesSpaced, "-c", strconv.Itoa(count), "-w", "30", "-s", measuredPayload, b.remote()}
	run, err := b.byPath(ctx, "wire", contained, argv)
	if err != nil {
		return nil, fmt.Errorf("the time series: %w", err)
	}
	var points []SeriesPoint
	for i := range run.Tap {
		points = append(points, SeriesPoint{Second: float64(i) / 100, RawUs: run.Raw[i], CorrectedUs: math.Round(run.Corrected[i]*1e3) / 1e3, TapUs: run.Tap[i]})
	}
	return points, nil
}
