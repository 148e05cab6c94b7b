package report

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Statistic reduces a run to one number.
type Statistic struct {
	Name     string
	Quantile float64 // 0: the mean, or a rate
}

// MessagesBeyond is how many of a run's messages must lie beyond a quantile for the quantile to mean something.
const MessagesBeyond = 10

// statistics of round trips, the one that verdicts are about first.
var rttStatistics = []Statistic{
	{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}, {"mean", 0},
}

// enough is whether so many messages have this quantile.
func (s Statistic) enough(messages int64) bool {
	return messages > 0 && float64(messages)*(1-s.Quantile) >= MessagesBeyond
}

// quantiles reads several quantiles, in ascending order, from a histogram. Within a bucket values are taken to be spread
// evenly: at 20 us a bucket is 16 ns wide, and a median that jumped by so much would hide smaller differences.
func quantiles(h *hdrhistogram.Histogram, qs []float64) []float64 {
	found := make([]float64, len(qs))
	for i := range found {
		found[i] = math.NaN()
	}
	total, below, next := float64(h.TotalCount()), 0.0, 0
	if total == 0 {
		return found
	}
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for next < len(qs) && qs[next]*total <= below+float64(bar.Count) {
			share := (qs[next]*total - below) / float64(bar.Count)
			found[next] = float64(bar.From) + share*float64(bar.To+1-bar.From)
			next++
		}
		below += float64(bar.Count)
	}
	return found
}
