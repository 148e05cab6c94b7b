package eval

import (
	"context"
	"fmt"
	"slices"
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
	NoBpftrace    string            `json:"no_bpftrace,omitempty"` // why it was left out
}

// PerturbationArm is one way of watching, compared in each round with a run right before or after it, with nothing attached.
type PerturbationArm struct {
	Arm string `json:"arm"`
	// CostUs is the difference of mean RTTs, MedianCostUs that of medians, which a burst of somebody else's moves less.
	CostUs       stats.Interval `json:"cost_us"`
	MedianCostUs stats.Interval `json:"median_cost_us"`
	// OverInertUs is what the median of the RTT grows by over that with inert programs: what is left is in our hands, the rest
	// is the price of being called at all.
	OverInertUs stats.Interval `json:"over_inert_us"`
	// RatioToFtrace compares with ftrace on the same events, by medians of CostUs over the same rounds.
	RatioToFtrace *stats.Interval `json:"ratio_to_ftrace,omitempty"`
	Rounds        []Sample        `json:"rounds"`
	RoundsBase    []Sample        `json:"rounds_base"`
}

// perturbationArm describes an arm: an engine, or ftrace or bpftrace on some events, or nothing.
type perturbationArm struct {
	name     string
	native   bool // the flood runs on the host, not in the container
	path     string
	inert    bool
	activate string   // the host whose namespace is watched
	events   []string // ftrace's
	bpftrace bool     // on inner-dev's events
	ftrace   string   // the arm with which it is compared
}

const (
	armNone            = "none"
	armInert           = "inert programs"
	armInner, armMax   = "inner-dev", "max-dev"
	armSyscalls        = "syscalls"
	armOther           = "inner-dev, another namespace"
	armFtraceInner     = "ftrace, inner-dev's events"
	armFtraceMax       = "ftrace, max-dev's events"
	armFtraceSyscalls  = "ftrace, syscalls' events"
	armBpftrace        = "bpftrace, inner-dev's events"
	armNativeInner     = "native, inner-dev"
	armNativeFtrace    = "native, ftrace, inner-dev's events"
	packetsPerFlood    = 5000
	warmingShare       = 10 // of a run's packets go ahead of it, unmeasured, so that no arm pays for cold caches
	innerCostUs        = 1.0
	ratioToFtrace      = 0.4
	notActivatedCostUs = 0.3
	grossEventNS       = 110.0
)

func perturbationArms() []perturbationArm {
	c1, c2 := lab.Container(1), lab.Container(2)
	return []perturbationArm{
		{name: armNone}, // compared with itself: what it differs by is noise
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
		{name: armBpftrace, bpftrace: true},
		{name: armNativeInner, native: true, path: "inner-dev", activate: lab.Host, ftrace: armNativeFtrace},
		{name: armNativeFtrace, native: true, events: []string{"net/net_dev_start_xmit", "net/netif_receive_skb"}},
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
	bed.packets = options.packetsPerFlood()
	result := &Perturbation{PacketsPerRun: bed.packets}
	arms := perturbationArms()
	if err := canBpftrace(ctx); err != nil {
		result.NoBpftrace = err.Error()
		arms = slices.DeleteFunc(arms, func(a perturbationArm) bool { return a.bpftrace })
	}
	rounds, bases := make([][]Sample, len(arms)), make([][]Sample, len(arms))
	order := stats.NewOrder(len(arms), options.Seed)
	cpus := allowedCPUs()
	pace := options.pace(10, 60, 40*time.Second, 180*time.Second)
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
			base, sample, err := bed.perturbedPair(ctx, arms[i], tracing, cpu, pace.done%4 < 2)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", arms[i].name, err)
			}
			rounds[i], bases[i] = append(rounds[i], sample), append(bases[i], base)
		}
	}
	result.compare(arms, rounds, bases, options.Seed)
	result.Costs, err = bed.grossCosts(ctx, options, arms)
	return result, err
}

// perturbedPair measures one arm and, within a second of it, none.
func (b *bed) perturbedPair(ctx context.Context, arm perturbationArm, tracing *tracefs, cpu int, baseFirst bool) (base, sample Sample, err error) {
	none := perturbationArm{name: armNone, native: arm.native}
	if baseFirst {
		if base, err = b.perturbed(ctx, none, tracing, cpu); err != nil {
			return
		}
	}
	if sample, err = b.perturbed(ctx, arm, tracing, cpu); err != nil || baseFirst {
		return
	}
	base, err = b.perturbed(ctx, none, tracing, cpu)
	return
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
	case arm.bpftrace:
		trace, err := startBpftrace(ctx)
		if err != nil {
			return Sample{}, err
		}
		defer func() {
			if stopErr := trace.stop(); stopErr != nil && err == nil {
				err = stopErr
			}
		}()
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
	native, contained := places()
	host := contained.host
	if arm.native {
		host = native.host
	}
	if _, err := rttsOfQuiet(ctx, b.lab, host, b.floodArgv(b.packets/warmingShare), cpu); err != nil {
		return Sample{}, err
	}
	rtts, err := rttsOfQuiet(ctx, b.lab, host, b.floodArgv(b.packets), cpu)
	return sampleOf(rtts, printedUs), err
}

func (o Options) packetsPerFlood() int {
	if o.tiny {
		return 10 * tinyReplies
	}
	return packetsPerFlood
}

// floodArgv is a flood ping that prints each RTT. -f and -q print an average in whole us, cut off, which is as coarse as
// the differences to be measured; -i 0 floods in the same way.
func (b *bed) floodArgv(packets int) []string {
	return []string{"ping", "-n", "-i", "0", "-c", strconv.Itoa(packets), "-w", "30", b.remote()}
}

// compare puts rounds together, which are by arm, then by round.
func (p *Perturbation) compare(arms []perturbationArm, rounds, bases [][]Sample, seed uint64) {
	means, medians := map[string][]float64{}, map[string][]float64{}
	inert := ""
	var all []float64
	for i, arm := range arms {
		means[arm.name] = stats.Differences(column(rounds[i], meanOf), column(bases[i], meanOf))
		medians[arm.name] = stats.Differences(column(rounds[i], medianOf), column(bases[i], medianOf))
		if arm.inert {
			inert = arm.name
		}
	}
	for round := range bases[0] {
		var ofRound []float64
		for i := range arms {
			if !arms[i].native {
				ofRound = append(ofRound, bases[i][round].MeanUs)
			}
		}
		all = append(all, stats.Median(ofRound))
	}
	p.BaseRTTUs = rounded(stats.BootstrapMedian(all, seed))
	for i, arm := range arms {
		result := PerturbationArm{
			Arm: arm.name, CostUs: rounded(stats.BootstrapMedian(means[arm.name], seed)),
			MedianCostUs: rounded(stats.BootstrapMedian(medians[arm.name], seed)),
			OverInertUs:  rounded(stats.BootstrapMedian(stats.Differences(medians[arm.name], medians[inert]), seed)),
			Rounds:       rounds[i], RoundsBase: bases[i],
		}
		if arm.ftrace != "" {
			ratio := rounded(stats.RatioOfMedians(means[arm.name], means[arm.ftrace], seed))
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
	for _, cost := range p.Costs {
		if cost.Arm == armInner {
			targets = append(targets, target("inner-dev's programs take of each event, gross", cost.perEvent(), grossEventNS, "ns"))
		}
	}
	return targets
}
