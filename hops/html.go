package hops

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

type htmlWay struct {
	Title      string
	Packets    int
	Routes     []htmlRoute
	Rows       []htmlRow
	Incomplete []string
}

type htmlRoute struct {
	Route
	Others bool // there are several
}

type htmlRow struct {
	Class, Name, Device, Points string
	Left, Width, TracerWidth    float64 // per cent
	Mean, P50, P99, Tracer      string
	Packets                     string
}

// WriteHTML renders the report as a page that loads nothing from elsewhere.
func (r *Report) WriteHTML(out io.Writer) error {
	data := struct {
		*Report
		Ways  []htmlWay
		Audit string
	}{r, []htmlWay{htmlOf("Out", &r.Egress), htmlOf("In", &r.Ingress)}, r.Account.audit()}
	return page.Execute(out, data)
}

func htmlOf(title string, s *Summary) htmlWay {
	w := htmlWay{Title: title, Packets: s.Packets}
	for _, route := range s.Routes[:min(len(s.Routes), 4)] {
		w.Routes = append(w.Routes, htmlRoute{route, len(s.Routes) > 1})
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Unexplained.Incomplete)) {
		w.Incomplete = append(w.Incomplete, packets(s.Unexplained.Incomplete[reason])+" "+reason.Text())
	}
	if s.Packets == 0 {
		return w
	}
	rows, unknown := s.shown()
	whole, at, last := 0.0, 0.0, -1
	for i, h := range rows {
		whole += h.shownMean(s)
		if h.InsidePackets > 0 {
			last = i
		}
	}
	percent := func(ns float64) float64 { return 100 * max(ns, 0) / max(whole, 1) }
	total := func() {
		w.Rows = append(w.Rows, htmlRow{Class: "inside", Name: "unexplained", Mean: us(s.Unexplained.MeanNS), Packets: fmt.Sprint(s.Unexplained.Hops)})
		for _, h := range unknown[:min(len(unknown), mostUnknown)] {
			w.Rows = append(w.Rows, htmlRow{Class: "inside unknown", Points: h.label(), P50: us(h.P50NS), P99: us(h.P99NS), Packets: fmt.Sprint(h.InsidePackets)})
		}
		w.Rows = append(w.Rows,
			htmlRow{Class: "inside total", Name: "= correction", Mean: us(s.Correction.MeanNS), P50: us(s.Correction.P50NS),
				P99: us(s.Correction.P99NS), Tracer: us(s.TracerNS), Packets: fmt.Sprint(s.Packets)})
	}
	for i, h := range rows {
		mean := h.shownMean(s)
		row := htmlRow{
			Name: h.Name, Device: h.Device, Left: percent(at), Width: percent(mean), TracerWidth: percent(min(h.TracerNS, mean)),
			Mean: us(mean), P50: us(h.P50NS), P99: us(h.P99NS), Tracer: us(h.TracerNS), Packets: fmt.Sprint(h.Packets),
		}
		if h.InsidePackets > 0 {
			row.Class = "inside"
		}
		if !h.Explained {
			row.Class += " unknown"
			row.Points = h.label()
		}
		at += mean
		w.Rows = append(w.Rows, row)
		if i == last {
			total()
		}
	}
	if last < 0 {
		total()
	}
	return w
}
