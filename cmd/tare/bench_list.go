package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tare/bench/arm"
	"tare/bench/load"
)

// listed is an arm or a workload, and whether it can run here.
type listed struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	Unit    string   `json:"unit,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Missing string   `json:"missing,omitempty"` // why it cannot run here
}

func runBenchList(ctx context.Context, output string, out io.Writer) error {
	var arms, workloads []listed
	for _, a := range arm.All() {
		arms = append(arms, listed{Name: a.Name, Summary: a.Summary, Missing: reason(ctx, a.Check)})
	}
	for _, w := range load.All() {
		workloads = append(workloads, listed{Name: w.Name, Summary: w.Summary, Unit: string(w.Unit), Tools: w.Tools, Missing: reason(ctx, w.Check)})
	}
	switch output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string][]listed{"arms": arms, "workloads": workloads})
	case "text":
		fmt.Fprintln(out, "Arms, for --arms:")
		if err := writeListed(out, arms); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nWorkloads, for --workload:")
		return writeListed(out, workloads)
	}
	return usageError("-o %s: it is text or json", output)
}

func reason(ctx context.Context, check func(context.Context) error) string {
	if check == nil {
		return ""
	}
	if err := check(ctx); err != nil {
		return err.Error()
	}
	return ""
}

func writeListed(out io.Writer, all []listed) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range all {
		fmt.Fprintf(w, "  %s\t%s\n", l.Name, strings.TrimSpace(l.Summary))
		if l.Missing != "" {
			fmt.Fprintf(w, "  \tnot here: %s\n", l.Missing)
		}
	}
	return w.Flush()
}
