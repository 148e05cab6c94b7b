package report_test

import (
	"math"
	"strings"
	"testing"

	"tare/bench/report"
	"tare/bench/report/reporttest"
)

func TestShares(t *testing.T) {
	r := reporttest.New(1, 6, reporttest.Arm{Name: "bridge", RTTUs: 22})
	e := &r.Experiments[0]
	if e.Shares("bridge") != nil {
		t.Error("nothing was traced, and yet there are shares")
	}
	e.Attributions = []report.Attribution{
		{Arm: "loopback", RoundTripUs: 20, TracerUs: 0.5, Packets: 10, Hops: []report.Hop{{"send", "request", 3}, {"loopback device", "request", 2}}},
		{Arm: "bridge", RoundTripUs: 23, TracerUs: 0.9, Packets: 10, Hops: []report.Hop{{"send", "request", 3.1}, {"bridge", "request", 1.5}, {"bridge", "reply", 1.25}}},
	}
	shares := e.Shares("bridge")
	want := []report.Share{{"send, request", 0.1}, {"bridge, request", 1.5}, {"bridge, reply", 1.25}, {"loopback device, request", -2}, {"unexplained", 2.15}}
	if len(shares) != len(want) {
		t.Fatalf("%v, want %v", shares, want)
	}
	whole := 0.0
	for i, share := range shares {
		whole += share.DifferenceUs
		if share.Name != want[i].Name || math.Abs(share.DifferenceUs-want[i].DifferenceUs) > 1e-9 {
			t.Errorf("%v, want %v", share, want[i])
		}
	}
	if math.Abs(whole-3) > 1e-9 {
		t.Errorf("they add up to %v, and the arms differ by 3", whole)
	}
	text := string(renderText(t, r))
	for _, line := range []string{"bridge                      +3.00 us  of which the tracer +0.40 us", "unexplained               +2.15 us"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if err := report.Validate(encode(t, r)); err != nil {
		t.Error(err)
	}
}
