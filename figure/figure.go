// Package figure draws measurements in one house style, as SVG and as PNG: lines with intervals, bars, time series,
// distributions and their tails.
//
//	f := figure.New("Effect of packet size", "payload (bytes)", "container less native (µs)")
//	f.AddSeries("ping", []figure.Point{{X: 16, Y: 12.1, Low: 11.8, High: 12.6}, {X: 56, Y: 12.0, Low: 11.7, High: 12.3}})
//	f.AddReference("paper", 50)
//	err := f.WriteSVG(out)
//
// A figure says what it cannot draw (a value that is no number, a zero on a logarithmic axis) when it is written. The same
// data give the same bytes, so that a figure in the tree can be compared with what its data give.
package figure

import (
	"fmt"
	"math"
)

// Point is a value and, where Low and High differ, its interval, drawn as an error bar.
type Point struct {
	X, Y, Low, High float64
}

// Bar is a labelled value and, where Low and High differ, its interval.
type Bar struct {
	Label            string
	Value, Low, High float64
}

// Figure is one picture with one pair of axes. Bars lie, so that their labels can be read: their values are on the x axis.
// So a figure has bars or anything else, not both.
type Figure struct {
	title, xLabel, yLabel string
	layers                []layer
	references            []reference
	logX, logY, fromZero  bool
	err                   error
}

// layer is what one Add call gave.
type layer struct {
	name   string
	kind   kind
	points []Point
	bars   []Bar
}

type kind int

const (
	line kind = iota
	dots
	steps
	bars
)

type reference struct {
	name  string
	value float64
}

// New makes an empty figure. Axis labels carry the unit: "RTT (µs)".
func New(title, xLabel, yLabel string) *Figure {
	return &Figure{title: title, xLabel: xLabel, yLabel: yLabel}
}

// LogX makes the x axis logarithmic.
func (f *Figure) LogX() *Figure { f.logX = true; return f }

// LogY makes the y axis logarithmic.
func (f *Figure) LogY() *Figure { f.logY = true; return f }

// FromZero has the axis of values begin (or end) at 0, as bars always do: without it a small difference fills the picture.
func (f *Figure) FromZero() *Figure { f.fromZero = true; return f }

// AddSeries adds a line with a marker and an error bar at each point.
func (f *Figure) AddSeries(name string, points []Point) *Figure { return f.add(name, line, points) }

// AddDots adds points without a line: a time series, reply by reply.
func (f *Figure) AddDots(name string, points []Point) *Figure { return f.add(name, dots, points) }

// AddBars adds one bar for each label; further calls put theirs beside those of the same label.
func (f *Figure) AddBars(name string, all []Bar) *Figure {
	for _, b := range all {
		f.check(name, b.Value, b.Low, b.High)
	}
	return f.append(layer{name: name, kind: bars, bars: all})
}

// AddReference adds a dashed line across the figure at a value: a target, or what somebody else has measured.
func (f *Figure) AddReference(name string, value float64) *Figure {
	f.check(name, value)
	f.references = append(f.references, reference{name, value})
	return f
}

func (f *Figure) add(name string, k kind, points []Point) *Figure {
	for _, p := range points {
		f.check(name, p.X, p.Y, p.Low, p.High)
	}
	return f.append(layer{name: name, kind: k, points: points})
}

func (f *Figure) append(l layer) *Figure {
	if len(l.points)+len(l.bars) == 0 {
		f.fail("%s has no values", l.name)
	}
	if len(f.layers) > 0 && (f.layers[0].kind == bars) != (l.kind == bars) {
		f.fail("%s: a figure has bars or anything else, not both", l.name)
	}
	f.layers = append(f.layers, l)
	return f
}

func (f *Figure) check(name string, values ...float64) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			f.fail("%s: %v cannot be drawn", name, v)
		}
	}
}

// fail keeps the first error, which is told when the figure is written.
func (f *Figure) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("figure %q: "+format, append([]any{f.title}, args...)...)
	}
}

// horizontal says whether values are on the x axis.
func (f *Figure) horizontal() bool { return len(f.layers) > 0 && f.layers[0].kind == bars }
