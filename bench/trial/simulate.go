// Package trial tries the method of package bench out: how often it calls identical networks different, and how often it
// finds a known difference. On recorded rounds, any number of runs are made in seconds (Simulate); the real thing takes
// as long as so many benchmarks do (Series).
package trial

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"tare/bench/report"
	"tare/bench/verdict"
	"tare/stats"
)

// Recording is rounds of three copies of one network, measured one after the other on a real machine.
type Recording struct {
	About    string    `json:"about"` // machine, command, and how busy it was
	RoundMS  float64   `json:"round_ms"`
	Rounds   int       `json:"rounds"` // that a run of this kind has
	Baseline []float64 `json:"baseline_p50_us"`
	Again    []float64 `json:"again_p50_us"`
	Same     []float64 `json:"same_p50_us"`
}

// SameArm is the name of the third copy, and DelayedArm that of a copy with a known delay.
const (
	SameArm    = "same"
	DelayedArm = "delayed"
)

// Record makes a recording of an experiment that has a third copy of its baseline.
func Record(r *report.Report) (*Recording, error) {
	for i := range r.Experiments {
		e := &r.Experiments[i]
		recording := &Recording{
			About: fmt.Sprintf("%s; Linux %s, %s, %s; busy %.0f%%, steal %.1f%%", e.Title(), r.Environment.Kernel, r.Environment.CPU,
				r.Environment.Virtualisation, r.Environment.BusyPercent, r.Environment.StealPercent),
			RoundMS: r.Method.RoundSeconds * 1e3,
		}
		baseline, again, same := e.Values(e.Baseline), e.Values(e.Again), e.Values(SameArm)
		for n := range min(len(baseline), len(again), len(same)) {
			if !math.IsNaN(baseline[n] + again[n] + same[n]) {
				recording.Baseline = append(recording.Baseline, baseline[n])
				recording.Again = append(recording.Again, again[n])
				recording.Same = append(recording.Same, same[n])
			}
		}
		if len(recording.Baseline) > 0 {
			return recording, nil
		}
	}
	return nil, fmt.Errorf("no experiment of this report has whole rounds of %q", SameArm)
}

// Write writes a recording as Decode reads it. More digits than 1 ns were not measured.
func (r *Recording) Write(out io.Writer) error {
	rounded := *r
	for _, column := range []*[]float64{&rounded.Baseline, &rounded.Again, &rounded.Same} {
		values := make([]float64, len(*column))
		for i, v := range *column {
			values[i] = math.Round(v*1e3) / 1e3
		}
		*column = values
	}
	return json.NewEncoder(out).Encode(rounded)
}

// Decode reads a recording.
func Decode(text []byte) (*Recording, error) {
	var r Recording
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	if n := len(r.Baseline); n == 0 || len(r.Again) != n || len(r.Same) != n || r.Rounds < 1 || r.Rounds > n {
		return nil, fmt.Errorf("reading a recording: %d, %d and %d rounds of its arms, for runs of %d", n, len(r.Again), len(r.Same), r.Rounds)
	}
	return &r, nil
}

// Tally counts what runs said of one arm.
type Tally struct {
	Runs         int `json:"runs"`
	Slower       int `json:"slower"`
	Faster       int `json:"faster"`
	Equivalent   int `json:"equivalent"`
	Inconclusive int `json:"inconclusive"`
	// Holding counts intervals that held the true difference.
	Holding int `json:"intervals_holding_the_truth"`
	// Outside counts "equivalent" said of an interval not inside the margin: never.
	Outside int `json:"equivalent_outside_of_the_margin"`
	// HalfWidths are those of the intervals of the difference, as shares of the baseline's round trip.
	HalfWidths []float64 `json:"half_widths"`
}

// Different is how often the arm was called different.
func (t Tally) Different() int { return t.Slower + t.Faster }

// HalfWidth is the median over runs.
func (t Tally) HalfWidth() float64 { return stats.Median(t.HalfWidths) }

func (t *Tally) count(c verdict.Comparison, truth, baseline float64, m verdict.Margin) {
	t.Runs++
	switch c.Kind {
	case verdict.Slower:
		t.Slower++
	case verdict.Faster:
		t.Faster++
	case verdict.Equivalent:
		t.Equivalent++
		inside := c.Ratio.Low > 1-m.Share && c.Ratio.High < 1+m.Share
		if m.Amount > 0 {
			inside = c.Difference.Low > -m.Amount && c.Difference.High < m.Amount
		}
		if !inside {
			t.Outside++
		}
	default:
		t.Inconclusive++
	}
	if c.Difference.Low <= truth && truth <= c.Difference.High {
		t.Holding++
	}
	if baseline > 0 {
		t.HalfWidths = append(t.HalfWidths, (c.Difference.High-c.Difference.Low)/2/baseline)
	}
}

// Simulation is what Simulate does.
type Simulation struct {
	Runs    int
	DelayUs float64 // injected into the third copy
	Margin  verdict.Margin
	Looks   int // as with --until-decided; 0 or 1: one look, after the recording's number of rounds
	Seed    uint64
}

// Simulate makes runs out of a recording: each is a stretch of consecutive rounds, as they came, from a random place on. So
// drifts, bursts and moods of the machine are in them as they are in a real run.
func Simulate(r *Recording, s Simulation) Tally {
	random := rand.New(rand.NewPCG(s.Seed, 17))
	rule := verdict.Rule{Level: verdict.LookLevel(s.Looks), Margin: s.Margin}
	var tally Tally
	for range s.Runs {
		var c verdict.Comparison
		start := random.IntN(len(r.Baseline) - min(r.Rounds, len(r.Baseline)-1))
		var baseline []float64
		for look := range max(1, s.Looks) {
			end := min(start+r.Rounds<<look, len(r.Baseline))
			baseline = r.Baseline[start:end]
			same := make([]float64, len(baseline))
			for i, v := range r.Same[start:end] {
				same[i] = v + s.DelayUs
			}
			floor := verdict.NoiseFloor(verdict.Compare(r.Again[start:end], baseline, 0, rule))
			c = verdict.Compare(same, baseline, floor, rule)
			if c.Kind != verdict.Inconclusive {
				break
			}
		}
		tally.count(c, s.DelayUs, stats.Median(baseline), s.Margin)
	}
	return tally
}
