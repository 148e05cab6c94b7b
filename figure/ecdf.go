package figure

import (
	"math"
	"slices"
)

// distributionSteps bounds how many steps a distribution is drawn with: more cannot be told apart, and would make the
// file of a million values a hundred megabytes.
const distributionSteps = 600

// AddECDF adds the empirical distribution of values: at each x the share of values up to it.
func (f *Figure) AddECDF(name string, values []float64) *Figure {
	sorted := slices.Sorted(slices.Values(values))
	var points []Point
	for _, i := range linearRanks(len(sorted)) {
		points = append(points, at(sorted[i], float64(i+1)/float64(len(sorted))))
	}
	return f.add(name, steps, points)
}

// AddTail adds the other end of the distribution on a logarithmic axis: at each x the share 1-q of values that are not
// below it. p99 is where it crosses 0.01. It ends at the largest value, whose share is one of all.
func (f *Figure) AddTail(name string, values []float64) *Figure {
	f.logY = true
	sorted := slices.Sorted(slices.Values(values))
	var points []Point
	for _, i := range tailRanks(len(sorted)) {
		points = append(points, at(sorted[i], float64(len(sorted)-i)/float64(len(sorted))))
	}
	return f.add(name, steps, points)
}

func at(x, y float64) Point { return Point{X: x, Y: y, Low: y, High: y} }

// linearRanks picks ranks of n sorted values, the first and the last among them.
func linearRanks(n int) []int {
	return ranks(n, func(share float64) float64 { return share * float64(n-1) })
}

// tailRanks picks ranks whose distances from the end are in proportion, so that each decade of 1-q gets as many.
func tailRanks(n int) []int {
	return ranks(n, func(share float64) float64 { return float64(n) - math.Pow(float64(n), 1-share) })
}

func ranks(n int, at func(share float64) float64) []int {
	var picked []int
	steps := min(n, distributionSteps)
	for i := range steps {
		rank := n - 1
		if i < steps-1 {
			rank = int(at(float64(i) / float64(steps-1)))
		}
		if len(picked) == 0 || rank > picked[len(picked)-1] {
			picked = append(picked, rank)
		}
	}
	return picked
}
