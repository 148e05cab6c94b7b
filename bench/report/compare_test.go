package report_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/bench/report"
	"tare/bench/report/reporttest"
)

func bridge(rttUs float64) reporttest.Arm { return reporttest.Arm{Name: "bridge", RTTUs: rttUs} }

func TestWriteComparison(t *testing.T) {
	a := report.Named{Name: "old", Report: reporttest.New(1, 12, bridge(28))}
	b := report.Named{Name: "new", Report: reporttest.New(2, 12, bridge(21))}
	b.Environment.Kernel, b.Environment.Parameters = "6.14.0-test", "mitigations=off "+strings.Repeat("x", 100)
	c := report.Named{Name: "third", Report: reporttest.New(3, 12, bridge(21))}
	c.Environment.Kernel = "6.2.0-test"
	var out bytes.Buffer
	if err := report.WriteComparison(&out, []report.Named{a, b}); err != nil {
		t.Fatal(err)
	}
	golden(t, "pair.txt", out.Bytes())
	out.Reset()
	if err := report.WriteComparison(&out, []report.Named{a, b, c}); err != nil {
		t.Fatal(err)
	}
	golden(t, "matrix.txt", out.Bytes())
	out.Reset()
	same := report.Named{Name: "same", Report: reporttest.New(4, 12, bridge(28))}
	if err := report.WriteComparison(&out, []report.Named{a, same}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no change seen", "nothing that a report knows of"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestWriteComparisonRefuses(t *testing.T) {
	for name, change := range map[string]func(*report.Report){
		"sizes":                 func(r *report.Report) { r.Experiments[0].SizeBytes = 1024 },
		"units":                 func(r *report.Report) { r.Experiments[0].Unit = "requests/s" },
		"placements":            func(r *report.Report) { r.Experiments[0].Placement.Name = "same-core" },
		"sockperf":              func(r *report.Report) { r.Environment.Tools[0].Version = "sockperf, version 3.10" },
		"no interleaved rounds": func(r *report.Report) { r.Experiments[0].Style = report.SingleRun },
	} {
		t.Run(name, func(t *testing.T) {
			a := report.Named{Name: "a", Report: reporttest.New(1, 6, bridge(28))}
			b := report.Named{Name: "b", Report: reporttest.New(2, 6, bridge(28))}
			change(b.Report)
			var out bytes.Buffer
			err := report.WriteComparison(&out, []report.Named{a, b})
			if !errors.Is(err, report.ErrUnlike) || !strings.Contains(err.Error(), name) || out.Len() > 0 {
				t.Errorf("%v, %q", err, &out)
			}
		})
	}
}

func TestKernelTables(t *testing.T) {
	dir := t.TempDir()
	if _, err := report.KernelTables(dir); !errors.Is(err, report.ErrNoReports) {
		t.Errorf("%v", err)
	}
	for i, kernel := range []string{"6.14.0-1017-azure", "6.2.1", "5.4.0-42-generic"} {
		r := reporttest.New(uint64(i), 8, bridge(30-float64(i)))
		r.Environment.Kernel, r.Environment.CPU = kernel, "Te|stium"
		if i == 1 {
			for n := range r.Experiments[0].Rounds {
				for k := range 2 {
					r.Experiments[0].Rounds[n].Runs[k].Flags = []string{"steal: 30 %"}
				}
			}
			r.Partial = "interrupted"
		}
		if err := r.Save(filepath.Join(dir, fmt.Sprintf("r%d.tare.json", i))); err != nil {
			t.Fatal(err)
		}
	}
	tables, err := report.KernelTables(dir)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "kernels.md", []byte(tables))
	document := "# Title\n\n<!-- begin: made by tare bench kernels -->\nold\n<!-- end: made by tare bench kernels -->\nafter\n"
	got, err := report.ReplaceGenerated(document, tables)
	if err != nil || strings.Contains(got, "old") || !strings.Contains(got, tables) || !strings.HasSuffix(got, "-->\nafter\n") {
		t.Errorf("%v\n%s", err, got)
	}
	if twice, _ := report.ReplaceGenerated(got, tables); twice != got {
		t.Error("done twice, it is not the same")
	}
	if _, err := report.ReplaceGenerated("# Title\n", tables); err == nil {
		t.Error("a document without marks was changed")
	}
	if err := os.WriteFile(filepath.Join(dir, "x.tare.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := report.KernelTables(dir); !errors.Is(err, report.ErrForeign) {
		t.Errorf("%v", err)
	}
}

// The document's tables are those of the reports beside it.
func TestKernelsDocument(t *testing.T) {
	docs := filepath.Join("..", "..", "docs")
	tables, err := report.KernelTables(filepath.Join(docs, "results", "kernels"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(docs, "kernels.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := report.ReplaceGenerated(string(document), tables); err != nil || want != string(document) {
		t.Errorf("docs/kernels.md is not up to date (%v): tare bench kernels docs/results/kernels --update docs/kernels.md", err)
	}
}

func TestExport(t *testing.T) {
	r := reporttest.New(1, 6, bridge(22))
	r.Experiments[0].Rounds[1].Runs[2].Flags = []string{"steal: 4 %"}
	r.Analyse()
	var out bytes.Buffer
	if err := r.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 1+6*3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, name := range rows[0] {
		switch cell := rows[6][i]; { // round 2, third
		case name == "round" && cell != "2", name == "position" && cell != "3", name == "arm" && cell != "bridge",
			name == "rtt_p50_us" && !strings.HasPrefix(cell, "22.") && !strings.HasPrefix(cell, "21."),
			name == "rtt_p99.99_us" && cell != "", name == "flags" && cell != "steal: 4 %", name == "messages" && cell != "12000":
			t.Errorf("%s is %q", name, cell)
		}
	}
	out.Reset()
	if err := r.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "export.md", out.Bytes())
}
