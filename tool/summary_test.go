package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64((i*37)%100 + 1) // 1 to 100, shuffled
	}
	tests := []struct {
		values []float64
		want   Dist
	}{
		{nil, Dist{}},
		{[]float64{5}, Dist{N: 1, Min: 5, Mean: 5, P50: 5, P90: 5, P99: 5, Max: 5}},
		{[]float64{-1, 1}, Dist{N: 2, Min: -1, Mean: 0, P50: -1, P90: 1, P99: 1, Max: 1, Stddev: 1}},
		{[]float64{48, 59, 57, 57, 57}, Dist{N: 5, Min: 48, Mean: 55.6, P50: 57, P90: 59, P99: 59, Max: 59, Stddev: math.Sqrt(15.04)}},
		{hundred, Dist{N: 100, Min: 1, Mean: 50.5, P50: 50, P90: 90, P99: 99, Max: 100, Stddev: math.Sqrt(833.25)}},
	}
	for _, test := range tests {
		got := Describe(test.values)
		if math.Abs(got.Mean-test.want.Mean) < 1e-9 && math.Abs(got.Stddev-test.want.Stddev) < 1e-9 {
			got.Mean, got.Stddev = test.want.Mean, test.want.Stddev
		}
		if got != test.want {
			t.Errorf("got %+v, want %+v", got, test.want)
		}
	}
}

// A long run keeps a sample; what it says of percentiles stays near, the rest exact.
func TestDescribeMany(t *testing.T) {
	const n = 10 * maxSamples
	var s series
	for i := range n {
		s.add(float64((i * 7919) % n)) // 0 to n-1, once each
		if i%100_000 == 0 {
			s.dist() // in between, as a live display does
		}
	}
	got := s.dist()
	if got.N != n || got.Min != 0 || got.Max != n-1 || math.Abs(got.Mean-(n-1)/2.) > 1e-3 {
		t.Errorf("%+v", got)
	}
	if len(s.sample) != maxSamples {
		t.Errorf("%d samples kept", len(s.sample))
	}
	for p, v := range map[float64]float64{0.5: got.P50, 0.9: got.P90, 0.99: got.P99} {
		if math.Abs(v/n-p) > 0.01 { // five times the standard error at p50
			t.Errorf("p%v is at %v", p, v/n)
		}
	}
}

