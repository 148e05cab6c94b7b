package report_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/report/reporttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: go test ./bench/report -update writes it anew\n%s\nwant\n%s", name, got, want)
	}
}

func renderText(t *testing.T, r *report.Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWriteText(t *testing.T) {
	t.Run("round trips", func(t *testing.T) {
		r := reporttest.New(1, 12, reporttest.Arm{Name: "bridge", RTTUs: 21.3}, reporttest.Arm{Name: "netns", RTTUs: 20.05}, reporttest.Arm{Name: "late", RTTUs: 25})
		e := &r.Experiments[0]
		e.Arms[4].Failed = "in round 3: the container died"
		e.Rounds[2].Runs[2].Flags = []string{"steal: 4 % of the CPUs' time"}
		e.Rounds[4].Runs[3].Failed = `check "latency x messages = wall time" failed`
		r.Analyse()
		golden(t, "rtt.txt", renderText(t, r))
	})
	t.Run("rates", func(t *testing.T) {
		r := reporttest.New(2, 8, reporttest.Arm{Name: "bridge", RTTUs: 20})
		r.Experiments[0].Unit, r.Experiments[0].Workload = load.BytesPerSecond, "iperf3-tcp"
		random := rand.New(rand.NewPCG(1, 1))
		for i := range r.Experiments[0].Rounds {
			for k := range r.Experiments[0].Rounds[i].Runs {
				run := &r.Experiments[0].Rounds[i].Runs[k]
				run.BytesPerSecond = 2.5e9 + 1e7*random.NormFloat64()
				if run.Arm == "bridge" {
					run.BytesPerSecond /= 2
				}
			}
		}
		r.Partial = "interrupted in experiment 1 of 1, after 8 rounds"
		r.Analyse()
		golden(t, "rates.txt", renderText(t, r))
	})
	t.Run("too few rounds", func(t *testing.T) {
		golden(t, "few.txt", renderText(t, reporttest.New(3, 4, reporttest.Arm{Name: "bridge", RTTUs: 21.3})))
	})
	t.Run("single run", func(t *testing.T) {
		r := reporttest.New(4, 1, reporttest.Arm{Name: "docker", RTTUs: 21.3})
		r.Experiments[0].Style = report.SingleRun
		golden(t, "single.txt", renderText(t, r))
	})
}
