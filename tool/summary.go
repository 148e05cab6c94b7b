package tool

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// Dist describes a set of times in microseconds. Stddev is that of the
// population, as in iputils' mdev; percentiles are by nearest rank.
type Dist struct {
	N      int     `json:"n"`
	Min    float64 `json:"min"`
	Mean   float64 `json:"mean"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Stddev float64 `json:"stddev"`
}

// Describe returns the Dist of values, exactly up to maxSamples of them.
func Describe(values []float64) Dist {
	var s series
	for _, v := range values {
		s.add(v)
	}
	return s.dist()
}

// maxSamples bounds the memory of a run without end. Beyond it percentiles
// are of a uniform random sample of that size, which leaves p99 an error of
// some 0.04 of a percentile; all the rest stays exact.
const maxSamples = 1 << 16

// series adds up times as they come.
type series struct {
	n              int
	mean, m2       float64 // Welford: sums of squares of ns-sized differences would cancel out
	min, max       float64
	sample         []float64
	random         *rand.Rand
	sampleIsSorted bool
}

func (s *series) add(v float64) {
	s.n++
	if s.n == 1 || v < s.min {
		s.min = v
	}
	if s.n == 1 || v > s.max {
		s.max = v
	}
	delta := v - s.mean
	s.mean += delta / float64(s.n)
	s.m2 += delta * (v - s.mean)

	s.sampleIsSorted = false
	if len(s.sample) < maxSamples {
		s.sample = append(s.sample, v)
		return
	}
	if s.random == nil {
		s.random = rand.New(rand.NewPCG(1, 2)) // the same output gives the same report
	}
	// Vitter's algorithm R. That dist sorts the sample in place does no
	// harm: every place is as likely to be replaced as any other.
	if i := s.random.IntN(s.n); i < maxSamples {
		s.sample[i] = v
	}
}

func (s *series) dist() Dist {
	if s.n == 0 {
		return Dist{}
	}
	if !s.sampleIsSorted {
		slices.Sort(s.sample)
		s.sampleIsSorted = true
	}
	rank := func(p float64) float64 {
		i := int(math.Ceil(p*float64(len(s.sample)))) - 1
		return s.sample[max(i, 0)]
	}
	return Dist{
		N: s.n, Min: s.min, Mean: s.mean, P50: rank(0.5), P90: rank(0.9), P99: rank(0.99), Max: s.max,
		Stddev: math.Sqrt(s.m2 / float64(s.n)),
	}
}

// Report is what is known about the replies of a target, or of all.
type Report struct {
	Target      string         `json:"target,omitempty"`
	Replies     int            `json:"replies"`               // that were printed with a time
	Corrected   int            `json:"corrected"`             // of them
	Uncorrected map[string]int `json:"uncorrected,omitempty"` // the others, by Correction.Status

	// These three are of the corrected replies alone, so that they compare.
	RTT          Dist `json:"rtt_us"`
	Added        Dist `json:"added_us"`
	CorrectedRTT Dist `json:"corrected_us"`

	// The best that is known of CorrectedRTT's mean. Where all replies of a
	// run are corrected it is the tool's own average less the mean of Added
	// if that is finer: ping averages "10.3 ms" and its like to the us.
	// Where the tool prints no replies (ping -q and -f: Unprinted), it is
	// all that can be told, and CorrectedRTT stays empty; 0 if unknown.
	CorrectedMeanUs float64 `json:"corrected_mean_us,omitempty"`
	Unprinted       bool    `json:"unprinted,omitempty"`

	// What the last printed digit is worth, of the finest RTT and of CorrectedMeanUs.
	ResolutionUs     float64 `json:"resolution_us,omitempty"`
	MeanResolutionUs float64 `json:"mean_resolution_us,omitempty"`
}

// Summary adds up replies and their corrections, by target. It is safe for
// concurrent use; the zero Summary is ready.
type Summary struct {
	mu      sync.Mutex
	all     tally
	targets map[string]*tally
	order   []string
}

// A hostile or merely large run names many targets and statuses. Beyond these
// a target is part of the total only, and a status is "other".
const (
	maxTargets  = 1 << 16 // fping -g of a /16
	maxStatuses = 64
)

type tally struct {
	replies               int
	uncorrected           map[string]int
	rtt, added, corrected series
	resolutionUs          float64
}

// Add counts a reply and its correction, unless the tool itself does not.
func (s *Summary) Add(r Reply, c Correction) {
	if r.Uncounted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.add(r, c)
	t := s.targets[r.Target]
	if t == nil {
		if len(s.targets) >= maxTargets {
			return
		}
		if s.targets == nil {
			s.targets = make(map[string]*tally)
		}
		t = new(tally)
		name := strings.Clone(r.Target) // rather than the whole line it is part of
		s.targets[name] = t
		s.order = append(s.order, name)
	}
	t.add(r, c)
}

func (t *tally) add(r Reply, c Correction) {
	t.replies++
	if t.resolutionUs == 0 || r.ResolutionUs < t.resolutionUs {
		t.resolutionUs = r.ResolutionUs
	}
	if !c.OK {
		if t.uncorrected == nil {
			t.uncorrected = make(map[string]int)
		}
		status := c.Status
		if _, known := t.uncorrected[status]; !known && len(t.uncorrected) >= maxStatuses {
			status = "other"
		}
		t.uncorrected[status]++
		return
	}
	t.rtt.add(r.RTTUs)
	t.added.add(c.AddedUs)
	t.corrected.add(c.CorrectedUs)
}

// Targets names the targets in the order of their first reply.
func (s *Summary) Targets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.order)
}

// Report returns what is known about one target by now.
func (s *Summary) Report(target string) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.targets[target].report()
	r.Target = target
	return r
}

// Total returns what is known about all targets together by now.
func (s *Summary) Total() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.report()
}

func (t *tally) report() Report {
	if t == nil {
		return Report{}
	}
	r := Report{
		Replies: t.replies, Corrected: t.corrected.n, ResolutionUs: t.resolutionUs,
		RTT: t.rtt.dist(), Added: t.added.dist(), CorrectedRTT: t.corrected.dist(),
		CorrectedMeanUs: t.corrected.mean, MeanResolutionUs: t.resolutionUs,
	}
	for status, n := range t.uncorrected {
		if r.Uncorrected == nil {
			r.Uncorrected = make(map[string]int)
		}
		r.Uncorrected[status] = n
	}
	return r
}
