package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tare/bench/load"
)

// WriteText renders the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := &text{out: out}
	if r.Partial != "" {
		t.line("PARTIAL REPORT: %s", r.Partial)
	}
	for i := range r.Experiments {
		if i > 0 {
			t.line("")
		}
		if r.Experiments[i].Style == SingleRun {
			r.Experiments[i].writeSingleRun(t)
		} else {
			r.Experiments[i].write(t, r)
		}
	}
	if len(r.LeftOut) > 0 {
		t.line("\nLeft out:")
		var rows [][]string
		for _, left := range r.LeftOut {
			rows = append(rows, []string{left.Name, left.Reason})
		}
		t.table(rows)
	}
	e := r.Environment
	t.line("\nLinux %s %s, %d CPUs: %s, %s", e.Kernel, e.Architecture, e.CPUs, e.CPU, e.Virtualisation)
	t.line("clock %s, governor %s, busy %.0f%%, steal %.1f%%; %.0f s, seed %d", e.ClockSource, e.Governor, e.BusyPercent, e.StealPercent, r.Seconds, r.Seed)
	return t.err
}

func (e *Experiment) write(t *text, r *Report) {
	t.line("%s", e.Title())
	t.line("%d rounds of %.3g s per arm, interleaved in shuffled order; [%.4g%% interval over rounds]", len(e.Rounds), r.Method.RoundSeconds, 100*r.Method.Level)
	t.line("")
	t.table(e.mainTable())
	if e.Unit != load.BytesPerSecond {
		t.line("\n  More than %s at other percentiles, in us:", e.Baseline)
		t.table(e.tailTable())
	}
	t.line("")
	for _, result := range e.Results {
		if result.Arm != e.Baseline {
			t.line("  %s: %s.", result.Arm, e.Words(result, r.Method))
		}
	}
	for _, note := range e.Notes() {
		t.line("  %s", note)
	}
	if rows := e.attributionTable(); len(rows) > 0 {
		t.line("\n  Where the difference from %s arises, by traced rounds of their own:", e.Baseline)
		t.table(rows)
	}
}

// mainTable is the statistic that verdicts are about.
func (e *Experiment) mainTable() [][]string {
	head := []string{"arm", "p50 RTT, us", "more than " + e.Baseline, "", "verdict"}
	if e.Unit == load.BytesPerSecond || e.Unit == load.RequestsPerSecond {
		head[1] = string(e.Unit)
	}
	rows := [][]string{head}
	for i, result := range e.Results {
		row := []string{result.Arm, "-", "", "", ""}
		if len(result.Statistics) > 0 {
			row[1] = e.Value(result.Statistics[0])
		}
		if c := result.Comparison(); c != nil {
			row[2], row[3] = e.Amount(c.Difference), Percent(c.Ratio)
			row[4] = string(result.Verdict)
		}
		switch {
		case e.Arms[i].Failed != "":
			row[4] = "failed"
		case result.Arm == e.Baseline:
			row[4] = "baseline"
		case result.Arm == e.Again:
			row[4] = "noise floor"
		}
		rows = append(rows, row)
	}
	return rows
}

