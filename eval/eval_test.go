package eval

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tare/mace"
	"tare/stats"
)

func TestParseRTTs(t *testing.T) {
	for _, tt := range []struct {
		name string
		argv []string
		text string
		want []float64
	}{
		{"ping", []string{"ping", "10.78.0.2"}, `PING 10.78.0.2 (10.78.0.2) 56(84) bytes of data.
64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.098 ms
64 bytes from 10.78.0.2: icmp_seq=2 ttl=63 time=0.012 ms
64 bytes from 10.78.0.2: icmp_seq=2 ttl=63 time=0.044 ms (DUP!)

--- 10.78.0.2 ping statistics ---
2 packets transmitted, 2 received, +1 duplicates, 0% packet loss, time 1ms
rtt min/avg/max/mdev = 0.012/0.051/0.098/0.035 ms
`, []float64{98, 12}},
		{"behind taskset", []string{"taskset", "-c", "1", "ping", "10.78.0.2"}, "64 bytes from 10.78.0.2: icmp_seq=1 ttl=63 time=0.007 ms\n", []float64{7}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseRTTs(tt.argv, tt.text)
			if err != nil || len(got) != len(tt.want) {
				t.Fatalf("%v, %v, want %v", got, err, tt.want)
			}
			for i := range got {
				if math.Abs(got[i]-tt.want[i]) > 1e-9 {
					t.Errorf("%v, want %v", got, tt.want)
				}
			}
		})
	}
	if _, err := parseRTTs([]string{"ping", "x"}, "ping: x: Name or service not known\n"); err == nil {
		t.Error("no RTT is no error")
	}
}

