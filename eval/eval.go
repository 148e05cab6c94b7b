// Package eval measures how well tare measures: accuracy against the host's own tools and against a tap on the NIC,
// false matches, what watching a container costs its packets, and how fast and small tare itself is.
//
// Each part makes a lab of its own (package lab), so nothing outside of it is measured or loaded, and takes it down
// again whatever happens. Arms are interleaved in shuffled rounds, and a round is one sample (package stats). A target
// that is missed is a result, not an error.
package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"tare/stats"
)

// Part is one of the evaluations.
type Part string

// The parts.
const (
	PartPayload      Part = "payload"
	PartLoad         Part = "load"
	PartAccuracy     Part = "accuracy"
	PartPerturbation Part = "perturbation"
	PartPoster       Part = "poster"
	PartFalseMatches Part = "falsematches"
	PartLifecycle    Part = "lifecycle"
)

// Parts lists all, in the order in which they run.
var Parts = []Part{PartPayload, PartLoad, PartAccuracy, PartPerturbation, PartPoster, PartFalseMatches, PartLifecycle}

// Options say what to do and how much of it.
type Options struct {
	Parts  []Part
	Quick  bool   // fewer rounds, so that all parts together end within 3 minutes
	Rounds int    // 0: the part's own number
	Seed   uint64 // of shuffling and resampling
	// Floods are the numbers of flooding containers beside the measured one, for the load and the accuracy; nil: the part's own.
	Floods []int
	// Packets that must be measured before false matches are counted; 0: 100,000.
	Packets int
	// Program is the tare executable that the lifecycle starts.
	Program string
	// Command is how a person asked for this, for the record.
	Command string
	// tiny makes runs too short to measure anything, for tests of everything else.
	tiny bool
	// Progress gets a line that is overwritten again and again; nil: nobody watches.
	Progress io.Writer
}

const tinyReplies = 20

// Report is the result of one or more parts. Its JSON form is the raw output: every round of every arm.
type Report struct {
	Schema       string        `json:"schema"`
	Command      string        `json:"command"`
	Started      time.Time     `json:"started"`
	Seconds      float64       `json:"seconds"`
	Seed         uint64        `json:"seed"`
	Quick        bool          `json:"quick"`
	Machine      Machine       `json:"machine"`
	Payload      *Payload      `json:"payload,omitempty"`
	Load         *Load         `json:"load,omitempty"`
	Accuracy     *Accuracy     `json:"accuracy,omitempty"`
	Perturbation *Perturbation `json:"perturbation,omitempty"`
	Poster       *Poster       `json:"poster,omitempty"`
	FalseMatches *FalseMatches `json:"false_matches,omitempty"`
	Lifecycle    *Lifecycle    `json:"lifecycle,omitempty"`
	Targets      []Target      `json:"targets"`
}

// Schema names the shape of a Report's JSON form.
const Schema = "tare-eval/1"

// Target is a figure that the design promises.
type Target struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Bound float64 `json:"bound"`
	Unit  string  `json:"unit"`
	// AtLeast: the value must not be below the bound; else, its absolute value not above.
	AtLeast bool `json:"at_least,omitempty"`
	Met     bool `json:"met"`
}

func target(name string, value, bound float64, unit string) Target {
	return Target{Name: name, Value: value, Bound: bound, Unit: unit, Met: math.Abs(value) <= bound}
}

func targetAtLeast(name string, value, bound float64, unit string) Target {
	return Target{Name: name, Value: value, Bound: bound, Unit: unit, AtLeast: true, Met: value >= bound}
}

// Run does the parts one after the other.
func Run(ctx context.Context, options Options) (*Report, error) {
	removeStale()
	report := &Report{
		Schema: Schema, Command: options.Command, Started: time.Now().UTC().Truncate(time.Second),
		Seed: options.Seed, Quick: options.Quick, Targets: []Target{},
	}
	began, ticks := time.Now(), readTicks()
	for _, part := range options.Parts {
		var err error
		switch part {
		case PartPayload:
			report.Payload, err = runPayload(ctx, options)
		case PartLoad:
			report.Load, err = runLoad(ctx, options)
		case PartPoster:
			report.Poster, err = runPoster(ctx, options)
		case PartAccuracy:
			report.Accuracy, err = runAccuracy(ctx, options)
		case PartFalseMatches:
			report.FalseMatches, err = runFalseMatches(ctx, options)
		case PartPerturbation:
			report.Perturbation, err = runPerturbation(ctx, options)
		case PartLifecycle:
			report.Lifecycle, err = runLifecycle(ctx, options)
		default:
			err = fmt.Errorf("no such part")
		}
		options.progress("")
		if err != nil {
			return nil, fmt.Errorf("evaluating %s: %w", part, err)
		}
	}
	report.Seconds = math.Round(time.Since(began).Seconds()*10) / 10
	report.Machine = describeMachine(ctx, ticks)
	report.Targets = report.targets()
	return report, nil
}

