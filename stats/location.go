package stats

import (
	"math"
	"slices"
)

// Mean is the arithmetic mean; NaN of no values.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	// Kahan's summation: a run's values add up to far more than each of them.
	var sum, lost float64
	for _, v := range values {
		y := v - lost
		t := sum + y
		lost = (t - sum) - y
		sum = t
	}
	return sum / float64(len(values))
}

// Median is the middle value, or the mean of the two middle ones; NaN of no values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile is the value that a share q (0 to 1) of all lies below, interpolated between neighbours: Hyndman and Fan's
// definition 7, which R and NumPy use by default. It is NaN of no values, and leaves their order alone.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return quantileSorted(slices.Sorted(slices.Values(values)), q)
}

func quantileSorted(sorted []float64, q float64) float64 {
	at := min(max(q, 0), 1) * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	fraction := at - float64(i)
	return sorted[i]*(1-fraction) + sorted[i+1]*fraction
}

// MedianOfRounded is the median of values that were rounded to multiples of resolution, the median of grouped data: a
// value stands for an interval as wide as the resolution around it, filled evenly. The plain median of times that a
// tool prints in whole us is a whole number itself, and jumps by as much as the effects that are to be measured.
// A resolution of 0 gives the plain median.
func MedianOfRounded(values []float64, resolution float64) float64 {
	middle := Median(values)
	if resolution <= 0 || len(values) == 0 {
		return middle
	}
	half := resolution / 2
	// The middle of an even number may lie between two groups that touch nothing in between: then it stands.
	below, within := 0, 0
	for _, v := range values {
		switch {
		case v < middle-half:
			below++
		case v <= middle+half:
			within++
		}
	}
	if within == 0 {
		return middle
	}
	share := (float64(len(values))/2 - float64(below)) / float64(within)
	return middle - half + min(max(share, 0), 1)*resolution
}