// tailTable has the differences at other percentiles, for which there were messages enough.
func (e *Experiment) tailTable() [][]string {
	names := []string{"p90", "p99", "p99.9", "p99.99"}
	rows := [][]string{append([]string{"arm"}, names...)}
	for _, result := range e.Results {
		if result.Arm == e.Baseline {
			continue
		}
		row := []string{result.Arm}
		for _, name := range names {
			cell := "-"
			if figure := result.figure(name); figure != nil && figure.Against != nil {
				cell = Signed(figure.Against.Difference, 1, "")
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

func (r Result) figure(statistic string) *Figure {
	for i := range r.Statistics {
		if r.Statistics[i].Statistic == statistic {
			return &r.Statistics[i]
		}
	}
	return nil
}

// Notes say what may make a reader doubt.
func (e *Experiment) Notes() (notes []string) {
	for _, result := range e.Results {
		if result.Failed > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of %d runs do not count: %s.", result.Arm, result.Failed, result.Failed+result.Runs, e.firstFailure(result.Arm)))
		}
		if w := result.WithoutFlagged; w != nil {
			without := e.Amount(w.Difference) + ", the same verdict"
			switch {
			case w.Difference.Rounds == 0:
				without = "nothing is left"
			case w.Kind != result.Verdict:
				without = e.Amount(w.Difference) + ", and then " + string(w.Kind)
			}
			notes = append(notes, fmt.Sprintf("%s: without the rounds flagged for what the machine did meanwhile (%s): %s.", result.Arm, e.flagNames(result.Arm), without))
		}
	}
	if again := e.resultOf(e.Again); e.Style != SingleRun && again.Comparison() == nil {
		notes = append(notes, fmt.Sprintf("There is no noise floor: %s was not measured a second time.", e.Baseline))
	}
	if flagged, runs := e.disturbed(); flagged*2 > runs {
		notes = append(notes, fmt.Sprintf("%d of %d runs were disturbed: something else runs on these CPUs. Measure again when it does not.", flagged, runs))
	}
	return notes
}

// disturbed counts the runs that were flagged, of those that count.
func (e *Experiment) disturbed() (flagged, runs int) {
	for _, result := range e.Results {
		flagged, runs = flagged+result.Flagged, runs+result.Runs
	}
	return flagged, runs
}

func (e *Experiment) firstFailure(arm string) string {
	for _, round := range e.Rounds {
		for _, run := range round.Runs {
			if run.Arm == arm && run.Failed != "" {
				return run.Failed
			}
		}
	}
	return ""
}

// flagNames counts by rule what was flagged in an arm's runs and its baseline's.
func (e *Experiment) flagNames(arm string) string {
	counts := map[string]int{}
	for _, round := range e.Rounds {
		for _, run := range round.Runs {
			if run.Arm != arm && run.Arm != e.Baseline {
				continue
			}
			for _, flag := range run.Flags {
				name, _, _ := strings.Cut(flag, ":")
				counts[name]++
			}
		}
	}
	var names []string
	for _, rule := range FlagRules {
		if n := counts[rule.Name]; n > 0 {
			names = append(names, fmt.Sprintf("%s %d", rule.Name, n))
		}
	}
	return strings.Join(names, ", ")
}

// writeSingleRun shows one run per arm as the published benchmark did, and says what its figures really are.
func (e *Experiment) writeSingleRun(t *text) {
	t.line("%s, %d bytes, as published benchmarks do it: one run of each arm, in fixed order; %s", e.Workload, e.SizeBytes, e.Placement)
	t.line("They print half of each round trip, and call it latency or even RTT. Both are here.")
	t.line("")
	rows := [][]string{{"arm", "observations", "one-way (RTT/2), us: average", "p50", "p99", "full round trip (RTT), us: average", "p50", "p99"}}
	for _, result := range e.Results {
		row := []string{result.Arm, "-"}
		if len(e.Rounds) > 0 {
			for _, run := range e.Rounds[0].Runs {
				if run.Arm == result.Arm {
					row[1] = fmt.Sprint(run.Messages)
				}
			}
		}
		for _, share := range []float64{0.5, 1} {
			for _, name := range []string{"mean", "p50", "p99"} {
				cell := "-"
				if figure := result.figure(name); figure != nil {
					cell = fmt.Sprintf("%.2f", figure.Value.Estimate*share)
				}
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	t.table(rows)
	t.line("\n  One run has no interval: how much of a difference is noise, only rounds can tell.")
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

// table aligns cells to the left, as the names that they begin with are.
func (t *text) table(rows [][]string) {
	if t.err != nil {
		return
	}
	var aligned strings.Builder
	w := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
	}
	if t.err = w.Flush(); t.err != nil {
		return
	}
	for line := range strings.Lines(aligned.String()) {
		t.line("%s", strings.TrimRight(line, " \n"))
	}
}
