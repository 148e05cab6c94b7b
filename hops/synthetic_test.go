package hops

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/mace"
)

// Traces made by hand, for what needs no kernel.

var (
	eth0  = &Device{Name: "eth0", Kind: "veth", Index: 2, InContainer: true}
	veth1 = &Device{Name: "veth1", Kind: "veth", Index: 5, Master: 3}
	br0   = &Device{Name: "br0", Kind: "bridge", Index: 3}
	nic0  = &Device{Name: "nic0", Kind: "veth", Index: 2, NIC: true}
	odd0  = &Device{Name: "if9", Index: 9}
)

func bareMetal(t testing.TB) mace.Path {
	t.Helper()
	path, err := mace.ParsePath("bare-metal")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// traceOf builds a trace of points that are so many ns apart from each other.
func traceOf(t testing.TB, direction Direction, startNS int64, points ...Point) *Trace {
	t.Helper()
	made := &Trace{Direction: direction, Time: time.Unix(0, startNS), Len: 84, PID: 7, Timed: true, Points: points}
	made.Packet.Flow = mace.Flow{Protocol: 17, Src: netip.MustParseAddr("10.0.0.2"), Dst: netip.MustParseAddr("10.0.0.1"), SrcPort: 4000, DstPort: 53}
	for i := range points {
		startNS += points[i].TimeNS
		points[i].TimeNS = startNS
	}
	made.From, made.To, made.Incomplete = interval(bareMetal(t), made)
	return made
}

func point(e Event, d *Device, afterNS, spentNS int64) Point { return Point{e, d, afterNS, spentNS} }

// out is a usual packet out of the container.
func out(t testing.TB, startNS int64) *Trace {
	return traceOf(t, Egress, startNS,
		point(SysEnter, none, 0, 60), point(NetDevQueue, eth0, 2000, 140), point(NetDevStartXmit, eth0, 300, 60),
		point(NetifRx, veth1, 330, 50), point(NetifReceiveSKB, veth1, 680, 50), point(NetifReceiveSKBEntry, br0, 1240, 50),
		point(NetifReceiveSKB, br0, 180, 40), point(NetDevQueue, nic0, 1530, 90), point(NetDevStartXmit, nic0, 240, 90), point(NetDevXmit, nic0, 550, 0))
}

// unseen is the same, when no program has run at three of its points.
func unseen(t testing.TB, startNS int64) *Trace {
	return traceOf(t, Egress, startNS,
		point(SysEnter, none, 0, 60), point(NetDevQueue, eth0, 2000, 140), point(NetDevStartXmit, eth0, 300, 60),
		point(NetDevQueue, nic0, 4000, 90), point(NetDevStartXmit, nic0, 240, 90), point(NetDevXmit, nic0, 550, 0))
}

// into is a usual packet to a socket with kernel stamps.
func into(t testing.TB, startNS int64) *Trace {
	made := traceOf(t, Ingress, startNS,
		point(Stamp, nic0, 0, 100), point(NetifReceiveSKB, nic0, 830, 90), point(NetDevQueue, br0, 1460, 50), point(NetDevStartXmit, br0, 200, 50),
		point(NetDevQueue, veth1, 400, 50), point(NetDevStartXmit, veth1, 160, 50), point(Stamp, eth0, 170, 50), point(NetifReceiveSKB, eth0, 670, 130),
		point(SKBCopy, none, 4590, 190), point(SysExit, none, 1090, 0))
	made.Read, made.KernelStamp = true, true
	made.From, made.To, made.Incomplete = interval(bareMetal(t), made)
	return made
}

func usualReport(t testing.TB) (*Report, *Timeline) {
	t.Helper()
	w, l := NewWaterfall(bareMetal(t)), NewTimeline("netns:c1")
	add := func(trace *Trace) {
		w.Add(trace)
		l.Add(trace)
	}
	for i := range 9 {
		add(out(t, int64(i)*4000+1e9)) // each begins while the one before is under way
		add(into(t, int64(i)*20000+1e9))
	}
	add(unseen(t, 2e9))
	dropped := traceOf(t, Egress, 3e9, point(NetDevQueue, eth0, 0, 0), point(NetDevStartXmit, eth0, 300, 0))
	dropped.Incomplete = ReasonUnfinished
	add(dropped)
	r := &Report{Container: "c1", NICs: []string{"nic0"}, Path: "bare-metal", Seconds: 2, Egress: w.Summary(Egress), Ingress: w.Summary(Ingress),
		Account: Account{CountedTx: 11, CountedRx: 9, DeviceTx: 11, DeviceRx: 9}}
	return r, l
}

const usualText = `out: program → eth0 → veth1 → br0 → nic0                              10 packets
     program → eth0 → nic0: 1 of them
                                   mean    p50    p99 tracer
  socket, IP stack   eth0          2.00   2.00   2.00   0.06 ░░░░░░
╭ qdisc              eth0          0.30   0.30   0.30   0.14      ▕▋
│ veth               → veth1       0.30   0.33   0.33   0.06       ▐▌
│ backlog            veth1         0.61   0.68   0.68   0.05        ▐█▎
│ bridge             → br0         1.12   1.24   1.24   0.05          ▐██▍
│ backlog, RPS       br0           0.16   0.18   0.18   0.05             ▌
│ netfilter, routing → nic0        1.38   1.53   1.53   0.04             ▕███▊
│ unexplained                      0.40
│   net_dev_start_xmit@eth0 → net_dev_queue@nic0
│   in 1 of 10 packets, p50 4.00, p99 4.00
╰ = correction                     4.26   4.27   4.30   0.37
  qdisc              nic0          0.24   0.24   0.24   0.09                 ░
  driver             nic0          0.55   0.55   0.55   0.09                  ░░
   + 1 packet never came to the NIC: local, dropped, or by another device

in: nic0 → br0 → veth1 → eth0 → program                                9 packets
                                   mean    p50    p99 tracer
╭ backlog            nic0          0.83   0.83   0.83   0.10 █▊
│ netfilter, routing → br0         1.46   1.46   1.46   0.09  ▕██▋
│ qdisc              br0           0.20   0.20   0.20   0.05     ▌
│ bridge             → veth1       0.40   0.40   0.40   0.05     ▕▊
│ qdisc              veth1         0.16   0.16   0.16   0.05      ▕▏
│ veth               → eth0        0.17   0.17   0.17   0.05       ▍
│ unexplained                      0.00
╰ = correction                     3.22   3.22   3.22   0.39
  backlog            eth0          0.67   0.67   0.67   0.05       ░░
  socket, wake-up                  4.59   4.59   4.59   0.13         ░░░░░░░░░
  copy, return                     1.09   1.09   1.09   0.19                  ░░
`

func TestText(t *testing.T) {
	r, _ := usualReport(t)
	for _, width := range []int{0, 20, 60, 80, 120, 400} {
		var text bytes.Buffer
		if err := r.WriteText(&text, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		if width == 80 && !strings.HasPrefix(text.String(), usualText) {
			t.Errorf("the waterfall is\n%s\nwant\n%s", &text, usualText)
		}
		if width != 80 {
			continue
		}
		for line := range strings.Lines(text.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}

// Nothing that a container does may crash the waterfall, fill the memory or break its sums: any points in any order.
func TestAnyShape(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w, l := NewWaterfall(bareMetal(t)), NewTimeline("any")
	devices := []*Device{eth0, veth1, br0, nic0, odd0, none}
	for i := range 300 {
		devices = append(devices, &Device{Name: strings.Repeat("x", i%20), Index: i, Kind: []string{"", "veth", "vxlan", "odd"}[i%4], Master: i % 3})
	}
	for range 2000 {
		var points []Point
		for range 1 + random.IntN(20) {
			e, d := Event(random.IntN(14)), devices[random.IntN(6)]
			if random.IntN(4) == 0 {
				e, d = Event(random.IntN(70)), devices[random.IntN(len(devices))]
			}
			points = append(points, point(e, d, int64(random.IntN(1e6))-1000, int64(random.IntN(100))))
		}
		trace := traceOf(t, Direction(random.IntN(2)), 1e9, points...)
		w.Add(trace)
		l.Add(trace)
	}
	r := &Report{Container: "any", Egress: w.Summary(Egress), Ingress: w.Summary(Ingress)}
	for _, s := range []Summary{r.Egress, r.Ingress} {
		sum, unexplained := int64(0), int64(0)
		for _, h := range s.Hops {
			sum += h.InsideSumNS
			if !h.Explained {
				unexplained += h.InsideSumNS
			}
		}
		if s.Packets == 0 || sum != s.CorrectionSumNS || unexplained != s.Unexplained.SumNS {
			t.Errorf("hops of %d packets add up to %d ns of %d, those without a name to %d of %d", s.Packets, sum, s.CorrectionSumNS, unexplained, s.Unexplained.SumNS)
		}
		if len(s.Hops) > maxRows || len(s.Routes) > maxRoutes+1 {
			t.Errorf("%d rows and %d routes", len(s.Hops), len(s.Routes))
		}
	}
	var b bytes.Buffer
	for _, write := range []func() error{
		func() error { return r.WriteText(&b, TextOptions{}) }, func() error { return r.WriteHTML(&b) }, func() error { return l.Write(&b) },
		func() error { return json.NewEncoder(&b).Encode(r) },
	} {
		if err := write(); err != nil {
			t.Error(err)
		}
	}
	if len(Compare(r, r)) == 0 {
		t.Error("nothing to compare")
	}
	for _, d := range Compare(r, r) {
		if d.DeltaNS != 0 {
			t.Fatalf("a waterfall differs from itself: %+v", d)
		}
	}
}

func TestHopNames(t *testing.T) {
	vxlan := &Device{Name: "vxlan0", Kind: "vxlan", Index: 8, Master: 3}
	routed := &Device{Name: "cali1", Kind: "veth", Index: 11}
	for _, tt := range []struct {
		from, to  Point
		want      string
		explained bool
	}{
		{point(NetifReceiveSKB, veth1, 0, 0), point(NetDevQueue, vxlan, 0, 0), "bridge", true},
		{point(NetDevStartXmit, vxlan, 0, 0), point(NetDevQueue, nic0, 0, 0), "vxlan", true},
		{point(NetifReceiveSKB, routed, 0, 0), point(NetDevQueue, nic0, 0, 0), "netfilter, routing", true},
		{point(NAPIGROReceive, nic0, 0, 0), point(NetifReceiveSKB, nic0, 0, 0), "GRO", true},
		{point(NetifRx, nic0, 0, 0), point(NetifReceiveSKB, nic0, 0, 0), "backlog", true},
		{point(NetDevStartXmit, nic0, 0, 0), point(NetDevStartXmit, nic0, 0, 0), "qdisc, driver busy", true},
		// Points are missing in between.
		{point(NetifReceiveSKB, veth1, 0, 0), point(NetDevQueue, nic0, 0, 0), "", false},
		{point(NetDevQueue, eth0, 0, 0), point(NetifRx, veth1, 0, 0), "", false},
		{point(NetifReceiveSKB, odd0, 0, 0), point(NetDevQueue, nic0, 0, 0), "netfilter, routing", false},
		{point(Event(60), odd0, 0, 0), point(Event(61), odd0, 0, 0), "", false},
		{point(SysExit, none, 0, 0), point(SysEnter, none, 0, 0), "", false},
	} {
		if got, explained := hopName(tt.from, tt.to); got != tt.want || explained != tt.explained {
			t.Errorf("%s -> %s is %q (%v), want %q (%v)", tt.from, tt.to, got, explained, tt.want, tt.explained)
		}
	}
}

func TestCompare(t *testing.T) {
	before, _ := usualReport(t)
	after, _ := usualReport(t)
	slow := slices.IndexFunc(after.Egress.Hops, func(h Hop) bool { return h.Name == "netfilter, routing" })
	after.Egress.Hops[slow].P50NS += 5000
	after.Egress.Hops[slow].To = "net_dev_queue@eth7" // the other container's host has other names
	after.Ingress.Hops = after.Ingress.Hops[:3]
	after.Ingress.Hops = append(after.Ingress.Hops, Hop{Name: "GRO", From: "a", To: "b", Times: Times{P50NS: 70}})
	for _, d := range Compare(before, after) {
		want := 0.0
		switch {
		case d.Direction == "egress" && d.Name == "netfilter, routing":
			want = 5000
		case d.Name == "GRO":
			want = 70
		case d.Direction == "ingress" && d.AfterNS == nil:
			want = -*d.BeforeNS
		}
		if d.DeltaNS != want {
			t.Errorf("%+v, want a difference of %.0f", d, want)
		}
	}
}
