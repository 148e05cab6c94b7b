package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/lab"
	"tare/subtract"
)

func TestRunScripts(t *testing.T) {
	runScripts(t, "run", map[string]func(*testscript.TestScript, bool, []string){"ndjson": ndjson})
}

// What a line of JSON output must have. seq, hop and the addresses are there where the tool has them.
var (
	rttKeys     = []string{"as", "corrected_us", "dst", "egress_us", "ingress_us", "path", "rtt_us", "seq", "src", "status", "type"}
	summaryKeys = []string{
		"added_us", "as", "audit", "corrected_us", "coverage", "egress_us", "ingress_us", "matched", "nics", "path", "received",
		"records_dropped", "rtt_us", "sent", "status", "type",
	}
	distributionKeys = []string{"max", "mean", "min", "p50", "p90", "p99", "stddev"}
)

// ndjson is the script command `ndjson LINES [REPLIES]`: standard output is so many matched replies and their summary,
// which tells of so many replies, if not of just these.
func ndjson(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: ndjson LINES [REPLIES]")
	}
	lines, err := strconv.Atoi(args[0])
	ts.Check(err)
	replies, err := strconv.Atoi(args[len(args)-1])
	ts.Check(err)
	if complaint := checkRun(ts.ReadFile("stdout"), lines, replies); complaint != "" {
		ts.Fatalf("%s", complaint)
	}
}

// checkRun says what is wrong with the JSON output of a run all of whose replies were corrected.
func checkRun(output string, printed, replies int) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	if len(lines) != printed+1 {
		return strconv.Itoa(len(lines)-1) + " replies and a summary, want " + strconv.Itoa(printed) + ":\n" + output
	}
	for _, text := range lines[:printed] {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			return err.Error() + ": " + text
		}
		if keys := slices.Sorted(maps.Keys(line)); !slices.Equal(keys, rttKeys) {
			return "keys " + strings.Join(keys, " ") + ", want " + strings.Join(rttKeys, " ")
		}
		number := func(key string) float64 { v, _ := line[key].(float64); return v }
		difference := number("rtt_us") - number("egress_us") - number("ingress_us") - number("corrected_us")
		// Each number is rounded to ns.
		if line["type"] != "rtt" || line["status"] != "matched" || math.Abs(difference) > 0.0021 || number("egress_us") <= 0 {
			return "not a matched reply whose numbers add up: " + text
		}
	}
	return checkSummary(lines[printed], replies, printed == replies)
}

func checkSummary(text string, replies int, exact bool) string {
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return err.Error() + ": " + text
	}
	if keys := slices.Sorted(maps.Keys(line)); !slices.Equal(keys, summaryKeys) {
		return "summary's keys " + strings.Join(keys, " ") + ", want " + strings.Join(summaryKeys, " ")
	}
	for _, key := range []string{"rtt_us", "added_us", "corrected_us", "egress_us", "ingress_us"} {
		distribution, _ := line[key].(map[string]any)
		if keys := slices.Sorted(maps.Keys(distribution)); !slices.Equal(keys, distributionKeys) {
			return key + " has the keys " + strings.Join(keys, " ") + ", want " + strings.Join(distributionKeys, " ")
		}
	}
	summary, err := subtract.ReadSummary(strings.NewReader(text))
	if err != nil {
		return err.Error()
	}
	mean := summary.RTTUs.Mean - summary.AddedUs.Mean - summary.CorrectedUs.Mean
	tolerance := 0.0021 // each is rounded to ns
	if !exact {
		tolerance += summary.RTTUs.Mean / 500 // and the kernel's times are kept to 0.1%
	}
	switch {
	case summary.Sent != replies || summary.Received != replies || summary.Matched != replies || summary.Coverage != 1,
		summary.Status["matched"] != replies || len(summary.Status) != 1:
		return "not all of " + strconv.Itoa(replies) + " replies were sent, received and matched: " + text
	case summary.Audit.DevicePackets != summary.Audit.Seen || summary.Dropped != 0:
		return "packets went unseen: " + text
	case math.Abs(mean) > tolerance:
		return "the means do not add up: " + text
	}
	return ""
}

// TestRunCSV reads the table back and adds up its columns.
func TestRunCSV(t *testing.T) {
	l := newLab(t, lab.Options{})
	stdout, stderr := tare(t, 0, "run", "--netns", c1(l), "-o", "csv", "--", "ping", "-c", "4", "-i", "0.01", l.RemoteAddr4().String())
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 5 {
		t.Fatalf("%d rows, %v, want a header and 4:\n%s", len(rows), err, stdout)
	}
	const header = "seq hop src dst rtt_us egress_us ingress_us corrected_us as path status"
	if got := strings.Join(rows[0], " "); got != header {
		t.Errorf("header %q, want %q", got, header)
	}
	for i, row := range rows[1:] {
		var v [4]float64
		for j := range v {
			if v[j], err = strconv.ParseFloat(row[4+j], 64); err != nil {
				t.Error(err)
			}
		}
		if row[0] != strconv.Itoa(i+1) || row[10] != "matched" || math.Abs(v[0]-v[1]-v[2]-v[3]) > 0.0021 {
			t.Errorf("row %d: %v", i+1, row)
		}
	}
	if stderr != "" {
		t.Errorf("standard error: %q", stderr)
	}
	// A tool without replies still has a table, an empty one; what was seen of it is said apart.
	stdout, stderr = tare(t, 0, "run", "--netns", c1(l), "-o", "csv", "--", "true")
	if got := strings.TrimSuffix(stdout, "\n"); got != strings.ReplaceAll(header, " ", ",") {
		t.Errorf("stdout %q, want the header only", stdout)
	}
	if !strings.Contains(stderr, "no packet passed") {
		t.Errorf("stderr %q, want a summary", stderr)
	}
}

// scanJSON reads one object per line.
func scanJSON(t testing.TB, output string) (lines []map[string]any) {
	t.Helper()
	scanner := bufio.NewScanner(strings.NewReader(output))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Errorf("%s: %s", err, scanner.Text())
		}
		lines = append(lines, line)
	}
	return lines
}
