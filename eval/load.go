package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"tare/lab"
	"tare/stats"
)

// Load says how far RTTs are from those at the NIC, and how many of them are corrected, beside more and more flooding
// containers: the paper's Fig. 3 and 4.
type Load struct {
	RepliesPerRun int         `json:"replies_per_run"`
	PayloadBytes  int         `json:"payload_bytes"`
	Levels        []LoadLevel `json:"levels"`
}

// LoadLevel is one number of floods.
type LoadLevel struct {
	Floods int       `json:"floods"`
	Rounds int       `json:"rounds"`
	Arms   []LoadArm `json:"arms"`
}

// LoadArm is ping in one place. Errors are its RTTs less those that the tap on the NIC saw of the same packets; of each
// round the mean, as in the paper, and the median.
type LoadArm struct {
	Arm              string         `json:"arm"`
	RawErrorUs       stats.Interval `json:"raw_error_us"`
	ErrorUs          stats.Interval `json:"error_us"` // corrected, as wire
	RawMedianErrorUs stats.Interval `json:"raw_median_error_us"`
	MedianErrorUs    stats.Interval `json:"median_error_us"`
	Coverage         Coverage       `json:"coverage"`
	RoundsRaw        []Sample       `json:"rounds_raw_error"`
	Rounds           []Sample       `json:"rounds_error"`
}

// The arms of one level. The paper's own ping takes its times in userspace, as ping -U does; its reference is the
// unmodified one, which takes the reply's from the kernel.
const (
	armReference = "native, kernel's receive stamp"
	armNative    = "native"
	armContainer = "container"
)

var (
	loadFloods      = []int{0, 1, 2, 4, 8, 16, 24, 32}
	loadFloodsQuick = []int{0, 8, 32}
)

const loadPayload = 1472 // the paper's (section 4.3)

func runLoad(ctx context.Context, options Options) (*Load, error) {
	floods := loadFloods
	if options.Quick {
		floods = loadFloodsQuick
	}
	if options.Floods != nil {
		floods = options.Floods
	}
	bed, err := newBed(ctx, PartLoad, 1+slices.Max(append([]int{1}, floods...)))
	if err != nil {
		return nil, err
	}
	defer bed.close()
	result := &Load{RepliesPerRun: options.floodReplies(), PayloadBytes: loadPayload}
	for i, n := range floods {
		share := time.Duration(len(floods))
		level, err := bed.loadLevel(ctx, options, n, options.pace(4, 12, 30*time.Second/share, 100*time.Second/share), options.Seed+uint64(i))
		if err != nil {
			return nil, fmt.Errorf("with %d floods: %w", n, err)
		}
		result.Levels = append(result.Levels, *level)
	}
	return result, nil
}

func (b *bed) loadLevel(ctx context.Context, options Options, floods int, pace *pace, seed uint64) (_ *LoadLevel, err error) {
	engine, err := b.openPath("wire")
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	stop, err := b.background(ctx, floods, time.Until(pace.until)+2*toolTime)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := stop(); stopErr != nil && err == nil {
			err = fmt.Errorf("the load: %w", stopErr)
		}
	}()
	native, contained := places()
	type arm struct {
		name  string
		at    place
		extra []string
		raw   []Sample
		net   []Sample
		cover Coverage
	}
	arms := []*arm{{name: armReference, at: native}, {name: armNative, at: native, extra: []string{"-U"}}, {name: armContainer, at: contained, extra: []string{"-U"}}}
	order, cpus := stats.NewOrder(len(arms), seed), allowedCPUs()
	replies := options.floodReplies()
	for pace.next() {
		cpu := cpus[pace.done%len(cpus)]
		for _, i := range order.Next() {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			a := arms[i]
			options.progress("load, %d floods: round %d of %d, %s", floods, pace.done, pace.rounds, a.name)
			argv := append([]string{"ping", "-n"}, a.extra...)
			argv = append(argv, "-i", "0", "-c", strconv.Itoa(replies), "-w", "30", "-s", strconv.Itoa(loadPayload), b.remote())
			run, err := b.refereed(ctx, engine, a.at, pinned(cpu, argv), 28+loadPayload)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
			a.raw, a.net = append(a.raw, sampleOf(run.rawErrors(), 0)), append(a.net, sampleOf(run.errors(), 0))
			a.cover.Received += run.Received
			a.cover.Matched += run.Matched
		}
	}
	level := &LoadLevel{Floods: floods, Rounds: pace.done}
	for _, a := range arms {
		a.cover.Share = float64(a.cover.Matched) / float64(max(a.cover.Received, 1))
		over := func(samples []Sample, of func(Sample) float64) stats.Interval {
			return rounded(stats.BootstrapMedian(column(samples, of), seed))
		}
		level.Arms = append(level.Arms, LoadArm{
			Arm: a.name, RawErrorUs: over(a.raw, meanOf), ErrorUs: over(a.net, meanOf),
			RawMedianErrorUs: over(a.raw, medianOf), MedianErrorUs: over(a.net, medianOf),
			Coverage: a.cover, RoundsRaw: a.raw, Rounds: a.net,
		})
	}
	return level, nil
}

// background starts so many floods; stop ends them. They are bounded by themselves, too.
func (b *bed) background(ctx context.Context, floods int, bound time.Duration) (stop func() error, err error) {
	if floods == 0 {
		return func() error { return nil }, nil
	}
	load, err := b.lab.StartBackground(ctx, lab.Background{Floods: floods, For: bound})
	if err != nil {
		return nil, err
	}
	time.Sleep(300 * time.Millisecond) // ping floods from its first reply on
	return load.Stop, nil
}

func (l *LoadLevel) arm(name string) *LoadArm {
	for i := range l.Arms {
		if l.Arms[i].Arm == name {
			return &l.Arms[i]
		}
	}
	return &LoadArm{}
}

// What the design promises of the container's corrected RTTs: medians, at rest and beside any number of floods.
const (
	loadRestErrorUs = 1.5
	loadErrorUs     = 5.0
)

func (l *Load) targets() []Target {
	var targets []Target
	for i := range l.Levels {
		level := &l.Levels[i]
		a, where, bound := level.arm(armContainer), "at rest", loadRestErrorUs
		if level.Floods > 0 {
			where, bound = fmt.Sprintf("with %d floods", level.Floods), loadErrorUs
		}
		targets = append(targets,
			target("container's corrected RTT less the tap's, "+where, a.MedianErrorUs.Estimate, bound, "us"),
			targetAtLeast("container's coverage, "+where, math.Min(percent(a.Coverage.Share), 100), percent(coverageShare), "%"))
	}
	return targets
}
