package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

func examples() map[string]*Figure {
	var values []float64
	for i := range 50_000 {
		values = append(values, 20-5*math.Log(1-(float64(i)+0.5)/50_000))
	}
	var series []Point
	for i := range 300 {
		series = append(series, Point{X: float64(i) / 10, Y: 20 + float64(i%7)})
	}
	return map[string]*Figure{
		"lines": New("Error < with floods", "flooding containers", "error (µs)").
			AddSeries("container raw", []Point{{0, 9, 8, 10}, {8, 12, 11, 14}, {32, 30, 22, 41}}).
			AddSeries("container corrected", []Point{{0, 1, 0.5, 1.4}, {8, 1.2, 1, 1.9}, {32, 2, 1, 4}}).
			AddReference("paper: 20 µs", 20),
		"bars": New("What watching adds", "added to the RTT (µs)", "").
			AddBars("native", []Bar{{"inert programs", 0.5, 0.4, 0.6}, {"inner-dev", 0.9, 0.8, 1.1}, {"none", -0.03, -0.1, 0.1}}).
			AddBars("container", []Bar{{"inert programs", 0.6, 0.4, 0.7}, {"inner-dev", 1, 0.8, 1.3}, {"ftrace, the same events", 2.7, 2.5, 2.9}}).
			AddReference("target", 1),
		"tail":   New("Tail", "RTT (µs)", "share of replies above").AddTail("container", values).LogX(),
		"ecdf":   New("ECDF", "RTT (µs)", "share of replies up to").AddECDF("container", values),
		"series": New("Series", "time (s)", "RTT (µs)").AddDots("container", series).FromZero(),
	}
}

func TestWrite(t *testing.T) {
	for name, f := range examples() {
		t.Run(name, func(t *testing.T) {
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			decoder := xml.NewDecoder(strings.NewReader(svg))
			for {
				if _, err := decoder.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("no XML: %v", err)
				}
			}
			if !strings.HasPrefix(svg, "<svg ") || strings.Contains(svg, "NaN") || strings.Contains(svg, "href") {
				t.Errorf("not an element that stands alone: %.300s", svg)
			}
			if len(svg) > 200_000 {
				t.Errorf("%d bytes", len(svg))
			}
			for _, layer := range f.layers {
				if !strings.Contains(svg, layer.name) {
					t.Errorf("%q is not in the legend", layer.name)
				}
			}
			again, _ := f.SVG()
			if again != svg {
				t.Error("drawn twice, it differs")
			}
			var picture bytes.Buffer
			if err := f.WritePNG(&picture); err != nil {
				t.Fatal(err)
			}
			decoded, err := png.Decode(&picture)
			if err != nil || decoded.Bounds().Dx() != width*pngDPI/72 {
				t.Errorf("%v, %v", err, decoded.Bounds())
			}
		})
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		figure *Figure
		want   string
	}{
		{"nothing", New("f", "", ""), "empty"},
		{"a series of nothing", New("f", "", "").AddSeries("s", nil), "s has no values"},
		{"no number", New("f", "", "").AddSeries("s", []Point{{X: 1, Y: math.NaN()}}), "NaN"},
		{"an infinite bound", New("f", "", "").AddBars("b", []Bar{{"x", 1, 0, math.Inf(1)}}), "+Inf"},
		{"bars and lines", New("f", "", "").AddBars("b", []Bar{{"x", 1, 1, 1}}).AddECDF("e", []float64{1}), "not both"},
		{"zero on a logarithmic axis", New("f", "", "").AddTail("t", []float64{0, 1}).LogX(), "logarithmic x axis"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.figure.WriteSVG(io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err := tt.figure.WritePNG(io.Discard); err == nil {
				t.Error("as PNG there is no error")
			}
		})
	}
}

// Beyond a number of steps ranks are picked: ends and order must hold, and in a tail each decade must keep its share.
func TestRanks(t *testing.T) {
	for _, n := range []int{1, 2, 7, distributionSteps, 1_000_000} {
		for name, picked := range map[string][]int{"linear": linearRanks(n), "tail": tailRanks(n)} {
			if len(picked) == 0 || picked[0] != 0 || picked[len(picked)-1] != n-1 {
				t.Fatalf("%s of %d: %v", name, n, picked)
			}
			for i := 1; i < len(picked); i++ {
				if picked[i] <= picked[i-1] {
					t.Fatalf("%s of %d: rank %d after %d", name, n, picked[i], picked[i-1])
				}
			}
		}
	}
	last := 0
	for _, rank := range tailRanks(1_000_000) {
		if rank >= 999_900 {
			last++
		}
	}
	if last < 50 {
		t.Errorf("%d steps for the last 100 of a million", last)
	}
}

func TestTailShares(t *testing.T) {
	f := New("f", "", "").AddTail("t", []float64{3, 1, 2, 4})
	want := []Point{at(1, 1), at(2, 0.75), at(3, 0.5), at(4, 0.25)}
	for i, p := range f.layers[0].points {
		if p != want[i] {
			t.Errorf("point %d is %v, want %v", i, p, want[i])
		}
	}
}
