package hops

import (
	"slices"
	"testing"
	"time"
)

// recorded is a record as the programs write it: of the points' events, on device 2 of the host, 100 ns apart.
func recorded(kind uint8, events ...uint8) *bpfHopsTrace {
	raw := &bpfHopsTrace{Kind: kind, Tag: 7, Token: 5_000, Count: uint8(len(events))}
	for i, e := range events[:min(len(events), len(raw.Points))] {
		raw.Points[i] = bpfHopsPoint{TimeNs: 1_000_000 + uint64(i)*100, Ifindex: 2, Event: e, Tag: 7}
	}
	return raw
}

func testJoiner(t *testing.T) (*joiner, *[]Trace) {
	t.Helper()
	d := &devices{known: map[deviceKey]*Device{{false, 2}: nic0, {true, 2}: eth0}, asked: time.Now()}
	c := &clock{}
	c.ahead.Store(1e18)
	var all []Trace
	j := newJoiner(d, c, bareMetal(t), func(trace *Trace) {
		kept := *trace
		kept.Points = slices.Clone(kept.Points)
		all = append(all, kept)
	})
	return j, &all
}

const inContainer = eventContainer

func TestJoiner(t *testing.T) {
	usual := []uint8{uint8(NetifRx), uint8(NetifReceiveSKB), uint8(NetifRx) | inContainer, uint8(NetifReceiveSKB) | inContainer}
	stamped := func(offsetNS int64) *bpfHopsTrace {
		raw := recorded(kindIngress, usual...)
		raw.StampNs = [2]uint64{1e18 + 1_000_000 - 10, uint64(1e18 + 1_000_200 - 10 + offsetNS)}
		raw.StampAt = [2]uint8{0, 2}
		return raw
	}
	for _, tt := range []struct {
		name     string
		raw      *bpfHopsTrace
		delivery *bpfHopsDelivery
		want     []Event
		why      Reason
		ns       int64
	}{
		{"usual", recorded(kindIngress, usual...), nil,
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB}, "", 200},
		{"read", recorded(kindIngress, usual...), &bpfHopsDelivery{Token: 5_000, CopyNs: 1_000_500, ExitNs: 1_000_600},
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB, SKBCopy, SysExit}, "", 200},
		{"read by io_uring's thread", recorded(kindIngress, usual...), &bpfHopsDelivery{Token: 5_000, CopyNs: 1_000_500},
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB, SKBCopy}, "", 200},
		{"stamps stand for netif_rx", stamped(0), &bpfHopsDelivery{Token: 5_000, CopyNs: 1_000_500, Flags: flagKernelStamp, StampNs: 1e18 + 1_000_200 - 10},
			[]Event{Stamp, NetifReceiveSKB, Stamp, NetifReceiveSKB, SKBCopy}, "", 200},
		{"stamps are not for this socket", stamped(0), &bpfHopsDelivery{Token: 5_000, CopyNs: 1_000_500},
			[]Event{Stamp, NetifReceiveSKB, Stamp, NetifReceiveSKB, SKBCopy}, "", 200},
		{"the clock was set", stamped(5e9), &bpfHopsDelivery{Token: 5_000, CopyNs: 1_000_500, Flags: flagKernelStamp, StampNs: 1e18 + 1_000_200 + 5e9},
			[]Event{Stamp, NetifReceiveSKB, NetifRx, NetifReceiveSKB, SKBCopy}, ReasonNoEnd, 0},
		{"another packet's point", func() *bpfHopsTrace { r := recorded(kindIngress, usual...); r.Points[2].Tag = 8; return r }(), nil,
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB}, ReasonTorn, 0},
		{"back in time", func() *bpfHopsTrace { r := recorded(kindIngress, usual...); r.Points[2].TimeNs = 5; return r }(), nil,
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB}, ReasonTorn, 0},
		{"merged", func() *bpfHopsTrace { r := recorded(kindIngress, usual...); r.Status = statusMerged; return r }(), nil,
			[]Event{NetifRx, NetifReceiveSKB, NetifRx, NetifReceiveSKB}, ReasonMerged, 0},
		{"more points than there is room for", recorded(kindEgress, slices.Repeat([]uint8{uint8(NetDevQueue) | inContainer}, 40)...), nil,
			slices.Repeat([]Event{NetDevQueue}, 16), ReasonNoEnd, 0},
		{"lost on the way", func() *bpfHopsTrace {
			r := recorded(kindEgress, uint8(NetDevQueue)|inContainer)
			r.Status = statusUnfinished
			return r
		}(), nil, []Event{NetDevQueue}, ReasonUnfinished, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, all := testJoiner(t)
			j.trace(tt.raw)
			if tt.delivery != nil {
				j.delivery(tt.delivery)
			}
			j.flush()
			if len(*all) != 1 {
				t.Fatalf("%d traces", len(*all))
			}
			got := &(*all)[0]
			var events []Event
			for _, p := range got.Points {
				events = append(events, p.Event)
			}
			if !slices.Equal(events, tt.want) {
				t.Errorf("points are %v, want %v", events, tt.want)
			}
			if got.Incomplete != tt.why || got.CorrectionNS() != tt.ns {
				t.Errorf("%d ns, %q, want %d and %q", got.CorrectionNS(), got.Incomplete, tt.ns, tt.why)
			}
			if got.Read != (tt.delivery != nil) {
				t.Errorf("read by a program: %v", got.Read)
			}
		})
	}
}

const kindEgress = 1

// A packet that nobody reads must not wait for ever, one that began before all programs were there is none, and one
// record must not become two traces.
func TestJoinerWaits(t *testing.T) {
	j, all := testJoiner(t)
	raw := recorded(kindIngress, uint8(NetifReceiveSKB), uint8(NetifReceiveSKB)|inContainer)
	j.trace(raw)
	j.trace(raw)
	j.expire(int64(raw.Token) + int64(joinFor))
	if len(*all) != 0 {
		t.Fatal("it did not wait")
	}
	j.expire(int64(raw.Token) + int64(joinFor) + 1)
	j.delivery(&bpfHopsDelivery{Token: raw.Token})
	j.flush()
	if len(*all) != 1 || len(j.waiting) != 0 || len(j.order) != 0 {
		t.Errorf("%d traces, %d and %d wait", len(*all), len(j.waiting), len(j.order))
	}
	j.sinceNS = 1_000_001
	j.trace(raw)
	j.flush()
	if len(*all) != 1 {
		t.Error("a trace that began too early was told")
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if h.quantile(0.5) != 0 || h.mean() != 0 {
		t.Error("an empty one has values")
	}
	for ns := int64(-50); ns <= 1_000_000; ns += 10 {
		h.add(ns)
	}
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := q * 1_000_000
		if got := h.quantile(q); got < exact*0.99-60 || got > exact*1.01+60 {
			t.Errorf("quantile %.3f is %.0f, want %.0f", q, got, exact)
		}
	}
	if want := int64(100_006) * (1_000_000 - 50) / 2; h.sumNS != want || h.maxNS != 1_000_000 {
		t.Errorf("sum %d, maximum %d", h.sumNS, h.maxNS)
	}
	for b := range 7000 {
		if got := bucketOf(int64(valueOf(b))); got != b {
			t.Fatalf("the middle of bucket %d is in bucket %d", b, got)
		}
	}
	h.add(1 << 62)
	if got := h.quantile(1); got < 1<<61 {
		t.Errorf("the largest is %.0f", got)
	}
}
