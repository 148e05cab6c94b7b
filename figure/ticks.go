package figure

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// logTicks labels decades and, where there are few of them, 2 and 5 between.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) []plot.Tick {
	if low <= 0 { // told as an error elsewhere; here it must only not run on for ever
		return nil
	}
	few := math.Log10(high/low) < 2.5
	var ticks []plot.Tick
	for decade := math.Floor(math.Log10(low)); decade <= math.Ceil(math.Log10(high)); decade++ {
		for factor := 1.0; factor < 10; factor++ {
			tick := plot.Tick{Value: factor * math.Pow(10, decade)}
			if tick.Value < low || tick.Value > high {
				continue // there would be room made for it, outside of the axis
			}
			if factor == 1 || few && (factor == 2 || factor == 5) {
				tick.Label = strconv.FormatFloat(tick.Value, 'g', 6, 64)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// namedTicks labels whole numbers, for bars: the first row is on top, and the axis counts from the bottom.
type namedTicks []string

func (n namedTicks) Ticks(_, _ float64) []plot.Tick {
	var ticks []plot.Tick
	for _, name := range n {
		ticks = append(ticks, plot.Tick{Value: float64(rowOf(n, name)), Label: name})
	}
	return ticks
}

func scale(axis *plot.Axis, logarithmic bool) {
	if logarithmic {
		axis.Scale, axis.Tick.Marker = plot.LogScale{}, logTicks{}
	}
}
