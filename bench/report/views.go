package report

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/load"
	"tare/stats"
)

// Moment is one run's statistic, and when it ran.
type Moment struct {
	Seconds float64 // since the first round
	Value   float64 // of the statistic that verdicts are about
}

// OverTime gives an arm's runs that count.
func (e *Experiment) OverTime(arm string) (moments []Moment) {
	name := e.statistics()[0].Name
	for _, round := range e.Rounds {
		for _, run := range round.Runs {
			if run.Arm != arm || run.Failed != "" {
				continue
			}
			e.reduce(run, func(statistic string, value float64) {
				if statistic == name {
					moments = append(moments, Moment{run.StartSeconds, value})
				}
			})
		}
	}
	return moments
}

// Values are an arm's first statistic, one per round; NaN where it has no run that counts.
func (e *Experiment) Values(arm string) []float64 {
	own := e.columns()[arm]
	if own == nil {
		return nil
	}
	return own.values[e.statistics()[0].Name]
}

// Differences are the paired differences of an arm from the baseline in the first statistic, one per round that counts.
func (e *Experiment) Differences(arm string) []float64 {
	own, baseline := e.Values(arm), e.Values(e.Baseline)
	if len(own) != len(baseline) {
		return nil
	}
	return numbersOf(stats.Differences(own, baseline))
}

// Merged has all round trips of an arm's runs that count; nil where there are none.
func (e *Experiment) Merged(arm string) (*hdrhistogram.Histogram, error) {
	var merged *hdrhistogram.Histogram
	for _, round := range e.Rounds {
		for _, run := range round.Runs {
			if run.Arm != arm || run.Failed != "" || run.RTT == "" {
				continue
			}
			h, err := run.RTT.Decode()
			if err != nil {
				return nil, err
			}
			if merged == nil {
				merged = h
			} else {
				merged.Merge(h)
			}
		}
	}
	if merged == nil || merged.TotalCount() == 0 {
		return nil, nil
	}
	return merged, nil
}

// Scale is by what values are divided to be shown, and their unit then.
func (e *Experiment) Scale() (scale float64, unit string) {
	if e.Unit != load.BytesPerSecond && e.Unit != load.RequestsPerSecond {
		return 1, "µs"
	}
	largest := 0.0
	for _, result := range e.Results {
		if len(result.Statistics) > 0 {
			largest = max(largest, result.Statistics[0].Value.Estimate)
		}
	}
	return rateScale(e.Unit, largest)
}
