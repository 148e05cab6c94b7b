// Package bench compares networks: the same workload over several arms, in interleaved rounds, and a report of what can be
// said of their differences.
//
// A round is one run of every arm, in a shuffled order whose mirror image is the next round's (stats.Order). The baseline
// takes part twice; how much it differs from itself is the noise floor. Everything that decides is fixed before the first
// round: the number of rounds, the margin, the rules by which runs are flagged.
package bench

import (
	"fmt"
	"slices"
	"time"

	"tare/bench/arm"
	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/verdict"
)

// Options say what to compare, and how thoroughly.
type Options struct {
	Arms       []ArmSpec // the first is the baseline
	Workloads  []Workload
	Placements []string // names of placements, see PlacementNames
	// Softirq is the CPU on which received packets are processed, for arms that can choose; nil: the sender's, as virtual
	// devices do by default.
	Softirq      *int
	Round        time.Duration
	Rounds       int           // 0: as many as Budget allows
	Budget       time.Duration // of everything, for choosing the number of rounds
	UntilDecided bool          // go on, up to MaxLooks looks, until each arm has a verdict
	Margin       verdict.Margin
	Seed         uint64
	Preset       string // for the report
	SingleRun    bool   // before the rounds, one long run of each arm in fixed order, as published benchmarks do it

	Command, Version string // for the report
	// Explain attaches a tracer for some rounds after the others; nil: none.
	Explain Explainer
	// Progress is called before each run; it may be nil.
	Progress func(Progress)
	// KnownArms and KnownWorkloads are what names refer to; nil: arm.All and load.All.
	KnownArms      []arm.Arm
	KnownWorkloads []load.Workload
}

// ArmSpec chooses an arm.
type ArmSpec struct {
	Name  string
	Delay time.Duration // a known delay to be added, where the arm can
	// Optional arms are left out with their reason where they cannot run; for others that is an error.
	Optional bool
	As       string // the name in the report; empty: the arm's
}

func (a ArmSpec) label() string {
	if a.As != "" {
		return a.As
	}
	return a.Name
}

// Workload chooses a workload and its variant.
type Workload struct {
	Name       string // empty: the first workload of round trips whose tools are there
	Size, Rate int    // 0: the workload's own
	Optional   bool
}

// Bounds and defaults.
const (
	DefaultRound  = time.Second
	QuickRound    = 250 * time.Millisecond
	DefaultBudget = 60 * time.Second
	QuickBudget   = 15 * time.Second
	// MinRounds have an interval of 95%; see stats.SignedRank.
	MinRounds = 6
	MaxRounds = 2000
	// MaxLooks is how often --until-decided looks: after n, 2n, 4n, 8n and 16n rounds.
	MaxLooks = 5
	// minLookRounds have an interval of the 99% that five looks need.
	minLookRounds = 8
	firstPort     = 21111
	// restartEvery is after how many rounds every workload is started anew: a connection's or a process's luck with
	// memory and hash tables stays for its life, and would be taken for the arm's. Two rounds are a there and back.
	restartEvery = 2
	// singleRun is how long each arm runs in the published benchmark.
	singleRun = 10 * time.Second
)

// DefaultArms are compared when nobody says which.
func DefaultArms() []ArmSpec {
	return []ArmSpec{{Name: "loopback"}, {Name: "bridge", Optional: true}, {Name: "docker-bridge", Optional: true}}
}

// PlacementNames lists where client and server can be put.
var PlacementNames = []string{"cross-core", "same-core", "unpinned"}

// placement gives CPUs to a name.
func placement(name string, cpus []int) (report.Placement, error) {
	p := report.Placement{Name: name, ClientCPU: arm.Unpinned, ServerCPU: arm.Unpinned, SoftirqCPU: arm.Unpinned}
	switch {
	case !slices.Contains(PlacementNames, name):
		return p, fmt.Errorf("placement %q: use %v", name, PlacementNames)
	case name == "unpinned":
	case name == "same-core":
		p.ClientCPU, p.ServerCPU = cpus[len(cpus)-1], cpus[len(cpus)-1]
	case len(cpus) < 2:
		return p, fmt.Errorf("placement cross-core needs two CPUs, and this process may use CPU %d only: use same-core", cpus[0])
	default:
		// The first CPU of many machines serves interrupts: the last two are quieter.
		p.ClientCPU, p.ServerCPU = cpus[len(cpus)-2], cpus[len(cpus)-1]
	}
	return p, nil
}

func pinned(p report.Placement) bool { return p.ClientCPU != arm.Unpinned }

func (o *Options) fill() {
	if o.KnownArms == nil {
		o.KnownArms = arm.All()
	}
	if o.KnownWorkloads == nil {
		o.KnownWorkloads = load.All()
	}
	if len(o.Arms) == 0 {
		o.Arms = DefaultArms()
	}
	if len(o.Workloads) == 0 {
		o.Workloads = []Workload{{}}
	}
	if len(o.Placements) == 0 {
		o.Placements = []string{"cross-core"}
	}
	if o.Round == 0 {
		o.Round = DefaultRound
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
}