func (r *Report) targets() []Target {
	targets := []Target{}
	if r.Load != nil {
		targets = append(targets, r.Load.targets()...)
	}
	if r.Accuracy != nil {
		targets = append(targets, r.Accuracy.targets()...)
	}
	if r.FalseMatches != nil {
		targets = append(targets, r.FalseMatches.targets()...)
	}
	if r.Perturbation != nil {
		targets = append(targets, r.Perturbation.targets()...)
	}
	if r.Lifecycle != nil {
		targets = append(targets, r.Lifecycle.targets()...)
	}
	return targets
}

// progress shows what is going on; an empty text wipes it away.
func (o Options) progress(format string, args ...any) {
	if o.Progress != nil {
		fmt.Fprintf(o.Progress, "\r\x1b[K"+format, args...)
	}
}

// pace bounds a part's rounds by number and by time, whichever is reached first.
type pace struct {
	rounds int
	until  time.Time
	began  time.Time
	done   int
}

func (o Options) pace(quickRounds, fullRounds int, quickTime, fullTime time.Duration) *pace {
	p := &pace{rounds: fullRounds, until: time.Now().Add(fullTime)}
	if o.Quick {
		p.rounds, p.until = quickRounds, time.Now().Add(quickTime)
	}
	if o.Rounds > 0 {
		p.rounds = o.Rounds
	}
	return p
}

// next says whether there is another round. The first one always is; a later one only if it should end in time.
func (p *pace) next() bool {
	now := time.Now()
	if p.done == 0 {
		p.began = now
	} else if p.done >= p.rounds || now.Add(now.Sub(p.began)/time.Duration(p.done)).After(p.until) {
		return false
	}
	p.done++
	return true
}

// Sample is one run of one arm: times in us.
type Sample struct {
	N      int     `json:"n"`
	MeanUs float64 `json:"mean_us"`
	P50Us  float64 `json:"p50_us"`
	P90Us  float64 `json:"p90_us"`
	P99Us  float64 `json:"p99_us"`
	MinUs  float64 `json:"min_us"`
	MaxUs  float64 `json:"max_us"`
}

// sampleOf describes values; resolution is that of the tool that printed them.
func sampleOf(values []float64, resolutionUs float64) Sample {
	if len(values) == 0 {
		return Sample{}
	}
	ns := func(us float64) float64 { return math.Round(us*1e3) / 1e3 }
	return Sample{
		N: len(values), MeanUs: ns(stats.Mean(values)), P50Us: ns(stats.MedianOfRounded(values, resolutionUs)),
		P90Us: ns(stats.Quantile(values, .9)), P99Us: ns(stats.Quantile(values, .99)),
		MinUs: ns(stats.Quantile(values, 0)), MaxUs: ns(stats.Quantile(values, 1)),
	}
}

// column takes one figure out of each round's sample.
func column(samples []Sample, of func(Sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return values
}

func meanOf(s Sample) float64   { return s.MeanUs }
func medianOf(s Sample) float64 { return s.P50Us }

// difference is the median over rounds of one figure of a less that of b.
func difference(a, b []Sample, of func(Sample) float64, seed uint64) stats.Interval {
	return rounded(stats.BootstrapMedian(stats.Differences(column(a, of), column(b, of)), seed))
}

// rounded drops digits below the ns, which nobody measured.
func rounded(i stats.Interval) stats.Interval {
	for _, v := range []*float64{&i.Estimate, &i.Low, &i.High} {
		*v = math.Round(*v*1e4) / 1e4
	}
	return i
}

// Missed is how many targets are not met.
func (r *Report) Missed() int {
	missed := 0
	for _, t := range r.Targets {
		if !t.Met {
			missed++
		}
	}
	return missed
}
