package eval

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"tare/lab"
	"tare/mace"
	"tare/stats"
)

// Perturbation says what watching adds to a packet's round trip.
type Perturbation struct {
	PacketsPerRun int               `json:"packets_per_run"`
	BaseRTTUs     stats.Interval    `json:"base_rtt_us"` // nothing attached; of means
	Arms          []PerturbationArm `json:"arms"`
	Costs         []ArmCost         `json:"gross_costs"`
	RoundsBase    []Sample          `json:"rounds_base"`
}

// PerturbationArm is one way of watching, compared round by round with none.
type PerturbationArm struct {
	Arm string `json:"arm"`
	// CostUs is the difference of mean RTTs, MedianCostUs that of medians, which a burst of somebody else's moves less.
	CostUs       stats.Interval `json:"cost_us"`
	MedianCostUs stats.Interval `json:"median_cost_us"`
	// RatioToFtrace compares with ftrace on the same events, by medians of CostUs over the same rounds.
	RatioToFtrace *stats.Interval `json:"ratio_to_ftrace,omitempty"`
	Rounds        []Sample        `json:"rounds"`
}

// perturbationArm describes an arm: an engine, or ftrace on some events, or neither.
type perturbationArm struct {
	name     string
	path     string
	inert    bool
	activate string   // the host whose namespace is watched
	events   []string // ftrace's
	ftrace   string   // the arm with which it is compared
}

const (
	armNone, armAgain  = "none", "none again"
	armInert           = "inert programs"
	armInner, armMax   = "inner-dev", "max-dev"
	armSyscalls        = "syscalls"
	armOther           = "inner-dev, another namespace"
	armFtraceInner     = "ftrace, inner-dev's events"
	armFtraceMax       = "ftrace, max-dev's events"
	armFtraceSyscalls  = "ftrace, syscalls' events"
	packetsPerFlood    = 5000
	warmingPackets     = 500
	innerCostUs        = 1.2
	ratioToFtrace      = 0.5
	notActivatedCostUs = 0.3
)

func perturbationArms() []perturbationArm {
	c1, c2 := lab.Container(1), lab.Container(2)
	return []perturbationArm{
		{name: armNone},
		{name: armAgain}, // what it differs by is noise
		{name: armInert, path: "inner-dev", inert: true, activate: c1, ftrace: armFtraceInner},
		{name: armInner, path: "inner-dev", activate: c1, ftrace: armFtraceInner},
		{name: "bare-metal", path: "bare-metal", activate: c1},
		{name: armMax, path: "max-dev", activate: c1, ftrace: armFtraceMax},
		{name: armSyscalls, path: "syscalls", activate: c1, ftrace: armFtraceSyscalls},
		{name: "wire", path: "wire", activate: c1},
		{name: armOther, path: "inner-dev", activate: c2, ftrace: armFtraceInner},
		{name: armFtraceInner, events: []string{"net/net_dev_start_xmit", "net/netif_receive_skb"}},
		{name: armFtraceMax, events: []string{"net/net_dev_queue", "net/net_dev_xmit", "net/napi_gro_receive_entry",
			"net/napi_gro_frags_entry", "net/netif_rx", "net/netif_receive_skb"}},
		{name: armFtraceSyscalls, events: []string{"raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "net/net_dev_xmit",
			"net/netif_receive_skb"}},
	}
}

