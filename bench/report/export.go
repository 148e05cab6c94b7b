package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteCSV has one row for each run of each arm. Round trips are full ones, in us.
func (r *Report) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	head := []string{
		"experiment", "style", "workload", "unit", "size_bytes", "rate_per_second", "placement", "baseline", "round", "position", "arm",
		"start_seconds", "wall_seconds", "messages", "lost", "rtt_p50_us", "rtt_p90_us", "rtt_p99_us", "rtt_p99.9_us", "rtt_p99.99_us",
		"rtt_mean_us", "bytes_per_second", "requests_per_second", "flags", "failed",
	}
	if err := w.Write(head); err != nil {
		return err
	}
	for i := range r.Experiments {
		e := &r.Experiments[i]
		for n, round := range e.Rounds {
			for position, run := range round.Runs {
				row := []string{
					fmt.Sprint(i + 1), e.Style, e.Workload, string(e.Unit), fmt.Sprint(e.SizeBytes), fmt.Sprint(e.Rate), e.Placement.Name,
					e.Baseline, fmt.Sprint(n + 1), fmt.Sprint(position + 1), run.Arm, decimal(run.StartSeconds), decimal(run.WallSeconds),
					fmt.Sprint(run.Messages), fmt.Sprint(run.Lost),
				}
				values := map[string]float64{}
				e.reduce(run, func(name string, value float64) { values[name] = value })
				for _, s := range rttStatistics {
					cell := ""
					if v, there := values[s.Name]; there {
						cell = decimal(v)
					}
					row = append(row, cell)
				}
				row = append(row, decimal(run.BytesPerSecond), decimal(run.RequestsPerSecond), strings.Join(run.Flags, "; "), run.Failed)
				if err := w.Write(row); err != nil {
					return err
				}
			}
		}
	}
	w.Flush()
	return w.Error()
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// WriteMarkdown has the results as tables for an issue or a wiki.
func (r *Report) WriteMarkdown(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s\n\n", r.Command)
	if r.Partial != "" {
		fmt.Fprintf(&text, "**Partial report:** %s\n\n", r.Partial)
	}
	env := r.Environment
	fmt.Fprintf(&text, "Linux %s %s, %d CPUs: %s, %s; clock %s; seed %d; `%s`\n", env.Kernel, env.Architecture, env.CPUs, env.CPU, env.Virtualisation, env.ClockSource, r.Seed, r.ContentHash)
	for i := range r.Experiments {
		e := &r.Experiments[i]
		fmt.Fprintf(&text, "\n### %s\n\n%d rounds of %.3g s per arm; [%.4g%% interval over rounds]\n\n", e.Title(), len(e.Rounds), r.Method.RoundSeconds, 100*r.Method.Level)
		writeMarkdownTable(&text, e.mainTable())
		for _, result := range e.Results {
			if result.Arm != e.Baseline {
				fmt.Fprintf(&text, "\n- %s: %s.", result.Arm, e.Words(result, r.Method))
			}
		}
		text.WriteString("\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
