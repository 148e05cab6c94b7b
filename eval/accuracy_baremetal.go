package eval

import (
	"context"
	"strconv"

	"tare/lab"
	"tare/stats"
)

// BareMetal compares what ping in a container prints, corrected, with what it prints on the host itself.
type BareMetal struct {
	// Medians over rounds of each round's median.
	NativeUs    stats.Interval `json:"native_us"`
	ContainerUs stats.Interval `json:"container_us"` // as ping printed it
	CorrectedUs stats.Interval `json:"corrected_us"`
	// Medians over rounds of the difference to the native run of the same round.
	RawErrorUs   stats.Interval `json:"raw_error_us"` // container less native: what there is to correct
	ErrorUs      stats.Interval `json:"error_us"`     // corrected less native, of medians
	MeanErrorUs  stats.Interval `json:"mean_error_us"`
	NoiseUs      stats.Interval `json:"noise_us"` // a second native run less the first: what no difference resolves
	Coverage     Coverage       `json:"coverage"`
	RoundsNative []Sample       `json:"rounds_native"`
	RoundsAgain  []Sample       `json:"rounds_native_again"`
	RoundsRaw    []Sample       `json:"rounds_container"`
	RoundsNet    []Sample       `json:"rounds_corrected"`
}

// bareMetalRuns collects one entry per block: a native run, a run in the container, another native run, one right after the
// other. A block is the sample of this comparison, and there are several per round, because its difference is of runs and
// not of replies: it needs more of them than the tap does, and its runs must be close together.
type bareMetalRuns struct {
	native, again, raw, net []Sample
	coverage                Coverage
	order                   *stats.Order
	effort                  effort
	cpus                    []int
}

const (
	// printedUs is the resolution of the RTTs that ping, fping and busybox print below 1 ms.
	printedUs = 1.0
	// A length that the floods beside it do not have; see openTap.
	measuredPayload = "64"
	measuredIPBytes = 20 + 8 + 64
)

// effort is how much each run of a tool does.
type effort struct {
	interval string // between ping's requests, in s; root may have any
	replies  int    // of ping
	spaced   int    // of the tools that cannot flood
	blocks   int    // of the comparison with bare metal, in each round
}

// At rest a request every ms, so that each meets cooled caches, as a user's does. Beside 16 floods on two CPUs whoever sleeps
// gets to run every 28 ms: there ping floods, too, as it does in the paper (section 4.3).
var (
	effortAtRest    = effort{interval: "0.001", replies: 300, spaced: 300, blocks: 3}
	effortUnderLoad = effort{interval: "0", replies: 1000, spaced: 100, blocks: 3}
)

func (o Options) effort(floods int) effort {
	e := effortAtRest
	if floods > 0 {
		e = effortUnderLoad
	}
	if o.tiny {
		e.replies, e.spaced, e.blocks = tinyReplies, tinyReplies, 1
	}
	return e
}

// pingArgv has -w to end it should replies fail to come.
func (b *bed) pingArgv(e effort, more ...string) []string {
	argv := append([]string{"ping", "-n"}, more...)
	return append(argv, "-i", e.interval, "-c", strconv.Itoa(e.replies), "-w", "50", "-s", measuredPayload, b.remote())
}

// block measures once. All its runs are on one CPU, the next block's on the next: where ping runs changes its RTT by more
// than what is compared, in the container as on the host.
func (b *bed) block(ctx context.Context, runs *bareMetalRuns) error {
	cpu := runs.cpus[len(runs.native)%len(runs.cpus)]
	argv := append([]string{"taskset", "-c", strconv.Itoa(cpu)}, b.pingArgv(runs.effort)...)
	for _, arm := range runs.order.Next() {
		var err error
		switch arm {
		case 0:
			err = b.native(ctx, argv, &runs.native)
		case 1:
			err = b.contained(ctx, argv, runs)
		case 2:
			err = b.native(ctx, argv, &runs.again)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// native runs ping on the lab's host, with nothing attached.
func (b *bed) native(ctx context.Context, argv []string, into *[]Sample) error {
	rtts, err := rttsOf(ctx, b.lab, lab.Host, argv, anyCPU)
	if err == nil {
		*into = append(*into, sampleOf(rtts, printedUs))
	}
	return err
}

func (b *bed) contained(ctx context.Context, argv []string, runs *bareMetalRuns) error {
	run, err := b.runCorrected(ctx, "bare-metal", argv)
	if err != nil {
		return err
	}
	var raw, net []float64
	for _, reply := range run.replies {
		raw = append(raw, reply.RTTUs)
		if reply.CorrectedUs != nil {
			net = append(net, *reply.CorrectedUs)
		}
	}
	runs.coverage.add(run)
	runs.raw = append(runs.raw, sampleOf(raw, printedUs))
	runs.net = append(runs.net, sampleOf(net, 0)) // less a time in ns, whole us are whole no more
	return nil
}

func (r *bareMetalRuns) result(seed uint64) BareMetal {
	median := func(samples []Sample) stats.Interval {
		return rounded(stats.BootstrapMedian(column(samples, medianOf), seed))
	}
	return BareMetal{
		NativeUs: median(r.native), ContainerUs: median(r.raw), CorrectedUs: median(r.net),
		RawErrorUs:  difference(r.raw, r.native, medianOf, seed),
		ErrorUs:     difference(r.net, r.native, medianOf, seed),
		MeanErrorUs: difference(r.net, r.native, meanOf, seed),
		NoiseUs:     difference(r.again, r.native, medianOf, seed),
		Coverage:    r.coverage, RoundsNative: r.native, RoundsAgain: r.again, RoundsRaw: r.raw, RoundsNet: r.net,
	}
}
