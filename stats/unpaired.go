package stats

import (
	"math/rand/v2"
	"slices"
)

// BootstrapUnpaired is the difference of a statistic between two sets of rounds that do not belong together, such as those
// of two reports: a's less b's, each drawn anew by itself. Its interval is wider than one of paired rounds, and rightly so.
func BootstrapUnpaired(a, b []float64, statistic func([]float64) float64, seed uint64) Interval {
	result := Interval{Level: level, Rounds: min(len(a), len(b))}
	if result.Rounds == 0 {
		return result
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(a))<<32|uint64(len(b))))
	estimates := make([]float64, resamples)
	drawnA, drawnB := make([]float64, len(a)), make([]float64, len(b))
	for i := range estimates {
		for k := range drawnA {
			drawnA[k] = a[random.IntN(len(a))]
		}
		for k := range drawnB {
			drawnB[k] = b[random.IntN(len(b))]
		}
		estimates[i] = statistic(drawnA) - statistic(drawnB)
	}
	slices.Sort(estimates)
	result.Estimate = statistic(a) - statistic(b)
	result.Low = quantileSorted(estimates, (1-level)/2)
	result.High = quantileSorted(estimates, (1+level)/2)
	return result
}