func runPerturbation(ctx context.Context, options Options) (*Perturbation, error) {
	bed, err := newBed(ctx, PartPerturbation, 2)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	tracing, err := openTracefs()
	if err != nil {
		return nil, err
	}
	defer tracing.close()
	arms := perturbationArms()
	rounds := make([][]Sample, len(arms))
	order := stats.NewOrder(len(arms), options.Seed)
	cpus := allowedCPUs()
	pace := options.pace(10, 60, 60*time.Second, 270*time.Second)
	for pace.next() {
		// One CPU for a whole round. The flood's round trip happens on the CPU of its ping: softirqs run where the packet was
		// sent. Unpinned, ping moves now and then, and a move costs more than what is measured; a reader of records or of the
		// trace may also land on its CPU in some arms and not in others.
		cpu := cpus[pace.done%len(cpus)]
		for _, i := range order.Next() {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			options.progress("perturbation: round %d of %d, %s", pace.done, pace.rounds, arms[i].name)
			sample, err := bed.perturbed(ctx, arms[i], tracing, cpu)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			rounds[i] = append(rounds[i], sample)
		}
	}
	result := &Perturbation{PacketsPerRun: packetsPerFlood}
	result.compare(arms, rounds, options.Seed)
	result.Costs, err = bed.grossCosts(ctx, options, arms)
	return result, err
}

// perturbed measures one arm once.
func (b *bed) perturbed(ctx context.Context, arm perturbationArm, tracing *tracefs, cpu int) (_ Sample, err error) {
	switch {
	case arm.path != "":
		path, err := mace.ParsePath(arm.path)
		if err != nil {
			return Sample{}, err
		}
		watch, err := b.startWatch(mace.Options{Path: path, Inert: arm.inert}, []string{arm.activate}, drainEvery, nil)
		if err != nil {
			return Sample{}, err
		}
		defer watch.close()
	case arm.events != nil:
		trace, err := tracing.start(arm.events)
		if err != nil {
			return Sample{}, err
		}
		defer func() {
			if stopErr := trace.stop(); stopErr != nil && err == nil {
				err = stopErr
			}
		}()
	}
	if _, err := rttsOfQuiet(ctx, b.lab, lab.Container(1), b.floodArgv(warmingPackets), cpu); err != nil {
		return Sample{}, err
	}
	rtts, err := rttsOfQuiet(ctx, b.lab, lab.Container(1), b.floodArgv(packetsPerFlood), cpu)
	return sampleOf(rtts, printedUs), err
}

// floodArgv is a flood ping that prints each RTT. -f and -q print an average in whole us, cut off, which is as coarse as
// the differences to be measured; -i 0 floods in the same way.
func (b *bed) floodArgv(packets int) []string {
	return []string{"ping", "-n", "-i", "0", "-c", strconv.Itoa(packets), "-w", "30", b.remote()}
}

// compare pairs all arms with the one where nothing is attached.
func (p *Perturbation) compare(arms []perturbationArm, rounds [][]Sample, seed uint64) {
	base := rounds[0]
	p.RoundsBase = base
	p.BaseRTTUs = rounded(stats.BootstrapMedian(column(base, meanOf), seed))
	costs := map[string][]float64{}
	for i, arm := range arms {
		costs[arm.name] = stats.Differences(column(rounds[i], meanOf), column(base, meanOf))
	}
	for i, arm := range arms[1:] {
		result := PerturbationArm{
			Arm: arm.name, CostUs: difference(rounds[i+1], base, meanOf, seed),
			MedianCostUs: difference(rounds[i+1], base, medianOf, seed), Rounds: rounds[i+1],
		}
		if arm.ftrace != "" {
			ratio := rounded(stats.RatioOfMedians(costs[arm.name], costs[arm.ftrace], seed))
			if finite(ratio.Estimate) && finite(ratio.Low) && finite(ratio.High) {
				result.RatioToFtrace = &ratio
			}
		}
		p.Arms = append(p.Arms, result)
	}
}

func (p *Perturbation) targets() []Target {
	var targets []Target
	for _, arm := range p.Arms {
		switch arm.Arm {
		case armInner:
			targets = append(targets, target("inner-dev adds to a flood's RTT", arm.CostUs.Estimate, innerCostUs, "us"))
			if arm.RatioToFtrace != nil {
				targets = append(targets, target("inner-dev's share of ftrace's cost", arm.RatioToFtrace.Estimate, ratioToFtrace, ""))
			}
		case armOther:
			targets = append(targets, target("a namespace that is not activated pays", arm.CostUs.Estimate, notActivatedCostUs, "us"))
		}
	}
	return targets
}
