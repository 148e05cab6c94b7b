package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/lab"
	"tare/stats"
)

// Accuracy says how far corrected RTTs are from the truth, at each level of load.
type Accuracy struct {
	Levels []AccuracyLevel `json:"levels"`
}

// AccuracyLevel is one level of load: so many flooding containers beside the measured one.
type AccuracyLevel struct {
	Floods        int        `json:"floods"`
	Rounds        int        `json:"rounds"`
	RepliesPerRun int        `json:"replies_per_run"`
	BareMetal     BareMetal  `json:"bare_metal"`
	Wire          []WireTool `json:"wire"`
	// TapShareUs is how long after the tap's stamp the program at the NIC takes its time: the part of a wire error that is
	// the referee's own, because making the tap's copy delays the packet.
	TapShareUs stats.Interval `json:"tap_share_us"`
}

var defaultFloods = []int{0, 16}

// MaxFloods is how many flooding containers there can be: it leaves each flood a container of its own beside the measured one.
const MaxFloods = lab.MaxContainers - 1

func runAccuracy(ctx context.Context, options Options) (*Accuracy, error) {
	floods := options.Floods
	if floods == nil {
		floods = defaultFloods
	}
	for _, n := range floods {
		if n < 0 || n > MaxFloods {
			return nil, fmt.Errorf("%d flooding containers: 0 to %d are possible", n, MaxFloods)
		}
	}
	bed, err := newBed(ctx, PartAccuracy, 1+slices.Max(append([]int{1}, floods...)))
	if err != nil {
		return nil, err
	}
	defer bed.close()
	result := &Accuracy{}
	for i, n := range floods {
		pace := levelPace(options, n, len(floods))
		level, err := bed.accuracyAt(ctx, options, n, pace, options.Seed+uint64(i))
		if err != nil {
			return nil, fmt.Errorf("with %d floods: %w", n, err)
		}
		result.Levels = append(result.Levels, *level)
	}
	return result, nil
}

// Under load everything takes several times as long, attaching most of all.
func levelPace(options Options, floods, levels int) *pace {
	share := time.Duration(levels)
	if floods == 0 {
		return options.pace(6, 30, 40*time.Second/share, 180*time.Second/share)
	}
	return options.pace(6, 20, 50*time.Second/share, 240*time.Second/share)
}

// accuracyAt measures beside a load that runs for as long as the level takes.
func (b *bed) accuracyAt(ctx context.Context, options Options, floods int, pace *pace, seed uint64) (_ *AccuracyLevel, err error) {
	if floods > 0 {
		// Bounded by itself, too: rounds end at the pace's time, a last one may be under way then.
		load, startErr := b.lab.StartBackground(ctx, lab.Background{Floods: floods, For: time.Until(pace.until) + 2*toolTime})
		if startErr != nil {
			return nil, startErr
		}
		defer func() {
			if stopErr := load.Stop(); stopErr != nil && err == nil {
				err = fmt.Errorf("the load: %w", stopErr)
			}
		}()
		time.Sleep(300 * time.Millisecond) // ping floods from its first reply on
	}
	effort := options.effort(floods)
	level := &AccuracyLevel{Floods: floods, RepliesPerRun: effort.replies}
	arms := newAccuracyArms(b, effort, seed)
	order := stats.NewOrder(len(arms.all), seed)
	for pace.next() {
		for _, arm := range order.Next() {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			options.progress("accuracy, %d floods: round %d of %d, %s", floods, pace.done, pace.rounds, arms.all[arm].name)
			if err := arms.all[arm].run(ctx); err != nil {
				return nil, err
			}
		}
	}
	level.Rounds = pace.done
	level.BareMetal = arms.bareMetal.result(seed)
	for _, tool := range arms.wire {
		level.Wire = append(level.Wire, tool.result(seed))
	}
	level.TapShareUs = rounded(stats.BootstrapMedian(arms.tapShareUs, seed))
	return level, nil
}

// accuracyArms are the arms of one level and what they have collected, one entry per round.
type accuracyArms struct {
	all []struct {
		name string
		run  func(context.Context) error
	}
	bareMetal  bareMetalRuns
	wire       []*wireRuns
	tapShareUs []float64
}

func newAccuracyArms(b *bed, effort effort, seed uint64) *accuracyArms {
	a := &accuracyArms{}
	a.bareMetal = bareMetalRuns{order: stats.NewOrder(3, seed), effort: effort, cpus: allowedCPUs()}
	add := func(name string, run func(context.Context) error) {
		a.all = append(a.all, struct {
			name string
			run  func(context.Context) error
		}{name, run})
	}
	for range effort.blocks {
		add("bare-metal", func(ctx context.Context) error { return b.block(ctx, &a.bareMetal) })
	}
	for _, tool := range wireTools {
		runs := &wireRuns{tool: tool, effort: effort}
		a.wire = append(a.wire, runs)
		add("wire, "+tool.name, func(ctx context.Context) error { return b.wire(ctx, runs) })
	}
	add("the tap's share", func(ctx context.Context) error {
		share, err := b.tapShare(ctx, effort)
		a.tapShareUs = append(a.tapShareUs, share)
		return err
	})
	return a
}

// Targets of the design. At rest means without any flood.
const (
	bareMetalRestUs = 1.0
	bareMetalLoadUs = 5.0
	wireUs          = 3.0
	coverageShare   = 0.999
)

func (a *Accuracy) targets() []Target {
	var targets []Target
	for _, level := range a.Levels {
		where, bound := "at rest", bareMetalRestUs
		if level.Floods > 0 {
			where, bound = fmt.Sprintf("with %d floods", level.Floods), bareMetalLoadUs
		}
		targets = append(targets,
			target("bare-metal less native, "+where, level.BareMetal.ErrorUs.Estimate, bound, "us"),
			targetAtLeast("bare-metal coverage, "+where, percent(level.BareMetal.Coverage.Share), percent(coverageShare), "%"))
		for _, tool := range level.Wire {
			targets = append(targets,
				target(fmt.Sprintf("wire error of %s, %s", tool.Tool, where), tool.ErrorUs.Estimate, wireUs, "us"),
				targetAtLeast(fmt.Sprintf("wire coverage of %s, %s", tool.Tool, where), percent(tool.Coverage.Share), percent(coverageShare), "%"))
		}
	}
	return targets
}

func percent(share float64) float64 { return math.Floor(share*1e6) / 1e4 }
