package eval

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
	"tare/stats"
)

// ArmCost is what the kernel's own statistics say of an arm's programs, over one flood. Reading the clock twice per call is
// in it (the inert programs show how much); what else is on the machine runs the programs, too.
type ArmCost struct {
	Arm          string        `json:"arm"`
	NSPerPacket  float64       `json:"ns_per_round_trip"`
	Programs     []ProgramCost `json:"programs"`
	RoundTrips   int           `json:"round_trips"`
	MedianRounds int           `json:"rounds"`
}

// ProgramCost is one program's part.
type ProgramCost struct {
	Tracepoint   string  `json:"tracepoint"`
	NSPerEvent   float64 `json:"ns_per_event"`
	EventsPerRTT float64 `json:"events_per_round_trip"`
}

// perEvent is the mean over all calls of all programs.
func (c ArmCost) perEvent() float64 {
	sum, events := 0.0, 0.0
	for _, p := range c.Programs {
		sum += p.NSPerEvent * p.EventsPerRTT
		events += p.EventsPerRTT
	}
	if events == 0 {
		return 0
	}
	return math.Round(sum / events)
}

const costRounds = 3

// grossCosts measures all arms that have programs, in rounds of their own: the statistics cost some ns per call, too.
func (b *bed) grossCosts(ctx context.Context, options Options, arms []perturbationArm) ([]ArmCost, error) {
	statistics, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, fmt.Errorf("switching the statistics of eBPF programs on: %w", err)
	}
	defer statistics.Close()
	rounds := costRounds
	if options.tiny {
		rounds = 1
	}
	var costs []ArmCost
	cpus := allowedCPUs()
	for _, arm := range arms {
		if arm.path == "" {
			continue
		}
		events, times := map[string][]float64{}, map[string][]float64{}
		var perPacket []float64
		for round := range rounds {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			options.progress("perturbation: programs of %s, round %d of %d", arm.name, round+1, rounds)
			programs, err := b.grossCost(ctx, arm, cpus[round%len(cpus)])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arm.name, err)
			}
			sum := 0.0
			for _, p := range programs {
				sum += float64(p.Time)
				perEvent := 0.0
				if p.Runs > 0 {
					perEvent = float64(p.Time) / float64(p.Runs)
				}
				times[p.Tracepoint] = append(times[p.Tracepoint], perEvent)
				events[p.Tracepoint] = append(events[p.Tracepoint], float64(p.Runs)/float64(b.packets))
			}
			perPacket = append(perPacket, sum/float64(b.packets))
		}
		cost := ArmCost{Arm: arm.name, NSPerPacket: math.Round(stats.Median(perPacket)), RoundTrips: b.packets, MedianRounds: rounds}
		for name := range times {
			cost.Programs = append(cost.Programs, ProgramCost{name, math.Round(stats.Median(times[name])), math.Round(stats.Median(events[name])*100) / 100})
		}
		slices.SortFunc(cost.Programs, func(a, b ProgramCost) int { return strings.Compare(a.Tracepoint, b.Tracepoint) })
		costs = append(costs, cost)
	}
	return costs, nil
}

// grossCost is one flood's.
func (b *bed) grossCost(ctx context.Context, arm perturbationArm, cpu int) ([]mace.ProgramCost, error) {
	path, err := mace.ParsePath(arm.path)
	if err != nil {
		return nil, err
	}
	watch, err := b.startWatch(mace.Options{Path: path, Inert: arm.inert}, []string{arm.activate}, drainEvery, nil)
	if err != nil {
		return nil, err
	}
	defer watch.close()
	before, err := watch.engine.ProgramCosts()
	if err != nil {
		return nil, err
	}
	if _, err := rttsOfQuiet(ctx, b.lab, lab.Container(1), b.floodArgv(b.packets), cpu); err != nil {
		return nil, err
	}
	after, err := watch.engine.ProgramCosts()
	if err != nil {
		return nil, err
	}
	earlier := map[string]mace.ProgramCost{}
	for _, p := range before {
		earlier[p.Tracepoint] = p
	}
	for i := range after {
		after[i].Runs -= earlier[after[i].Tracepoint].Runs
		after[i].Time -= earlier[after[i].Tracepoint].Time
	}
	return after, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
