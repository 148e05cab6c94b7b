package eval

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// WriteHTML writes one page with the figures and the whole text. It loads nothing from elsewhere.
func (r *Report) WriteHTML(out io.Writer) error {
	type section struct {
		SVG     template.HTML
		Caption string
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		return err
	}
	page := struct {
		*Report
		MetCount int
		Figures  []section
		Text     string
	}{Report: r, MetCount: len(r.Targets) - r.Missed(), Text: text.String()}
	for _, picture := range r.Pictures() {
		var svg bytes.Buffer
		if err := picture.Figure.WriteSVG(&svg); err != nil {
			return fmt.Errorf("drawing %s: %w", picture.File, err)
		}
		page.Figures = append(page.Figures, section{template.HTML(svg.String()), picture.Caption}) //nolint:gosec // our own drawing
	}
	return pageTemplate.Execute(out, page)
}

// SaveHTML writes the page into a file.
func (r *Report) SaveHTML(path string) error {
	if err := saveFile(path, r.WriteHTML); err != nil {
		return fmt.Errorf("saving the page: %w", err)
	}
	return nil
}

// Measured is the value with its unit.
func (t Target) Measured() string { return number(t.Value, t.Unit) }

// Promised is the bound with its direction.
func (t Target) Promised() string {
	if t.AtLeast {
		return "≥ " + number(t.Bound, t.Unit)
	}
	return "≤ " + number(t.Bound, t.Unit)
}
