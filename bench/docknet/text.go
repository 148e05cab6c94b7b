package docknet

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
)

// WriteText writes tables for a person.
func (r *Result) WriteText(out io.Writer) error {
	fmt.Fprintf(out, "DockNet and the kernel's networks: medians of %d interleaved rounds, %g s for each measurement, kernel %s\n",
		r.Rounds, r.MeasureSeconds, r.Kernel)
	fmt.Fprint(out, "One-way is half a round trip. \"x bridge\": how many times better than the bridge, paired by rounds.\n")
	fmt.Fprint(out, "HTTP/s: small replies on one kept-alive connection.\n")
	fmt.Fprintf(out, "\ntwo cores: client on CPU %d, server on CPU %d, daemons on either\n", r.CPUs[0], r.CPUs[1])
	if err := writeRows(out, r.Rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\none core: everything on CPU %d\n", r.CPUs[0])
	if err := writeRows(out, r.OneCoreRows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\none connection, while others are open\n")
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "arm\topen\tbytes\tone-way p50 us\tp99\tx alone\t")
	for _, c := range r.Connections {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t\n", c.Arm, c.Open, c.Size, number(c.OnewayUs.P50, 2), number(c.OnewayUs.P99, 2), number(c.ToOne, 2))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nHTTP on kept-alive connections, each with one request under way\n")
	table = tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "arm\tconnections\tHTTP/s\tx bridge\t")
	for _, h := range r.HTTP {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t\n", h.Arm, h.Connections, number(h.Requests, 0), number(h.RatioToBridge, 2))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, arm := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(out, "\n%s cannot be measured here: %s\n", arm, r.Missing[arm])
	}
	fmt.Fprintln(out, "\ntargets")
	table = tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, t := range r.Targets {
		verdict := "NOT MET"
		if t.Met {
			verdict = "met"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s %s\t(%s)\n", verdict, t.Name, strconv.FormatFloat(t.Got, 'f', 2, 64), t.Unit, t.Want)
	}
	return table.Flush()
}

func writeRows(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "arm\tbytes\tone-way p50 us\tp99\tx bridge\tMB/s\tx bridge\tHTTP/s\tx bridge\t")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", row.Arm, row.Size, number(row.OnewayUs.P50, 2),
			number(row.OnewayUs.P99, 2), number(row.RatioToBridge, 2), number(row.Goodput, 0), number(row.GoodputToBridge, 2),
			number(row.Requests, 0), number(row.RequestsRatio, 2))
	}
	return table.Flush()
}

// number is "-" for what was not measured.
func number(value *float64, digits int) string {
	if value == nil {
		return "-"
	}
	return strconv.FormatFloat(*value, 'f', digits, 64)
}
