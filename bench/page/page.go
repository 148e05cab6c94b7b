// Package page makes one self-contained HTML page of a report: the verdicts in words first, then what they come from.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"tare/bench/load"
	"tare/bench/report"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// content is what the template shows.
type content struct {
	*report.Report
	Experiments []section
	Facts       []fact
}

// LevelPercent is the intervals' level.
func (c content) LevelPercent() float64 { return 100 * c.Method.Level }

// section is one experiment.
type section struct {
	Title, Method, Unit string
	SingleRun           bool
	Sentences           []sentence
	Rows                []row
	Figures             []template.HTML
	Notes               []string
}

// sentence is an arm's verdict in words.
type sentence struct{ Arm, Kind, Words string }

// row is one line of the table of differences.
type row struct {
	Arm, Own, Difference, Percent string
	Tails                         []string
}

type fact struct{ Name, Value string }

// Write writes the page.
func Write(out io.Writer, r *report.Report) error {
	c := content{Report: r, Facts: facts(r)}
	for i := range r.Experiments {
		s, err := newSection(r, &r.Experiments[i])
		if err != nil {
			return fmt.Errorf("drawing %s: %w", r.Experiments[i].Title(), err)
		}
		c.Experiments = append(c.Experiments, s)
	}
	if err := pageTemplate.Execute(out, c); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func newSection(r *report.Report, e *report.Experiment) (section, error) {
	s := section{Title: e.Title(), Unit: string(e.Unit), SingleRun: e.Style == report.SingleRun, Notes: e.Notes()}
	s.Method = fmt.Sprintf("%d rounds of %.3g s per arm, interleaved in shuffled order", len(e.Rounds), r.Method.RoundSeconds)
	if s.SingleRun {
		s.Method = "one run of each arm, in fixed order, as published benchmarks do it: no interval, no verdict"
	}
	var noise []sentence // goes last: it is no answer to anybody's question
	for i, result := range e.Results {
		kind := string(result.Verdict)
		switch {
		case e.Arms[i].Failed != "":
			kind = "failed"
		case result.Arm == e.Again:
			kind = "noise"
		case s.SingleRun:
			kind = "none"
		}
		switch sentence := (sentence{result.Arm, kind, e.Words(result, r.Method)}); result.Arm {
		case e.Baseline:
		case e.Again:
			noise = append(noise, sentence)
		default:
			s.Sentences = append(s.Sentences, sentence)
		}
		s.Rows = append(s.Rows, newRow(e, result))
	}
	s.Sentences = append(s.Sentences, noise...)
	figures, err := draw(e)
	s.Figures = figures
	return s, err
}

// tails are the columns of the table beyond the median.
var tails = []string{"p90", "p99", "p99.9", "p99.99"}

func newRow(e *report.Experiment, result report.Result) row {
	x := row{Arm: result.Arm, Own: "-", Difference: "", Tails: make([]string, len(tails))}
	if len(result.Statistics) > 0 {
		x.Own = e.Value(result.Statistics[0])
	}
	if c := result.Comparison(); c != nil {
		x.Difference, x.Percent = e.Amount(c.Difference), report.Percent(c.Ratio)
	}
	for _, figure := range result.Statistics {
		if i := slices.Index(tails, figure.Statistic); i >= 0 && figure.Against != nil {
			x.Tails[i] = report.Signed(figure.Against.Difference, 1, "")
		}
	}
	return x
}

// facts are the environment, in the order in which one asks.
func facts(r *report.Report) []fact {
	e := r.Environment
	rules := 0
	if e.NFTRules > 0 {
		rules = e.NFTRules
	}
	all := []fact{
		{"kernel", "Linux " + e.Kernel + " " + e.Architecture + " " + e.KernelVersion}, {"configuration", e.KernelConfig},
		{"parameters", e.Parameters}, {"CPU", fmt.Sprintf("%s, %d CPUs, microcode %s", e.CPU, e.CPUs, e.Microcode)},
		{"virtualisation", e.Virtualisation}, {"clock source", e.ClockSource}, {"governor", e.Governor},
		{"busy, steal", fmt.Sprintf("%.1f%%, %.1f%% of all CPUs' time", e.BusyPercent, e.StealPercent)}, {"load average before", e.LoadAverage},
		{"nftables rules", fmt.Sprint(rules)},
	}
	for _, tool := range e.Tools {
		all = append(all, fact{tool.Name, tool.Version + ", sha256 " + tool.SHA256})
	}
	for title, list := range map[string]map[string]string{"mitigations": e.Mitigations, "sysctls": e.Sysctls, "devices": e.Offloads} {
		var entries []string
		for _, key := range slices.Sorted(maps.Keys(list)) {
			entries = append(entries, key+": "+list[key])
		}
		all = append(all, fact{title, strings.Join(entries, "; ")})
	}
	slices.SortStableFunc(all[10+len(e.Tools):], func(a, b fact) int { return strings.Compare(a.Name, b.Name) })
	return append(all, fact{"made by", "tare " + r.TareVersion + ": " + r.Command}, fact{"content", r.ContentHash})
}

// latency is whether there are round trips to draw.
func latency(e *report.Experiment) bool { return e.Unit != load.BytesPerSecond }
