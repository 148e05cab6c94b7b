package subtract

import (
	"math"
	"slices"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/mace"
	"tare/tool"
)

// us rounds to ns, so that JSON does not show digits that nobody measured.
func us(v float64) float64 { return math.Round(v*1e3) / 1e3 }

// Distribution is a set of times in us, as JSON has it.
type Distribution struct {
	Mean   float64 `json:"mean"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Stddev float64 `json:"stddev"`
}

func distribution(d tool.Dist) *Distribution {
	if d.N == 0 {
		return nil
	}
	return &Distribution{us(d.Mean), us(d.P50), us(d.P90), us(d.P99), us(d.Min), us(d.Max), us(d.Stddev)}
}

// times collects latencies in ns, to 0.1%, in memory that does not grow with their number.
type times struct{ histogram *hdrhistogram.Histogram }

func newTimes() times {
	const maxNS, digits = int64(10 * 60 * 1e9), 3
	return times{hdrhistogram.New(1, maxNS, digits)}
}

func (t times) add(ns int64) {
	_ = t.histogram.RecordValue(ns) // an error means beyond ten minutes: no network's latency
}

func (t times) distribution() *Distribution {
	h := t.histogram
	if h.TotalCount() == 0 {
		return nil
	}
	q := func(percent float64) float64 { return us(float64(h.ValueAtQuantile(percent)) / 1e3) }
	return &Distribution{
		us(h.Mean() / 1e3), q(50), q(90), q(99), us(float64(h.Min()) / 1e3), us(float64(h.Max()) / 1e3), us(h.StdDev() / 1e3),
	}
}

// totals add up what the kernel saw of a run, whether the tool shows it or not.
type totals struct {
	egress, ingress   times // of matched packets
	gross, added, net times // of matched round trips
	roundTrips        int
	stamped           int            // ... whose reply was read from a socket with kernel stamps
	status            map[string]int // of round trips

	mu      sync.Mutex
	addedUs []float64 // of the first maxAdded ones, for tools that print no replies: read while the tool runs
}

const maxAdded = 1 << 20

func newTotals() *totals {
	return &totals{
		egress: newTimes(), ingress: newTimes(), gross: newTimes(), added: newTimes(), net: newTimes(),
		status: map[string]int{},
	}
}

func (t *totals) passage(p *mace.Passage) {
	if p.Status != mace.Matched {
		return
	}
	if p.Direction == mace.Egress {
		t.egress.add(p.LatencyNS())
	} else {
		t.ingress.add(p.LatencyNS())
	}
}

func (t *totals) roundTrip(r *mace.RTT) {
	t.roundTrips++
	if r.Reply.KernelStamp {
		t.stamped++
	}
	t.status[r.Status.String()]++
	if r.Status != mace.Matched {
		return
	}
	t.gross.add(r.GrossNS())
	t.added.add(r.TareNS())
	t.net.add(r.NetNS())
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.addedUs) < maxAdded {
		t.addedUs = append(t.addedUs, float64(r.TareNS())/1e3)
	}
}

// addedSoFar is what was added to each round trip up to now, in us.
func (t *totals) addedSoFar() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.addedUs)
}

// fill completes a summary with them.
func (t *totals) fill(line *Summary) {
	line.Status = map[string]int{}
	for status, n := range t.status {
		line.Status[status] = n
	}
	line.Received, line.Sent = t.roundTrips, t.roundTrips
	line.Matched = t.status[mace.Matched.String()]
	line.RTTUs, line.AddedUs, line.CorrectedUs = t.gross.distribution(), t.added.distribution(), t.net.distribution()
}
