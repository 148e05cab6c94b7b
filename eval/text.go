package eval

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText renders the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := &text{out: out}
	m := r.Machine
	t.line("# %s", r.Command)
	t.line("# %s, %.0f s, seed %d", r.Started.Format("2006-01-02 15:04:05 MST"), r.Seconds, r.Seed)
	t.line("# Linux %s %s, %d CPUs: %s, %s", m.Kernel, m.Architecture, m.CPUs, m.CPU, m.Virtualisation)
	t.line("# clock %s, governor %s, busy %.0f%%, steal %.1f%%", m.ClockSource, m.Governor, m.BusyPercent, m.StealPercent)
	t.line("# figures are medians over rounds [95%% bootstrap interval over rounds], in us where nothing else is said")
	if r.Payload != nil {
		r.Payload.write(t)
	}
	if r.Load != nil {
		r.Load.write(t)
	}
	if r.Accuracy != nil {
		r.Accuracy.write(t)
	}
	if r.Perturbation != nil {
		r.Perturbation.write(t)
	}
	if r.Poster != nil {
		r.Poster.write(t)
	}
	if r.FalseMatches != nil {
		r.FalseMatches.write(t)
	}
	if r.Lifecycle != nil {
		r.Lifecycle.write(t)
	}
	t.section("Targets")
	rows := [][]string{{"", "measured", "target", ""}}
	for _, target := range r.Targets {
		relation := "<="
		if target.AtLeast {
			relation = ">="
		}
		rows = append(rows, []string{target.Name, number(target.Value, target.Unit), relation + " " + number(target.Bound, target.Unit), target.verdict()})
	}
	t.table(rows)
	return t.err
}

func (t Target) verdict() string {
	if t.Met {
		return "met"
	}
	return "NOT MET"
}

// number is a value with its unit, in no more digits than mean something.
func number(v float64, unit string) string {
	digits := 2
	if v == float64(int64(v)) {
		digits = 0
	}
	return strings.TrimSpace(fmt.Sprintf("%.*f %s", digits, v, unit))
}

// text writes until the first error.
type text struct {
	out io.Writer
	err error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format+"\n", args...)
	}
}

func (t *text) section(format string, args ...any) { t.line("\n"+format, args...) }

// table aligns cells to the left, as the names that they begin with are.
func (t *text) table(rows [][]string) {
	if t.err != nil {
		return
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	t.err = w.Flush()
}

func (a *Accuracy) write(t *text) {
	for _, level := range a.Levels {
		b := level.BareMetal
		t.section("Accuracy as bare metal, %d flooding containers: %d blocks of runs of %d replies", level.Floods, b.NativeUs.Rounds, level.RepliesPerRun)
		t.table([][]string{
			{"", "RTT", "less native", "coverage"},
			{"ping on the host", b.NativeUs.String()},
			{"ping on the host, again", "", b.NoiseUs.String()},
			{"ping in a container", b.ContainerUs.String(), b.RawErrorUs.String()},
			{"... corrected", b.CorrectedUs.String(), b.ErrorUs.String(), b.Coverage.String()},
			{"... corrected, means", "", b.MeanErrorUs.String()},
		})
		t.section("Accuracy as wire, %d flooding containers: against a tap on the NIC, %d rounds of %d replies", level.Floods, level.Rounds, level.RepliesPerRun)
		rows := [][]string{{"", "RTT as printed", "RTT at the tap", "printed less tap", "corrected less tap", "... of means", "coverage"}}
		for _, w := range level.Wire {
			rows = append(rows, []string{w.Tool, w.RawUs.String(), w.TapUs.String(), w.RawErrorUs.String(), w.ErrorUs.String(), w.MeanErrorUs.String(), w.Coverage.String()})
		}
		t.table(rows)
		t.line("  a sent packet is at the program %s us after the tap's stamp: each error has this, negative, from the tap's own copying", level.TapShareUs)
	}
}

func (c Coverage) String() string {
	text := fmt.Sprintf("%.4g%% of %d", percent(c.Share), c.Received)
	if c.Unseen > 0 {
		text += fmt.Sprintf(", %d packets unseen", c.Unseen)
	}
	return text
}

func (f *FalseMatches) write(t *text) {
	t.section("False matches, path %s", f.Path)
	count := func(v any) string { return fmt.Sprint(v) }
	rows := [][]string{
		{"packets compared with the tap", count(f.Packets)},
		{"packets of other containers beside them", count(f.OtherPackets)},
		{"false matches", count(f.FalseMatches)},
		{"  no such packet at the NIC", count(f.WrongIdentity)},
		{"  another destination", count(f.WrongDestination)},
		{"  more than 1 ms off", count(f.WrongTime)},
		{"  matched twice", count(f.Repeated)},
		{"  of containers that do not use the NIC", count(f.LocalMatches)},
		{"prevented: same buffer, another packet", count(f.RejectedIdentity)},
		{"prevented: state too old", count(f.RejectedAge)},
		{"ambiguous", count(f.Ambiguous)},
		{"egress time after the tap's", sampleText(f.EgressAfterTapUs)},
		{"ingress time after the tap's", sampleText(f.IngressAfterTapUs)},
	}
	if f.TapLost > 0 || f.RecordsDropped > 0 {
		rows = append(rows, []string{"lost by the tap, by the ring", fmt.Sprintf("%d, %d; %d packets could not be compared", f.TapLost, f.RecordsDropped, f.Unverifiable)})
	}
	t.table(rows)
	for _, example := range f.Examples {
		t.line("  %s", example)
	}
}

func sampleText(s Sample) string {
	return fmt.Sprintf("p50 %.2f us, p99 %.2f us, max %.1f us", s.P50Us, s.P99Us, s.MaxUs)
}

func (p *Perturbation) write(t *text) {
	t.section("Perturbation: what watching adds to a container's flood ping, %d rounds of %d packets; RTT %s", p.BaseRTTUs.Rounds, p.PacketsPerRun, p.BaseRTTUs)
	rows := [][]string{{"", "adds to the mean", "adds to the median", "... over inert programs", "share of ftrace's"}}
	for _, arm := range p.Arms {
		row := []string{arm.Arm, arm.CostUs.String(), arm.MedianCostUs.String(), arm.OverInertUs.String(), ""}
		if arm.RatioToFtrace != nil {
			row[4] = arm.RatioToFtrace.String()
		}
		rows = append(rows, row)
	}
	t.table(rows)
	if p.NoBpftrace != "" {
		t.line("  without bpftrace: %s", p.NoBpftrace)
	}
	t.section("Time in programs per round trip, by the kernel's statistics, whose own clock readings are in it")
	rows = nil
	for _, cost := range p.Costs {
		var parts []string
		for _, program := range cost.Programs {
			parts = append(parts, fmt.Sprintf("%s %.0f x %.1f", program.Tracepoint, program.NSPerEvent, program.EventsPerRTT))
		}
		rows = append(rows, []string{cost.Arm, fmt.Sprintf("%.0f ns", cost.NSPerPacket), strings.Join(parts, ", ")})
	}
	t.table(rows)
}

func (l *Lifecycle) write(t *text) {
	t.section("Lifecycle, medians of %d runs", l.StartMS.Rounds)
	rows := [][]string{}
	for _, p := range l.Paths {
		rows = append(rows, []string{"attach " + p.Path, p.AttachMS.String() + " ms"}, []string{"detach " + p.Path, p.DetachMS.String() + " ms"})
	}
	rows = append(rows, []string{"start of tare --help", l.StartMS.String() + " ms"}, []string{"resident memory of tare run", l.MemoryMiB.String() + " MiB"})
	t.table(rows)
}
