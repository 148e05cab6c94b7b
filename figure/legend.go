package figure

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var colourWhite = color.White

const (
	swatchWidth  = 18
	legendLine   = 16
	legendSpace  = 14
	legendBefore = 5
)

// entry is one name with its line, marker or block.
type entry struct {
	name   string
	swatch func(c draw.Canvas, from vg.Point)
}

func (f *Figure) entries() []entry {
	var all []entry
	for i, layer := range f.layers {
		if layer.name == "" {
			continue
		}
		all = append(all, entry{layer.name, func(c draw.Canvas, from vg.Point) {
			to := vg.Point{X: from.X + swatchWidth, Y: from.Y}
			middle := vg.Point{X: from.X + swatchWidth/2, Y: from.Y}
			style := stroke(colourOf(i), lineWidth)
			switch layer.kind {
			case bars:
				style.Width = vg.Points(8)
				c.StrokeLine2(style, from.X, from.Y, to.X, to.Y)
			case dots:
				c.DrawGlyph(draw.GlyphStyle{Color: colourOf(i), Radius: vg.Points(2 * dotSize), Shape: draw.CircleGlyph{}}, middle)
			case line:
				c.DrawGlyph(draw.GlyphStyle{Color: colourOf(i), Radius: vg.Points(markerSize), Shape: markerOf(i)}, middle)
				fallthrough
			default:
				c.StrokeLine2(style, from.X, from.Y, to.X, to.Y)
			}
		}})
	}
	for i, reference := range f.references {
		if reference.name == "" {
			continue
		}
		all = append(all, entry{reference.name, func(c draw.Canvas, from vg.Point) {
			c.StrokeLine2(referenceStyle(i), from.X, from.Y, from.X+swatchWidth, from.Y)
		}})
	}
	return all
}

// drawLegend writes the names above the axes, where they hide nothing, in as many lines as they need; it returns their height.
func (f *Figure) drawLegend(c draw.Canvas) vg.Length {
	style := textStyle(tickSize, ink)
	style.YAlign = draw.YCenter
	x, lines := c.Min.X, 0
	entries := f.entries()
	for i, e := range entries {
		needed := swatchWidth + legendBefore + style.Width(e.name)
		if i == 0 || x+needed > c.Max.X {
			x, lines = c.Min.X, lines+1
		}
		y := c.Max.Y - vg.Length(legendLine*lines) + legendLine/2
		e.swatch(c, vg.Point{X: x, Y: y})
		c.FillText(style, vg.Point{X: x + swatchWidth + legendBefore, Y: y}, e.name)
		x += needed + legendSpace
	}
	return vg.Length(legendLine*lines + 4)
}
