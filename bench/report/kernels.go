package report

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compareKernels orders releases by their numbers: 6.14 comes after 6.2.
func compareKernels(a, b string) int {
	x, y := releaseNumbers(a), releaseNumbers(b)
	if c := slices.Compare(x, y); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// releaseNumbers are the leading numbers of a release: 6, 14, 0 of 6.14.0-1017-azure.
func releaseNumbers(release string) (numbers []int) {
	for part := range strings.SplitSeq(release, ".") {
		n, digits := 0, 0
		for _, c := range part {
			if c < '0' || c > '9' || digits > 6 {
				break
			}
			n = n*10 + int(c-'0')
			digits++
		}
		if digits == 0 {
			break
		}
		if numbers = append(numbers, n); digits < len(part) {
			break
		}
	}
	return numbers
}

// ErrNoReports is returned for a directory without any.
var ErrNoReports = errors.New("has no reports (*" + Suffix + ")")

// KernelTables renders the reports of a directory as Markdown: a table for each experiment that one of them has, a row for
// each report, oldest kernel first.
func KernelTables(dir string) (string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+Suffix))
	if err != nil {
		return "", err
	}
	if len(paths) == 0 {
		if _, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("reading reports: %w", err)
		}
		return "", fmt.Errorf("%s %w", dir, ErrNoReports)
	}
	slices.Sort(paths)
	all, err := LoadNamed(paths)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i, key := range keysOfAny(all) {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "### %s\n\n", key)
		var having []Named
		for _, r := range all {
			if r.find(key) != nil {
				having = append(having, r)
			}
		}
		writeMarkdownTable(&out, kernelRows(having, key))
	}
	return out.String(), nil
}

func keysOfAny(all []Named) (keys []Key) {
	for _, r := range all {
		for i := range r.Experiments {
			if e := &r.Experiments[i]; e.Style != SingleRun && !slices.Contains(keys, e.Key()) {
				keys = append(keys, e.Key())
			}
		}
	}
	return keys
}

// kernelRows is the matrix with the machine and the tools, without which a row means little.
func kernelRows(all []Named, key Key) [][]string {
	rows := matrix(all, key)
	for i, row := range rows {
		if i == 0 {
			rows[i] = append(row, "noise floor", "rounds", "machine", "tools")
			continue
		}
		r := all[slices.IndexFunc(all, func(n Named) bool { return n.Name == row[1] })]
		e := r.find(key)
		floor := "-"
		for _, result := range e.Results {
			if c := result.Comparison(); c != nil && result.Arm != e.Again && e.Again != "" {
				floor = e.plain(c.Floor)
				break
			}
		}
		var tools []string
		for _, tool := range r.Environment.Tools {
			if slices.Contains(e.Tools, tool.Name) {
				tools = append(tools, tool.Version)
			}
		}
		if len(tools) == 0 {
			tools = []string{"tare " + r.TareVersion}
		}
		machine := fmt.Sprintf("%s, %d CPUs, %s", r.Environment.CPU, r.Environment.CPUs, r.Environment.Virtualisation)
		rounds := fmt.Sprint(len(e.Rounds))
		if flagged, runs := e.disturbed(); flagged*2 > runs {
			rounds += fmt.Sprintf(" (%d of %d runs disturbed)", flagged, runs)
		}
		if r.Partial != "" {
			rounds += " (partial)"
		}
		rows[i] = append(row, floor, rounds, machine, strings.Join(tools, ", "))
	}
	return rows
}

// writeMarkdownTable writes rows, the first of which is the head.
func writeMarkdownTable(out *strings.Builder, rows [][]string) {
	for i, row := range rows {
		for k, cell := range row {
			if cell == "" {
				cell = " "
			}
			row[k] = strings.ReplaceAll(strings.ReplaceAll(cell, "|", `\|`), "\n", " ")
		}
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintf(out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
}

// The marks between which a document has generated tables.
const (
	beginGenerated = "<!-- begin: made by tare bench kernels -->"
	endGenerated   = "<!-- end: made by tare bench kernels -->"
)

// ReplaceGenerated puts tables between a document's marks.
func ReplaceGenerated(document, tables string) (string, error) {
	before, rest, ok := strings.Cut(document, beginGenerated+"\n")
	_, after, ended := strings.Cut(rest, endGenerated)
	if !ok || !ended {
		return "", fmt.Errorf("the document has no lines %q and %q, between which the tables go", beginGenerated, endGenerated)
	}
	return before + beginGenerated + "\n\n" + tables + "\n" + endGenerated + after, nil
}
