package report_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/report/reporttest"
	"tare/bench/verdict"
)

func TestAnalyse(t *testing.T) {
	r := reporttest.New(1, 10, reporttest.Arm{Name: "bridge", RTTUs: 21.3}, reporttest.Arm{Name: "netns", RTTUs: 20})
	results := r.Experiments[0].Results
	if len(results) != 4 {
		t.Fatalf("%d results", len(results))
	}
	base, again, bridge, netns := results[0], results[1], results[2], results[3]
	if base.Verdict != "" || base.Comparison() != nil || math.Abs(base.Statistics[0].Value.Estimate-20) > 0.1 {
		t.Errorf("the baseline: %+v", base)
	}
	if c := again.Comparison(); again.Verdict != verdict.Equivalent || math.Abs(c.Difference.Estimate) > 0.05 || c.Floor != 0 {
		t.Errorf("the baseline again: %+v", c)
	}
	c := bridge.Comparison()
	if bridge.Verdict != verdict.Slower || c.Difference.Low > 1.3 || c.Difference.High < 1.3 || c.Floor <= 0 || math.Abs(c.Ratio.Estimate-1.065) > 0.005 {
		t.Errorf("bridge: %+v", c)
	}
	if netns.Verdict != verdict.Equivalent {
		t.Errorf("netns: %+v", netns.Comparison())
	}
	var names []string
	for _, figure := range bridge.Statistics {
		names = append(names, figure.Statistic)
		if figure.Unit != "us" {
			t.Errorf("%s in %s", figure.Statistic, figure.Unit)
		}
	}
	// 12,000 messages have 12 beyond p99.9, and one beyond p99.99, which means nothing.
	if want := []string{"p50", "p90", "p99", "p99.9", "mean"}; len(names) != len(want) || names[3] != "p99.9" || names[4] != "mean" {
		t.Errorf("%v, want %v", names, want)
	}
}

// A run that failed its checks does not count, and neither does its round for this arm; a flagged one counts, and is
// left out of the second opinion.
func TestAnalyseFailedAndFlaggedRuns(t *testing.T) {
	r := reporttest.New(2, 12, reporttest.Arm{Name: "bridge", RTTUs: 22})
	random := rand.New(rand.NewPCG(9, 9))
	e := &r.Experiments[0]
	e.Rounds[3].Runs[2] = reporttest.Run(random, "bridge", 1, 900)
	e.Rounds[3].Runs[2].Failed = "latency x messages is not the wall time"
	e.Rounds[5].Runs[2] = reporttest.Run(random, "bridge", 1, 500)
	e.Rounds[5].Runs[2].Flags = []string{"steal: 20 %"}
	r.Analyse()
	bridge := r.Experiments[0].Results[2]
	if bridge.Failed != 1 || bridge.Flagged != 1 || bridge.Runs != 11 {
		t.Errorf("%+v", bridge)
	}
	c, without := bridge.Comparison(), bridge.WithoutFlagged
	if c.Difference.Rounds != 11 || without == nil || without.Difference.Rounds != 10 {
		t.Fatalf("%+v, %+v", c, without)
	}
	if math.Abs(without.Difference.High-2) > 0.2 || math.Abs(c.Difference.Estimate-2) > 0.2 {
		t.Errorf("%v, without flagged %v", c.Difference, without.Difference)
	}
	if last := r.Experiments[0].Results[0].Statistics[0].Value; last.Rounds != 12 {
		t.Errorf("the baseline lost rounds: %v", last)
	}
}

func TestAnalyseRates(t *testing.T) {
	r := reporttest.New(3, 10, reporttest.Arm{Name: "bridge", RTTUs: 22})
	e := &r.Experiments[0]
	e.Unit = load.RequestsPerSecond
	random := rand.New(rand.NewPCG(4, 4))
	for i := range e.Rounds {
		for k := range e.Rounds[i].Runs {
			run := &e.Rounds[i].Runs[k]
			run.RequestsPerSecond = 30000 + 50*random.NormFloat64()
			if run.Arm == "bridge" {
				run.RequestsPerSecond *= 0.9
			}
		}
	}
	r.Analyse()
	bridge := r.Experiments[0].Results[2]
	if first := bridge.Statistics[0]; first.Statistic != "rate" || first.Unit != "requests/s" || bridge.Verdict != verdict.Slower {
		t.Errorf("%+v", bridge)
	}
	if second := bridge.Statistics[1]; second.Statistic != "p50" || second.Unit != "us" {
		t.Errorf("%+v", second)
	}
}

func TestFlag(t *testing.T) {
	calm := load.Host{CPUs: []int{0, 1}, FreqKHzBefore: []int{2000000}, FreqKHzAfter: []int{2050000}, StealSeconds: 0.01}
	if flags := report.Flag(calm, 1, true); len(flags) != 0 {
		t.Errorf("%v", flags)
	}
	for name, change := range map[string]func(*load.Host){
		"steal: 5 % of the CPUs' time":    func(h *load.Host) { h.StealSeconds = 0.1 },
		"thermal throttling: 1 events":    func(h *load.Host) { h.ThermalThrottles = 1 },
		"CPU quota: 10 us":                func(h *load.Host) { h.QuotaThrottledUS = 10 },
		"preempted: 300 times per second": func(h *load.Host) { h.Server.InvoluntarySwitches = 300 },
		"migrated: 3 times":               func(h *load.Host) { h.Client.Migrations = 3 },
		"frequency: 50 % of change":       func(h *load.Host) { h.FreqKHzAfter = []int{1000000} },
	} {
		host := calm
		change(&host)
		if flags := report.Flag(host, 1, true); len(flags) != 1 || flags[0] != name {
			t.Errorf("%q, want %q", flags, name)
		}
	}
	moved := calm
	moved.Client.Migrations = 50
	if flags := report.Flag(moved, 1, false); len(flags) != 0 {
		t.Errorf("not pinned, and flagged %v", flags)
	}
}

// Verdicts without a noise floor say so.
func TestNoNoiseFloor(t *testing.T) {
	r := reporttest.New(5, 8, reporttest.Arm{Name: "bridge", RTTUs: 22})
	e := &r.Experiments[0]
	for i := range e.Rounds {
		e.Rounds[i].Runs[1].Failed = "no valid observations"
	}
	r.Analyse()
	if text := string(renderText(t, r)); !strings.Contains(text, "There is no noise floor") {
		t.Errorf("%s", text)
	}
	if c := e.Results[2].Comparison(); c.Floor != 0 || c.Kind != verdict.Slower {
		t.Errorf("%+v", c)
	}
}