func TestCorrectedRun(t *testing.T) {
	var run correctedRun
	err := run.parse(strings.NewReader(`{"type":"rtt","seq":1,"rtt_us":98,"egress_us":76.6,"ingress_us":8.1,"corrected_us":13.2,"as":"wire","path":"wire","status":"matched"}
{"type":"rtt","seq":2,"rtt_us":27,"egress_us":null,"ingress_us":null,"corrected_us":null,"as":"wire","path":"wire","status":"ambiguous"}
{"type":"summary","sent":3,"received":2,"matched":1,"coverage":0.5,"rtt_us":{"mean":36.8},"added_us":null,"corrected_us":null,"audit":{"device_packets":6,"seen":5,"missing":1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var coverage Coverage
	coverage.add(run)
	if coverage.Received != 2 || coverage.Matched != 1 || coverage.Share != 0.5 || coverage.Unseen != 1 ||
		coverage.Status["matched"] != 1 || coverage.Status["ambiguous"] != 1 {
		t.Errorf("%+v", coverage)
	}
	if *run.replies[0].CorrectedUs != 13.2 || run.replies[1].CorrectedUs != nil {
		t.Errorf("%+v", run.replies)
	}
	if err := new(correctedRun).parse(strings.NewReader("")); err == nil {
		t.Error("no reply is no error")
	}
}

func TestWireErrors(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	trips := []tapTrip{{Seq: 5, Ordinal: 0, TxNS: 1000, RxNS: 5000}, {Seq: 6, Ordinal: 1, TxNS: 9000, RxNS: 12000}}
	run := correctedRun{received: 3, matched: 2, replies: []correctedReply{
		{Seq: 0, RTTUs: 15, CorrectedUs: us(4.5)}, {Seq: 1, RTTUs: 12}, {Seq: 6, RTTUs: 14, CorrectedUs: us(2)},
	}}
	byNumber, byOrdinal := wireRuns{}, wireRuns{tool: wireTool{byOrdinal: true}}
	if err := byNumber.add(run, trips); err != nil || byNumber.compared != 1 || byNumber.netError[0].MeanUs != -1 {
		t.Errorf("by number: %+v, %v", byNumber, err)
	}
	if err := byOrdinal.add(run, trips); err != nil || byOrdinal.compared != 1 || byOrdinal.netError[0].MeanUs != 0.5 || byOrdinal.rawError[0].MeanUs != 11 {
		t.Errorf("by ordinal: %+v, %v", byOrdinal, err)
	}
	if err := byNumber.add(correctedRun{received: 1}, nil); err == nil {
		t.Error("nothing to compare is no error")
	}
}

func TestReferee(t *testing.T) {
	container, host, remote := netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.78.0.1"), netip.MustParseAddr("10.78.0.2")
	request := unhex(t, requestHex)
	inContainer := append([]byte(nil), request...)
	copy(inContainer[12:], container.AsSlice())
	const ahead, tapNS = int64(1_000_000_000), int64(5_000)
	record := func(header []byte, outerNS int64) *mace.Record {
		return &mace.Record{Kind: mace.Egress, Status: mace.Matched, OuterNS: outerNS, Header: header}
	}
	other := append([]byte(nil), inContainer...)
	other[27]++ // the sequence number
	local := append([]byte(nil), inContainer...)
	copy(local[16:], netip.MustParseAddr("10.77.0.3").AsSlice())
	for _, tt := range []struct {
		name    string
		records []*mace.Record
		want    FalseMatches
	}{
		{"right", []*mace.Record{record(inContainer, tapNS+300)}, FalseMatches{Packets: 1}},
		{"too late", []*mace.Record{record(inContainer, tapNS+int64(timeAgreement)+1)}, FalseMatches{Packets: 1, WrongTime: 1}},
		{"too early", []*mace.Record{record(inContainer, tapNS-int64(timeAgreement)-1)}, FalseMatches{Packets: 1, WrongTime: 1}},
		{"another packet", []*mace.Record{record(other, tapNS)}, FalseMatches{Packets: 1, WrongIdentity: 1}},
		{"to a neighbour", []*mace.Record{record(local, tapNS)}, FalseMatches{Packets: 1, WrongDestination: 1}},
		{"no echo packet", []*mace.Record{record(unhex(t, ipv6Hex), tapNS)}, FalseMatches{Packets: 1, WrongDestination: 1}},
		{"twice", []*mace.Record{record(inContainer, tapNS), record(inContainer, tapNS)}, FalseMatches{Packets: 2, Repeated: 1}},
		{"a delivery is no match", []*mace.Record{{Kind: mace.Delivery, Header: inContainer}}, FalseMatches{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReferee(container, remote)
			seen, _ := parseTapped(request)
			if seen.Src != host {
				t.Fatal("the tap sees the host's address")
			}
			seen.Outgoing, seen.RealNS = true, tapNS+ahead
			r.tapped(seen, ahead)
			for _, rec := range tt.records {
				r.record(rec)
			}
			got := *r.judge()
			if wrong := got.WrongDestination + got.WrongIdentity + got.WrongTime + got.Repeated; len(got.Examples) != wrong {
				t.Errorf("%d examples of %d", len(got.Examples), wrong)
			}
			counts := [5]int{got.Packets, got.WrongIdentity, got.WrongDestination, got.WrongTime, got.Repeated}
			if want := [5]int{tt.want.Packets, tt.want.WrongIdentity, tt.want.WrongDestination, tt.want.WrongTime, tt.want.Repeated}; counts != want {
				t.Errorf("%v, want %v", counts, want)
			}
		})
	}
}

func TestPace(t *testing.T) {
	byNumber := Options{}.pace(1, 3, 0, time.Hour)
	rounds := 0
	for byNumber.next() {
		rounds++
	}
	if rounds != 3 {
		t.Errorf("%d rounds, want 3", rounds)
	}
	byTime := Options{Quick: true}.pace(3, 9, -time.Second, time.Hour)
	if !byTime.next() || byTime.next() {
		t.Error("out of time, there must be one round and no second")
	}
	asked := Options{Quick: true, Rounds: 7}.pace(3, 9, time.Hour, time.Hour)
	if asked.rounds != 7 {
		t.Errorf("%d rounds, want 7", asked.rounds)
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name string
		got  Target
		met  bool
	}{
		{"below", target("x", 0.9, 1, "us"), true},
		{"at the bound", target("x", 1, 1, "us"), true},
		{"above", target("x", 1.1, 1, "us"), false},
		{"far below zero", target("x", -1.1, 1, "us"), false},
		{"enough", targetAtLeast("x", 99.95, 99.9, "%"), true},
		{"too little", targetAtLeast("x", 99.89, 99.9, "%"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got.Met != tt.met {
				t.Errorf("%+v", tt.got)
			}
		})
	}
	// 99.9% of 3,000 is met with 3 missing, and a rounded figure must not hide a fourth.
	if percent(2997.0/3000) < percent(coverageShare) || percent(2996.0/3000) >= percent(coverageShare) {
		t.Errorf("%v and %v against %v", percent(2997.0/3000), percent(2996.0/3000), percent(coverageShare))
	}
}

func TestCompare(t *testing.T) {
	sample := func(mean float64) []Sample {
		return []Sample{{N: 1, MeanUs: mean, P50Us: mean}, {N: 1, MeanUs: mean + 1, P50Us: mean + 1}}
	}
	base := sample(10)
	arms := []perturbationArm{{name: armNone}, {name: armInert, inert: true}, {name: armInner, ftrace: armFtraceInner}, {name: armFtraceInner}}
	var p Perturbation
	p.compare(arms, [][]Sample{base, sample(10.5), sample(11), sample(12)}, [][]Sample{base, base, base, base}, 1)
	if len(p.Arms) != 4 {
		t.Fatalf("%d arms", len(p.Arms))
	}
	inner := p.Arms[2]
	if inner.CostUs.Estimate != 1 || inner.OverInertUs.Estimate != 0.5 || inner.RatioToFtrace == nil || inner.RatioToFtrace.Estimate != 0.5 {
		t.Errorf("%+v", inner)
	}
	if p.Arms[0].RatioToFtrace != nil || p.BaseRTTUs != (stats.Interval{Estimate: 10.5, Low: 10, High: 11, Level: 0.95, Rounds: 2}) {
		t.Errorf("%+v, %+v", p.Arms[0], p.BaseRTTUs)
	}
}
