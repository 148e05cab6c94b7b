package report

import (
	"math"

	"tare/bench/load"
	"tare/bench/verdict"
	"tare/stats"
)

// Result is what the rounds say of one arm.
type Result struct {
	Arm string `json:"arm"`
	// Verdict is on the first statistic; empty for the baseline.
	Verdict    verdict.Kind `json:"verdict,omitempty"`
	Statistics []Figure     `json:"statistics"`
	Runs       int          `json:"runs"`                   // that count
	Flagged    int          `json:"flagged_runs,omitempty"` // of these; they count
	Failed     int          `json:"failed_runs,omitempty"`  // others, which do not count
	// WithoutFlagged is the first statistic again without rounds in which this arm or the baseline was flagged.
	WithoutFlagged *verdict.Comparison `json:"without_flagged,omitempty"`
}

// Figure is one statistic of an arm.
type Figure struct {
	Statistic string         `json:"statistic"` // p50 to p99.99, mean, or rate
	Unit      string         `json:"unit"`      // us of a full round trip, bytes/s or requests/s
	Value     stats.Interval `json:"value"`     // the arm's own: the median over rounds
	// Against the baseline; nil for the baseline itself.
	Against *verdict.Comparison `json:"against_baseline,omitempty"`
}

// Comparison is the first statistic against the baseline; nil where there is none.
func (r Result) Comparison() *verdict.Comparison {
	if len(r.Statistics) == 0 {
		return nil
	}
	return r.Statistics[0].Against
}

// rate is the statistic of throughput.
const rate = "rate"

// Analyse works out the results of every experiment, and replaces what was there.
func (r *Report) Analyse() {
	for i := range r.Experiments {
		r.Experiments[i].Results = r.Experiments[i].analyse(r.Method, r.Seed)
	}
}

// Analyse gives the results of one experiment.
func (e *Experiment) analyse(m Method, seed uint64) []Result {
	columns := e.columns()
	floors := map[string]float64{}
	results := make([]Result, 0, len(e.Arms))
	// The second copy of the baseline goes first: it gives the floor for all others.
	for _, arm := range e.armsAgainFirst() {
		result := e.result(columns, arm, m, floors, seed)
		if arm == e.Again {
			for _, figure := range result.Statistics {
				if figure.Against != nil {
					floors[figure.Statistic] = verdict.NoiseFloor(*figure.Against)
				}
			}
		}
		results = append(results, result)
	}
	ordered := make([]Result, 0, len(results))
	for _, arm := range e.Arms {
		for _, result := range results {
			if result.Arm == arm.Name {
				ordered = append(ordered, result)
			}
		}
	}
	return ordered
}

func (e *Experiment) armsAgainFirst() (names []string) {
	if e.Again != "" {
		names = append(names, e.Again)
	}
	for _, arm := range e.Arms {
		if arm.Name != e.Again {
			names = append(names, arm.Name)
		}
	}
	return names
}

// column is one arm's rounds; what is missing is NaN.
type column struct {
	values          map[string][]float64 // by statistic
	flagged         []bool
	runs, flags, no int
}

// columns reduces each run to numbers.
func (e *Experiment) columns() map[string]*column {
	columns := map[string]*column{}
	for _, arm := range e.Arms {
		c := &column{values: map[string][]float64{}, flagged: make([]bool, len(e.Rounds))}
		for _, s := range e.statistics() {
			c.values[s.Name] = make([]float64, len(e.Rounds))
			for i := range e.Rounds {
				c.values[s.Name][i] = math.NaN()
			}
		}
		columns[arm.Name] = c
	}
	for i, round := range e.Rounds {
		for _, run := range round.Runs {
			c := columns[run.Arm]
			switch {
			case c == nil:
			case run.Failed != "":
				c.no++
			default:
				c.runs++
				if len(run.Flags) > 0 {
					c.flags++
					c.flagged[i] = true
				}
				e.reduce(run, func(name string, value float64) { c.values[name][i] = value })
			}
		}
	}
	return columns
}

// statistics are those of the experiment's unit, the one that the verdict is about first.
func (e *Experiment) statistics() []Statistic {
	switch e.Unit {
	case load.BytesPerSecond:
		return []Statistic{{Name: rate}}
	case load.RequestsPerSecond:
		return append([]Statistic{{Name: rate}}, rttStatistics...)
	}
	return rttStatistics
}

// reduce gives the statistics of one run, those that it has messages enough for.
func (e *Experiment) reduce(run Run, give func(name string, value float64)) {
	switch e.Unit {
	case load.BytesPerSecond:
		give(rate, run.BytesPerSecond)
	case load.RequestsPerSecond:
		give(rate, run.RequestsPerSecond)
	}
	if run.RTT == "" || e.Unit == load.BytesPerSecond {
		return
	}
	histogram, err := run.RTT.Decode()
	if err != nil || histogram.TotalCount() == 0 {
		return // it was decoded when it was read, or has been encoded here
	}
	var names []string
	var qs []float64
	for _, s := range rttStatistics {
		if s.Quantile > 0 && s.enough(histogram.TotalCount()) {
			names, qs = append(names, s.Name), append(qs, s.Quantile)
		}
	}
	for i, ns := range quantiles(histogram, qs) {
		give(names[i], ns/1e3)
	}
	give("mean", histogram.Mean()/1e3)
}

func (e *Experiment) result(columns map[string]*column, arm string, m Method, floors map[string]float64, seed uint64) Result {
	own, baseline := columns[arm], columns[e.Baseline]
	result := Result{Arm: arm, Statistics: []Figure{}, Runs: own.runs, Flagged: own.flags, Failed: own.no}
	for i, s := range e.statistics() {
		unit := "us"
		if s.Name == rate {
			unit = string(e.Unit)
		}
		numbers := numbersOf(own.values[s.Name])
		if len(numbers) == 0 {
			continue
		}
		figure := Figure{Statistic: s.Name, Unit: unit, Value: stats.BootstrapMedian(numbers, seed)}
		if arm != e.Baseline && baseline != nil {
			rule := verdict.Rule{Level: m.Level, Margin: m.Margin, HigherIsBest: s.Name == rate}
			against := verdict.Compare(own.values[s.Name], baseline.values[s.Name], floors[s.Name], rule)
			figure.Against = &against
			if i == 0 {
				result.Verdict = against.Kind
				if own.flags+baseline.flags > 0 {
					without := verdict.Compare(without(own, own, baseline, s.Name), without(baseline, own, baseline, s.Name), floors[s.Name], rule)
					result.WithoutFlagged = &without
				}
			}
		}
		result.Statistics = append(result.Statistics, figure)
	}
	return result
}

func numbersOf(values []float64) (numbers []float64) {
	for _, v := range values {
		if !math.IsNaN(v) {
			numbers = append(numbers, v)
		}
	}
	return numbers
}

// without is a column without the rounds in which either of two arms was flagged.
func without(c, a, b *column, statistic string) []float64 {
	values := append([]float64(nil), c.values[statistic]...)
	for i := range values {
		if a.flagged[i] || b.flagged[i] {
			values[i] = math.NaN()
		}
	}
	return values
}