func TestSummary(t *testing.T) {
	var s Summary
	ok := func(added, corrected float64) Correction {
		return Correction{AddedUs: added, CorrectedUs: corrected, OK: true}
	}
	s.Add(Reply{Target: "b", RTTUs: 50, ResolutionUs: 10}, ok(6, 44))
	s.Add(Reply{Target: "a", RTTUs: 60, ResolutionUs: 1}, ok(8, 52))
	s.Add(Reply{Target: "a", RTTUs: 90, ResolutionUs: 100}, Correction{Status: "lost"})
	s.Add(Reply{Target: "a", RTTUs: 1, ResolutionUs: 0.1, Uncounted: true}, ok(1, 0))
	a := s.Report("a")
	if a.Replies != 2 || a.Corrected != 1 || a.Uncorrected["lost"] != 1 || a.RTT.Max != 60 || a.ResolutionUs != 1 {
		t.Errorf("%+v", a)
	}
	all := s.Total()
	if all.Replies != 3 || all.Corrected != 2 || all.Added.Mean != 7 || all.CorrectedRTT.Mean != 48 {
		t.Errorf("%+v", all)
	}
	if got := strings.Join(s.Targets(), " "); got != "b a" {
		t.Errorf("targets %s", got)
	}
	if none := s.Report("c"); none.Replies != 0 || none.Target != "c" {
		t.Errorf("%+v", none)
	}
	text, err := json.Marshal(a)
	want := `{"target":"a","replies":2,"corrected":1,"uncorrected":{"lost":1},` +
		`"rtt_us":{"n":1,"min":60,"mean":60,"p50":60,"p90":60,"p99":60,"max":60,"stddev":0},` +
		`"added_us":{"n":1,"min":8,"mean":8,"p50":8,"p90":8,"p99":8,"max":8,"stddev":0},` +
		`"corrected_us":{"n":1,"min":52,"mean":52,"p50":52,"p90":52,"p99":52,"max":52,"stddev":0},` +
		`"corrected_mean_us":52,"resolution_us":1,"mean_resolution_us":1}`
	if string(text) != want || err != nil {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Names and statuses that never end do not fill the memory, nor get lost.
func TestSummaryBounds(t *testing.T) {
	var s Summary
	for i := range maxTargets + 10 {
		s.Add(Reply{Target: fmt.Sprint(i)}, Correction{Status: fmt.Sprint(i)})
	}
	all := s.Total()
	if len(s.Targets()) != maxTargets || all.Replies != maxTargets+10 {
		t.Errorf("%d targets, %d replies", len(s.Targets()), all.Replies)
	}
	if n := len(all.Uncorrected); n != maxStatuses+1 || all.Uncorrected["other"] != maxTargets+10-maxStatuses {
		t.Errorf("%d statuses, %d other", n, all.Uncorrected["other"])
	}
}

func TestAnnotation(t *testing.T) {
	at := func(resolution float64) Reply { return Reply{ResolutionUs: resolution} }
	good := Correction{AddedUs: 6.14, CorrectedUs: 12293.86, OK: true}
	bad := Correction{Status: "unfinished"}
	tests := []struct {
		name        string
		line        Line
		corrections []Correction
		want        string
	}{
		{"no reply", Line{}, nil, ""},
		{"us", Line{Replies: []Reply{at(1)}}, []Correction{good}, "  added=0.0061 ms  corrected=12.2939 ms"},
		{"100 us", Line{Replies: []Reply{at(100)}}, []Correction{good}, "  added=0.0061 ms  corrected=12.29 ms"},
		{"seconds", Line{Replies: []Reply{at(1e7)}}, []Correction{good}, "  added=0.0061 ms  corrected=12 ms"},
		{"minus nothing", Line{Replies: []Reply{at(1)}}, []Correction{{AddedUs: -0.01, CorrectedUs: -0.04, OK: true}}, "  added=0.0000 ms  corrected=0.0000 ms"},
		{"not correctable", Line{Replies: []Reply{at(1)}}, []Correction{bad}, "  added=? (unfinished)"},
		{"no reason", Line{Replies: []Reply{at(1)}}, []Correction{{}}, "  added=?"},
		{"columns", Line{Replies: []Reply{at(1), at(1)}, Columns: []int{-1, 0, 1}, NoAnswer: "*"}, []Correction{good, bad},
			"  added * 0.0061 ? ms  corrected * 12.2939 ? ms (unfinished)"},
		{"columns, none", Line{Replies: []Reply{at(1), at(1)}, Columns: []int{0, 1, -1}, NoAnswer: "-"}, []Correction{bad, {Status: "lost"}},
			"  added ? ? - (unfinished, lost)"},
	}
	for _, test := range tests {
		if got := Annotation(test.line, test.corrections); got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

func TestStatsLines(t *testing.T) {
	st := Stats{Received: 6, HasRTT: true, AvgUs: 50}
	added, corrected := Describe([]float64{6, 8}), Describe([]float64{40, 44})
	tests := []struct {
		name   string
		stats  Stats
		report Report
		want   []string
	}{
		{"no RTT", Stats{Received: 6}, Report{Replies: 6}, nil},
		{"all accounted for", st,
			Report{Replies: 5, Corrected: 2, Uncorrected: map[string]int{"lost": 1, "": 2}, Added: added, CorrectedRTT: corrected,
				CorrectedMeanUs: 42, ResolutionUs: 1, MeanResolutionUs: 1},
			[]string{"added min/avg/max = 0.0060/0.0070/0.0080 ms",
				"corrected min/avg/max = 0.0400/0.0420/0.0440 ms  (2 of 6 replies corrected, as wire; 2 not correctable, 1 lost, 1 not printed)"}},
		{"none corrected", st, Report{Replies: 6, Uncorrected: map[string]int{"lost": 6}},
			[]string{"added min/avg/max = ?  (0 of 6 replies corrected; 6 lost)"}},
		{"quiet, some", st, Report{Unprinted: true, Added: added},
			[]string{"added min/avg/max = 0.0060/0.0070/0.0080 ms", "corrected avg = ?  (2 of 6 replies measured, none printed)"}},
	}
	for _, test := range tests {
		got := StatsLines(test.stats, test.report, "wire")
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s:\n got %q\nwant %q", test.name, got, test.want)
		}
	}
}

// The tool's finer average is used only if it is over the corrected replies.
func TestMeanOfTheSameReplies(t *testing.T) {
	const reply = "64 bytes from 10.78.0.2: icmp_seq=%d ttl=63 time=10.3 ms\n"
	tests := []struct {
		name          string
		replies, lost int
		want          float64 // of the corrected mean, when the tool says "2 received" and 10.208 ms
	}{
		{"all corrected", 2, 0, 10202},
		{"one is not", 2, 1, 10294},
		{"one more is seen, one is not corrected", 3, 1, 10294},
		{"one is not seen", 1, 0, 10294},
	}
	for _, test := range tests {
		var got float64
		seen := 0
		a := NewAnnotator(new(ping), func(r Reply) Correction {
			if seen++; seen <= test.lost {
				return Correction{Status: "lost"}
			}
			return add6(r)
		})
		a.OnStats = func(_ Stats, r Report) { got = r.CorrectedMeanUs }
		s := a.Stream(nil)
		for i := range test.replies {
			fmt.Fprintf(s, reply, i)
		}
		fmt.Fprint(s, "\r2/2 packets, 0% loss, min/avg/ewma/max = 10.168/10.208/10.2/10.286 ms\n")
		if math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
