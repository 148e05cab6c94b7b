package figure

import (
	"image/color"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes, in points. At the width of a phone (360 px) the smallest text is still 8 px high.
const (
	width      = 432
	height     = 288
	titleSize  = 12
	labelSize  = 11
	tickSize   = 10
	margin     = 8
	barHeight  = 12
	groupSpace = 9
	markerSize = 3
	dotSize    = 1.3
	lineWidth  = 1.5
	thinWidth  = 0.75
)

// Colours that people with any colour vision tell apart, and that differ in lightness, too (Okabe and Ito 2008).
var colours = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, // blue
	{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	{0x00, 0x9e, 0x73, 0xff}, // green
	{0xcc, 0x79, 0xa7, 0xff}, // pink
	{0xe6, 0x9f, 0x00, 0xff}, // orange
	{0x56, 0xb4, 0xe9, 0xff}, // sky
	{0x22, 0x22, 0x22, 0xff}, // black
}

var (
	ink  = color.RGBA{0x22, 0x22, 0x22, 0xff}
	grey = color.RGBA{0x66, 0x66, 0x66, 0xff}
	grid = color.RGBA{0xe3, 0xe3, 0xe3, 0xff}
)

// Markers, so that lines are told apart on paper, too.
var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.CrossGlyph{},
}

func colourOf(i int) color.Color      { return colours[i%len(colours)] }
func markerOf(i int) draw.GlyphDrawer { return markers[i%len(markers)] }
func points(lengths ...float64) []vg.Length {
	var all []vg.Length
	for _, l := range lengths {
		all = append(all, vg.Points(l))
	}
	return all
}

func stroke(c color.Color, width float64, dashes ...float64) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: vg.Points(width), Dashes: points(dashes...)}
}

func textStyle(size float64, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)},
		XAlign: draw.XLeft, YAlign: draw.YBottom, Handler: plot.DefaultTextHandler,
	}
}

func titleStyle() text.Style {
	style := textStyle(titleSize, ink)
	style.Font.Weight = xfont.WeightBold
	style.YAlign = draw.YTop
	return style
}

// styleAxis gives an axis the house style; its alignments are gonum's own.
func styleAxis(axis *plot.Axis, label string) {
	axis.Label.Text = label
	for _, style := range []struct {
		text *text.Style
		size float64
	}{{&axis.Label.TextStyle, labelSize}, {&axis.Tick.Label, tickSize}} {
		ours := textStyle(style.size, ink)
		style.text.Font, style.text.Color, style.text.Handler = ours.Font, ours.Color, ours.Handler
	}
	axis.LineStyle, axis.Tick.LineStyle = stroke(grey, thinWidth), stroke(grey, thinWidth)
	axis.Tick.Length = vg.Points(4)
	axis.Padding = vg.Points(3)
	axis.Label.Padding = vg.Points(3)
}
