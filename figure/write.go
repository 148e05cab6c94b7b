package figure

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// pngDPI makes a PNG of 900 pixels' width.
const pngDPI = 150

// WriteSVG writes the figure as an SVG element, to be a file of its own or a part of an HTML page. It loads nothing: text is in
// Liberation Sans where that is there, else in Arial or Helvetica, whose letters are as wide.
func (f *Figure) WriteSVG(out io.Writer) error {
	w, h := f.size()
	canvas := vgsvg.New(w, h)
	if err := f.draw(draw.New(canvas)); err != nil {
		return err
	}
	var text bytes.Buffer
	if _, err := canvas.WriteTo(&text); err != nil {
		return fmt.Errorf("drawing figure %q: %w", f.title, err)
	}
	// gonum's own first lines are an XML declaration, which may not stand within HTML, and a size that does not shrink.
	_, body, found := strings.Cut(text.String(), "xmlns:xlink=\"http://www.w3.org/1999/xlink\">")
	if !found {
		return fmt.Errorf("drawing figure %q: the SVG begins otherwise than expected", f.title)
	}
	body = strings.ReplaceAll(body, "font-family:Liberation Sans", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif")
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %g %g" role="img" aria-label="%s">%s`,
		w.Points()*4/3, h.Points()*4/3, w.Points(), h.Points(), html.EscapeString(f.title), body)
	return err
}

// SVG is what WriteSVG writes.
func (f *Figure) SVG() (string, error) {
	var text strings.Builder
	err := f.WriteSVG(&text)
	return text.String(), err
}

// WritePNG writes the figure as a PNG.
func (f *Figure) WritePNG(out io.Writer) error {
	w, h := f.size()
	canvas := vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(pngDPI))
	if err := f.draw(draw.New(canvas)); err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(out); err != nil {
		return fmt.Errorf("writing figure %q: %w", f.title, err)
	}
	return nil
}

// SavePNG writes the figure into a file.
func (f *Figure) SavePNG(path string) error {
	var picture bytes.Buffer
	if err := f.WritePNG(&picture); err != nil {
		return err
	}
	return os.WriteFile(path, picture.Bytes(), 0o644)
}

// size gives bars as much height as they need.
func (f *Figure) size() (w, h vg.Length) {
	if !f.horizontal() {
		return width, height
	}
	rows := len(f.rows())
	return width, vg.Length(80+18*len(f.references)+18*len(f.layers)) + vg.Length(rows)*f.rowHeight()
}

func (f *Figure) rowHeight() vg.Length { return vg.Length(barHeight*len(f.layers) + groupSpace) }

// rows are the labels of all bars, in the order in which they came.
func (f *Figure) rows() []string {
	var rows []string
	seen := map[string]bool{}
	for _, layer := range f.layers {
		for _, bar := range layer.bars {
			if !seen[bar.Label] {
				seen[bar.Label] = true
				rows = append(rows, bar.Label)
			}
		}
	}
	return rows
}

func (f *Figure) draw(c draw.Canvas) error {
	if len(f.layers) == 0 {
		f.fail("it is empty")
	}
	if f.err != nil {
		return f.err
	}
	p := plot.New()
	p.BackgroundColor = nil
	styleAxis(&p.X, f.xLabel)
	styleAxis(&p.Y, f.yLabel)
	if err := f.ranges(p); err != nil {
		return err
	}
	scale(&p.X, f.logX)
	scale(&p.Y, f.logY)
	p.Add(rules{f})
	rows := f.rows()
	for i, layer := range f.layers {
		if layer.kind == bars {
			p.Add(barLayer{layer, colourOf(i), rows, i, len(f.layers)})
		} else {
			p.Add(curve{layer, colourOf(i), markerOf(i)})
		}
	}
	if f.horizontal() {
		p.Y.Tick.Marker = namedTicks(rows)
		p.Y.Tick.Length = 0
		p.Y.Padding = 0
	}
	c.SetColor(colourWhite)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin-vg.Points(6), margin, -margin)
	c.FillText(titleStyle(), vg.Point{X: c.Min.X, Y: c.Max.Y}, f.title)
	c.Max.Y -= vg.Points(titleSize + 6)
	c.Max.Y -= f.drawLegend(c)
	p.Draw(c)
	return nil
}

// ranges sets the axes to what is shown, and 5% more on each side where that is not 0.
func (f *Figure) ranges(p *plot.Plot) error {
	x, y := newSpan(f.logX), newSpan(f.logY)
	values := &y
	if f.horizontal() {
		values = &x
		y.include(-0.5, float64(len(f.rows()))-0.5)
	}
	for _, layer := range f.layers {
		for _, point := range layer.points {
			x.include(point.X)
			y.include(point.Y)
			if point.Low != point.High {
				y.include(point.Low, point.High)
			}
		}
		for _, bar := range layer.bars {
			x.include(0, bar.Value)
			if bar.Low != bar.High {
				x.include(bar.Low, bar.High)
			}
		}
	}
	for _, reference := range f.references {
		values.include(reference.value)
	}
	if f.fromZero {
		values.include(0)
	}
	for _, axis := range []struct {
		name        string
		span        span
		logarithmic bool
	}{{"x", x, f.logX}, {"y", y, f.logY}} {
		if axis.logarithmic && axis.span.low <= 0 {
			return fmt.Errorf("figure %q: %g has no place on a logarithmic %s axis", f.title, axis.span.low, axis.name)
		}
	}
	values.widen()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = x.low, x.high, y.low, y.high
	return nil
}

// span is what an axis shows.
type span struct {
	low, high   float64
	logarithmic bool
}

func newSpan(logarithmic bool) span { return span{math.Inf(1), math.Inf(-1), logarithmic} }

func (s *span) include(values ...float64) {
	for _, v := range values {
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
}

func (s *span) widen() {
	if s.logarithmic {
		s.high *= 1.1
		return
	}
	room := 0.05 * (s.high - s.low)
	if room == 0 {
		room = max(0.05*math.Abs(s.high), 0.5)
	}
	if s.low != 0 {
		s.low -= room
	}
	if s.high != 0 {
		s.high += room
	}
}
