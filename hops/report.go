package hops

import (
	"cmp"
	"maps"
	"slices"
)

// Report is a waterfall to show or to keep: all times in ns, of both directions.
type Report struct {
	Container string   `json:"container"`
	NICs      []string `json:"nics"`
	Path      string   `json:"path"` // whose interval is marked
	Seconds   float64  `json:"seconds"`
	Egress    Summary  `json:"egress"`
	Ingress   Summary  `json:"ingress"`
	Account   Account  `json:"account"`
}

// Summary is one direction.
type Summary struct {
	Packets    int   `json:"packets"` // with both ends of the path in their trace
	Correction Times `json:"correction"`
	// CorrectionSumNS is that of all packets, and the sum of InsideSumNS over Hops, to the ns.
	CorrectionSumNS int64   `json:"correction_sum_ns"`
	TracerNS        float64 `json:"tracer_ns"` // mean of what the tracer took inside the interval
	Hops            []Hop   `json:"hops"`
	Unexplained     Unknown `json:"unexplained"`
	Routes          []Route `json:"routes"`
}

// Times are of one hop, or of the whole interval.
type Times struct {
	MeanNS float64 `json:"mean_ns"`
	P50NS  float64 `json:"p50_ns"`
	P99NS  float64 `json:"p99_ns"`
	MaxNS  int64   `json:"max_ns"`
}

// Hop is the time between two points that follow each other.
type Hop struct {
	Name      string `json:"name"`   // empty if it has none: see Explained
	Device    string `json:"device"` // where it leads to
	From      string `json:"from"`
	To        string `json:"to"`
	Explained bool   `json:"explained"` // it is known what the kernel does there
	Packets   int    `json:"packets"`   // that took it
	Times
	// Of the packets for which it lies between the path's ends: none, some or all.
	InsidePackets int   `json:"inside_packets"`
	InsideSumNS   int64 `json:"inside_sum_ns"`
	// InsideMeanNS is its share of the mean correction: its sum over all packets of the direction.
	InsideMeanNS float64 `json:"inside_mean_ns"`
	TracerNS     float64 `json:"tracer_ns"` // mean of what the tracer itself took in it
}

// Unknown is what the waterfall does not explain.
type Unknown struct {
	MeanNS     float64        `json:"mean_ns"` // of the correction: in hops that have no name, per packet
	SumNS      int64          `json:"sum_ns"`
	Hops       int            `json:"hops"`       // such hops, inside
	Incomplete map[Reason]int `json:"incomplete"` // packets whose time between the ends is not known, by why
}

// Route is a chain of devices and how many packets took it.
type Route struct {
	Devices string `json:"devices"`
	Packets int    `json:"packets"`
}

func timesOf(h *histogram) Times {
	return Times{MeanNS: h.mean(), P50NS: h.quantile(0.5), P99NS: h.quantile(0.99), MaxNS: h.maxNS}
}

// Summary sums a direction up.
func (w *Waterfall) Summary(direction Direction) Summary {
	d := &w.ways[direction&1]
	s := Summary{
		Packets: d.correction.count, Correction: timesOf(&d.correction), CorrectionSumNS: d.correction.sumNS,
		TracerNS: d.tracer.mean(), Hops: []Hop{}, Routes: []Route{},
		Unexplained: Unknown{Incomplete: map[Reason]int{}},
	}
	maps.Copy(s.Unexplained.Incomplete, d.incomplete)
	for _, r := range d.rows {
		name, explained := hopName(r.from, r.to)
		h := Hop{
			Name: name, Explained: explained, Device: hopDevice(r.from, r.to), From: r.from.String(), To: r.to.String(),
			Packets: r.times.count, Times: timesOf(&r.times),
			InsidePackets: r.insideCount, InsideSumNS: r.insideNS, TracerNS: r.tracer.mean(),
		}
		if !explained {
			h.Name = ""
		}
		if s.Packets > 0 {
			h.InsideMeanNS = float64(r.insideNS) / float64(s.Packets)
		}
		if !explained && r.insideCount > 0 {
			s.Unexplained.Hops += r.insideCount
			s.Unexplained.SumNS += r.insideNS
			s.Unexplained.MeanNS += h.InsideMeanNS
		}
		s.Hops = append(s.Hops, h)
	}
	for devices, n := range d.routes {
		s.Routes = append(s.Routes, Route{devices, n})
	}
	slices.SortFunc(s.Routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), cmp.Compare(a.Devices, b.Devices))
	})
	return s
}

// Difference is how a hop of one waterfall differs from the same of another.
type Difference struct {
	Direction string `json:"direction"`
	Name      string `json:"name"` // as in Hop; the points of one that has none
	Device    string `json:"device"`
	Inside    bool   `json:"inside"` // between the path's ends, in either
	// The medians, in ns; nil where a waterfall has no such hop.
	BeforeNS *float64 `json:"before_ns"`
	AfterNS  *float64 `json:"after_ns"`
	DeltaNS  float64  `json:"delta_ns"` // after minus before, a missing hop being 0
}

// Compare tells where two waterfalls differ, in the packets' order: first of before's hops, then those that only after
// has. Hops are the same if they are between the same events, one after the other as often as there are such; names of
// devices differ from container to container, and do not count.
func Compare(before, after *Report) []Difference {
	var all []Difference
	for _, d := range []struct {
		direction   Direction
		left, right Summary
	}{{Egress, before.Egress, after.Egress}, {Ingress, before.Ingress, after.Ingress}} {
		all = append(all, compareWays(d.direction.String(), d.left.Hops, d.right.Hops)...)
	}
	return all
}

func compareWays(direction string, before, after []Hop) []Difference {
	var all []Difference
	taken := make([]bool, len(after))
	for _, b := range before {
		d := Difference{Direction: direction, Name: b.label(), Device: b.Device, Inside: b.InsidePackets > 0, BeforeNS: &b.P50NS, DeltaNS: -b.P50NS}
		at := -1
		for _, same := range []func(a Hop) bool{
			func(a Hop) bool { return a.From == b.From && a.To == b.To },
			func(a Hop) bool { return b.Name != "" && a.Name == b.Name },
		} {
			if at < 0 {
				at = slices.IndexFunc(after, func(a Hop) bool {
					i := slices.IndexFunc(after, func(x Hop) bool { return x.From == a.From && x.To == a.To })
					return !taken[i] && same(a)
				})
			}
		}
		if at >= 0 {
			taken[at] = true
			d.AfterNS = &after[at].P50NS
			d.DeltaNS += after[at].P50NS
			d.Inside = d.Inside || after[at].InsidePackets > 0
		}
		all = append(all, d)
	}
	for i, a := range after {
		if !taken[i] {
			all = append(all, Difference{Direction: direction, Name: a.label(), Device: a.Device, Inside: a.InsidePackets > 0, AfterNS: &a.P50NS, DeltaNS: a.P50NS})
		}
	}
	return all
}

func (h Hop) label() string {
	if h.Name != "" {
		return h.Name
	}
	return h.From + " → " + h.To
}
