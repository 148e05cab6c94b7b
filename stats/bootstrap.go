package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate over rounds and how sure it is.
type Interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Level    float64 `json:"level"`  // 0.95: of many such intervals, this share holds the true value
	Rounds   int     `json:"rounds"` // how many samples it comes from; 0: nothing is known
}

// String gives the estimate and its bounds with two decimals; of one round, which bounds nothing, the estimate alone.
func (i Interval) String() string {
	if i.Rounds == 0 {
		return "-"
	}
	if i.Rounds == 1 {
		return fmt.Sprintf("%.2f", i.Estimate)
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", i.Estimate, i.Low, i.High)
}

const (
	level     = 0.95
	resamples = 4000 // the bounds' own Monte Carlo error is then about a hundredth of the interval's width
)

// BootstrapMedian is the median over rounds with its interval; one value per round.
func BootstrapMedian(rounds []float64, seed uint64) Interval {
	return Bootstrap(rounds, Median, seed)
}

// Bootstrap is a statistic over rounds with its 95% percentile bootstrap interval (Efron 1979): the statistic of many
// samples drawn from the rounds with replacement. The same seed gives the same interval. With fewer than some eight
// rounds it is too narrow, as every interval from so few is; one round gives an interval without width.
func Bootstrap(rounds []float64, statistic func([]float64) float64, seed uint64) Interval {
	result := Interval{Level: level, Rounds: len(rounds)}
	if len(rounds) == 0 {
		return result
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(rounds))))
	drawn := make([]float64, len(rounds))
	estimates := make([]float64, resamples)
	for i := range estimates {
		for k := range drawn {
			drawn[k] = rounds[random.IntN(len(rounds))]
		}
		estimates[i] = statistic(drawn)
	}
	slices.Sort(estimates)
	result.Estimate = statistic(rounds)
	result.Low = quantileSorted(estimates, (1-level)/2)
	result.High = quantileSorted(estimates, (1+level)/2)
	return result
}

// Differences pairs two arms round by round: a minus b. Both have one value per round, in the same order; it panics
// where their lengths differ, since a shifted pair would look like a result.
func Differences(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 { return x - y })
}

// Ratios pairs two arms round by round: a over b, NaN where b is 0.
func Ratios(a, b []float64) []float64 {
	return pairs(a, b, func(x, y float64) float64 {
		if y == 0 {
			return math.NaN()
		}
		return x / y
	})
}

func pairs(a, b []float64, f func(x, y float64) float64) []float64 {
	if len(a) != len(b) {
		panic(fmt.Sprintf("pairing %d rounds with %d", len(a), len(b)))
	}
	paired := make([]float64, len(a))
	for i := range a {
		paired[i] = f(a[i], b[i])
	}
	return paired
}

// RatioOfMedians is the median of a over the median of b, drawn together by round: for effects so small that b is near 0 in
// some rounds, where the ratio of a single round means nothing.
func RatioOfMedians(a, b []float64, seed uint64) Interval {
	indexes := make([]float64, len(a))
	for i := range indexes {
		indexes[i] = float64(i)
	}
	pairs(a, b, func(x, _ float64) float64 { return x }) // for its check
	one, other := make([]float64, len(a)), make([]float64, len(b))
	return Bootstrap(indexes, func(drawn []float64) float64 {
		for i, index := range drawn {
			one[i], other[i] = a[int(index)], b[int(index)]
		}
		return Median(one) / Median(other)
	}, seed)
}
