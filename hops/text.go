package hops

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// TextOptions say how a report is written for a person.
type TextOptions struct {
	Width int // columns; 0: 80
}

// Columns: the frame of the interval, the hop's name, where it leads to, four numbers; what is left is the bars'.
const (
	nameColumns   = 18
	numberColumns = 7
	leastBar      = 8
)

// WriteText renders the report as a waterfall: each bar begins where the one above it ends.
func (r *Report) WriteText(out io.Writer, options TextOptions) error {
	w := &textWriter{out: out, width: options.Width}
	if w.width == 0 {
		w.width = 80
	}
	for _, way := range []struct {
		title string
		s     *Summary
		ends  func(route string) string
	}{
		{"out", &r.Egress, func(route string) string { return "program → " + route }},
		{"in", &r.Ingress, func(route string) string { return route + " → program" }},
	} {
		w.way(way.title, r.Path, way.s, way.ends)
	}
	w.line("█ is inside what --path %s subtracts; ░ is outside. Times are in us.", r.Path)
	w.line("tracer: tare's own part of a hop, without some 0.05 us for calling its program.")
	w.line("%s", r.Account.audit())
	return w.err
}

// textWriter writes until the first error.
type textWriter struct {
	out   io.Writer
	width int
	err   error
}

func (w *textWriter) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (w *textWriter) way(title, path string, s *Summary, ends func(string) string) {
	route := ""
	if len(s.Routes) > 0 {
		route = ends(s.Routes[0].Devices)
	}
	head := fmt.Sprintf("%s: %s", title, route)
	count := packets(s.Packets)
	w.line("%s%*s", head, max(w.width-utf8.RuneCountInString(head), len(count)+2), count)
	for _, other := range s.Routes[min(1, len(s.Routes)):min(4, len(s.Routes))] {
		w.line("     %s: %d of them", ends(other.Devices), other.Packets)
	}
	if s.Packets > 0 {
		w.table(s)
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Unexplained.Incomplete)) {
		w.line("   + %s %s", packets(s.Unexplained.Incomplete[reason]), reason.Text())
	}
	w.line("")
}

func (w *textWriter) table(s *Summary) {
	deviceColumns := len("unexplained")
	for _, h := range s.Hops {
		deviceColumns = max(deviceColumns, utf8.RuneCountInString(h.Device))
	}
	deviceColumns = min(deviceColumns, 17)
	bar := w.width - 2 - nameColumns - 1 - deviceColumns - 3*numberColumns - numberColumns - 1
	if bar < leastBar {
		bar = 0
	}
	row := func(frame, name, device string, mean, p50, p99, tracer string, drawn string) {
		w.line("%s %s %s%*s%*s%*s%*s %s", frame, pad(name, nameColumns), pad(device, deviceColumns),
			numberColumns, mean, numberColumns, p50, numberColumns, p99, numberColumns, tracer, drawn)
	}
	row(" ", "", "", "mean", "p50", "p99", "tracer", "")
	rows, unknown := s.shown()
	whole, first, last := 0.0, -1, -1
	for i, h := range rows {
		whole += h.shownMean(s)
		if h.InsidePackets > 0 {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	total := func() {
		row("│", "unexplained", "", us(s.Unexplained.MeanNS), "", "", "", "")
		for _, h := range unknown[:min(len(unknown), mostUnknown)] {
			w.line("│   %s", h.label())
			w.line("│   in %d of %s, p50 %s, p99 %s", h.InsidePackets, packets(s.Packets), us(h.P50NS), us(h.P99NS))
		}
		if more := len(unknown) - mostUnknown; more > 0 {
			w.line("│   and %d other such pairs of points", more)
		}
		row("╰", "= correction", "", us(s.Correction.MeanNS), us(s.Correction.P50NS), us(s.Correction.P99NS), us(s.TracerNS), "")
	}
	at := 0.0
	for i, h := range rows {
		frame := " "
		switch {
		case i == first:
			frame = "╭"
		case i > first && i <= last:
			frame = "│"
		}
		mean := h.shownMean(s)
		if h.Name == "" { // its points, over both columns
			w.line("%s %s", frame, h.label())
		}
		row(frame, h.Name, h.Device, us(mean), us(h.P50NS), us(h.P99NS), us(h.TracerNS), waterfallBar(at, mean, whole, bar, h.InsidePackets > 0))
		at += mean
		if i == last {
			total()
		}
	}
	if last < 0 { // both ends are one point, as on macvlan
		total()
	}
}

// mostUnknown is how many of the hops that have no name are listed.
const mostUnknown = 3

// shown is the rows of a table, and apart from them the hops that have no name and are inside: those are what is
// unexplained, most time first. They lie across named ones, as a rule because a program did not run in between.
func (s *Summary) shown() (rows, unknown []Hop) {
	for _, h := range s.Hops {
		if !h.Explained && h.InsidePackets > 0 {
			unknown = append(unknown, h)
		} else {
			rows = append(rows, h)
		}
	}
	slices.SortStableFunc(unknown, func(a, b Hop) int { return cmp.Compare(b.InsideSumNS, a.InsideSumNS) })
	return rows, unknown
}

func packets(n int) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}

// shownMean is the mean over all packets inside the interval, so that the column adds up to the correction, and over
// those that took the hop outside of it.
func (h Hop) shownMean(s *Summary) float64 {
	if h.InsidePackets == 0 {
		return h.MeanNS
	}
	return float64(h.InsideSumNS) / float64(max(s.Packets, 1))
}

// us is a time in microseconds with at most five characters.
func us(ns float64) string {
	switch v := ns / 1000; {
	case v < 99.995:
		return fmt.Sprintf("%.2f", v)
	case v < 999.95:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

func pad(s string, columns int) string {
	if n := utf8.RuneCountInString(s); n < columns {
		return s + strings.Repeat(" ", columns-n)
	}
	return string([]rune(s)[:columns])
}

// waterfallBar draws a part of a whole that is columns wide, where it lies in it. Its end is drawn in eighths of a
// column; its beginning in halves, for lack of characters.
func waterfallBar(at, part, whole float64, columns int, inside bool) string {
	if columns == 0 || whole <= 0 || part <= 0 {
		return ""
	}
	scale := float64(columns) / whole
	from, to := at*scale, (at+part)*scale
	var b strings.Builder
	for c := range columns {
		left, right := max(from, float64(c)), min(to, float64(c+1))
		covered := right - left
		switch {
		case covered <= 0:
			b.WriteByte(' ')
		case !inside:
			if covered >= 0.5 || to-from < 1 && left == from {
				b.WriteRune('░')
			} else {
				b.WriteByte(' ')
			}
		case covered > 0.94:
			b.WriteRune('█')
		case left > float64(c) && right == float64(c+1): // it begins here
			b.WriteRune([]rune("▕▐")[min(1, int(covered*2+0.25))])
		default:
			b.WriteRune([]rune("▏▎▍▌▋▊▉")[min(6, int(covered*8))])
		}
	}
	return strings.TrimRight(b.String(), " ")
}
