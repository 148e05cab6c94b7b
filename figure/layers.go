package figure

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The plotters; gonum's plot calls Plot with the area inside the axes.

type curve struct {
	layer
	colour color.Color
	marker draw.GlyphDrawer
}

func (l curve) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	style := stroke(l.colour, lineWidth)
	path := make([]vg.Point, 0, len(l.points))
	for i, point := range l.points {
		if l.kind == steps && i > 0 {
			path = append(path, vg.Point{X: trX(point.X), Y: trY(l.points[i-1].Y)})
		}
		path = append(path, vg.Point{X: trX(point.X), Y: trY(point.Y)})
	}
	if l.kind != dots {
		c.StrokeLines(style, c.ClipLinesXY(path)...)
	}
	if l.kind == steps {
		return
	}
	size, marker := float64(markerSize), l.marker
	if l.kind == dots {
		size, marker = dotSize, draw.CircleGlyph{}
	}
	for _, point := range l.points {
		x := trX(point.X)
		if point.Low != point.High {
			whisker(c, stroke(l.colour, lineWidth), vg.Point{X: x, Y: trY(point.Low)}, vg.Point{X: x, Y: trY(point.High)})
		}
		c.DrawGlyph(draw.GlyphStyle{Color: l.colour, Radius: vg.Points(size), Shape: marker}, vg.Point{X: x, Y: trY(point.Y)})
	}
}

// whisker is an error bar from a to b, with caps across.
func whisker(c draw.Canvas, style draw.LineStyle, a, b vg.Point) {
	cap := vg.Points(3)
	across := vg.Point{X: cap}
	if a.Y == b.Y {
		across = vg.Point{Y: cap}
	}
	c.StrokeLines(style, []vg.Point{a, b}, []vg.Point{a.Sub(across), a.Add(across)}, []vg.Point{b.Sub(across), b.Add(across)})
}

// barLayer draws one of several AddBars calls; rows are the labels of all of them, the first on top.
type barLayer struct {
	layer
	colour       color.Color
	rows         []string
	index, count int
}

func (l barLayer) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	half := vg.Points(barHeight) / 2
	for _, bar := range l.bars {
		y := trY(float64(rowOf(l.rows, bar.Label)))
		y += vg.Points(barHeight) * vg.Length(float64(l.count-1)/2-float64(l.index))
		zero, end := trX(0), trX(bar.Value)
		c.FillPolygon(l.colour, []vg.Point{{X: zero, Y: y - half + 1}, {X: end, Y: y - half + 1}, {X: end, Y: y + half - 1}, {X: zero, Y: y + half - 1}})
		if bar.Low != bar.High {
			whisker(c, stroke(ink, 1), vg.Point{X: trX(bar.Low), Y: y}, vg.Point{X: trX(bar.High), Y: y})
		}
	}
}

// rowOf counts from the bottom, as the axis does.
func rowOf(rows []string, label string) int {
	for i, row := range rows {
		if row == label {
			return len(rows) - 1 - i
		}
	}
	return 0
}

// rules are lines across the area: the grid at labelled ticks, zero, and the references.
type rules struct{ figure *Figure }

func (r rules) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	across := func(style draw.LineStyle, value float64) {
		if r.figure.horizontal() {
			c.StrokeLine2(style, trX(value), c.Min.Y, trX(value), c.Max.Y)
		} else {
			c.StrokeLine2(style, c.Min.X, trY(value), c.Max.X, trY(value))
		}
	}
	axis := p.Y
	if r.figure.horizontal() {
		axis = p.X
	}
	for _, tick := range axis.Tick.Marker.Ticks(axis.Min, axis.Max) {
		if tick.Label == "" || tick.Value < axis.Min || tick.Value > axis.Max {
			continue
		}
		style := stroke(grid, thinWidth)
		if tick.Value == 0 {
			style = stroke(grey, thinWidth)
		}
		across(style, tick.Value)
	}
	for i, reference := range r.figure.references {
		across(referenceStyle(i), reference.value)
	}
}

func referenceStyle(i int) draw.LineStyle {
	dashes := [][]float64{{5, 3}, {1.5, 2}, {8, 2, 1.5, 2}}
	return stroke(grey, 1, dashes[i%len(dashes)]...)
}
