package mace_test

import (
	"os"
	"testing"
	"time"

	"tare/lab"
	"tare/mace"
)

// watch is an active namespace and all that was told of it.
type watch struct {
	t        *testing.T
	lab      *lab.Lab
	host     string
	ns       *mace.Namespace
	joiner   *mace.Joiner
	records  map[mace.Kind]map[mace.Status]uint64
	passages []mace.Passage
	rtts     []mace.RTT
	// What is said to have left, for the tap to confirm, and for TCP the lengths of its payload.
	egress  map[sighting]int
	lengths map[sighting]uint32

	path     mace.Path
	engine   *mace.Engine
	nic      struct{ tx, rx uint64 } // its own counts when they were last read
	began    independent
	nicBegan mace.NICCounters
	// All of these are since the start, and of the last reading.
	counts    mace.Counters
	nicCounts mace.NICCounters
	// What was counted without the programs. Unless the test pings by IPv6, its ICMPv6 messages are for neighbours, and
	// begin to leave but do not go by the NIC.
	there    independent
	missing  missing
	arrivals arrivals
	patience time.Duration // no packet's way is longer
}

// open attaches a path to a lab whose NIC is nic0.
func open(t *testing.T, l *lab.Lab, path string, change ...func(*mace.Options)) *mace.Engine {
	t.Helper()
	parsed, err := mace.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	options := mace.Options{Path: parsed, Aggregates: true, NICs: []mace.Device{device(t, l, lab.Host, lab.NIC)},
		NICDelivers: l.Options().Network == lab.NetworkMacvlan}
	for _, f := range change {
		f(&options)
	}
	if idle, err := time.ParseDuration(os.Getenv(blindTests)); err == nil && options.BlindPID == 0 {
		options.BlindPID = blindWhile(t, idle)
	}
	engine, err := mace.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// activate begins to watch a host of the lab.
func activate(t *testing.T, engine *mace.Engine, l *lab.Lab, host string) *watch {
	t.Helper()
	cookie, err := l.NetNSCookie(host)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{t: t, lab: l, path: engine.Path(), engine: engine, patience: time.Second, host: host, records: map[mace.Kind]map[mace.Status]uint64{},
		egress: map[sighting]int{}, lengths: map[sighting]uint32{}}
	if l.Options().Network == lab.NetworkMacvlan {
		w.arrivals = whenRead
	}
	for kind := mace.Egress; kind <= mace.Delivery; kind++ {
		w.records[kind] = map[mace.Status]uint64{}
	}
	correlator := mace.NewCorrelator(func(r *mace.RTT) { w.rtts = append(w.rtts, *r) })
	w.joiner = mace.NewJoiner(engine.Path(), func(p *mace.Passage) {
		w.passages = append(w.passages, *p)
		correlator.Add(p)
	})
	t.Cleanup(func() {
		if w.ns != nil {
			w.ns.Close()
		}
	})
	// A packet that passes meanwhile (IPv6 announces itself for some seconds) may be in one count and not in the other.
	for range 10 {
		w.began = w.countIndependently()
		if w.nicBegan, err = engine.NICCounters(0); err != nil {
			t.Fatal(err)
		}
		if w.ns, err = engine.Activate(cookie); err != nil {
			t.Fatal(err)
		}
		if w.countIndependently() == w.began {
			return w
		}
		w.ns.Close()
	}
	t.Fatalf("%s is never quiet", host)
	return nil
}

func (w *watch) drain() {
	w.t.Helper()
	err := w.ns.Drain(func(r *mace.Record) {
		w.records[r.Kind][r.Status]++
		w.left(r)
		w.joiner.Add(r)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// left notes a packet that is said to have left.
func (w *watch) left(r *mace.Record) {
	if r.Kind != mace.Egress || r.Status != mace.Matched {
		return
	}
	if p, ok := mace.ParsePacket(r.Header, int(r.Len)); ok {
		s := sightingOf(r.Header, &p)
		w.egress[s]++
		w.lengths[s] = uint32(p.PayloadLen)
	}
}

// read takes all counts, and reports whether any has changed.
func (w *watch) read() (changed bool) {
	w.t.Helper()
	counts, err := w.ns.Counters()
	if err != nil {
		w.t.Fatal(err)
	}
	nic, err := w.engine.NICCounters(0)
	if err != nil {
		w.t.Fatal(err)
	}
	nic = nic.Sub(w.nicBegan)
	there := w.countIndependently().sub(w.began)
	changed = counts != w.counts || nic != w.nicCounts || there != w.there
	w.counts, w.nicCounts, w.there = counts, nic, there
	return changed
}

// finish waits until nothing moves any more, and checks that every packet is accounted for.
func (w *watch) finish() {
	w.t.Helper()
	w.settle()
	if w.tooBlind() {
		w.abandon()
	}
	w.joiner.Flush()
	w.account()
}

// settle waits until nothing moves any more.
func (w *watch) settle() {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		w.drain()
		if !w.read() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.compare()
}

// account checks that what is told about packets, in records and in counters, is consistent and complete.
func (w *watch) account() {
	w.t.Helper()
	c := w.counts
	if c.RingDropped > 0 {
		w.t.Errorf("%d records were dropped", c.RingDropped)
	}
	for _, tt := range []struct {
		what   string
		kind   mace.Kind
		status mace.Status
		count  uint64
	}{
		{"egress", mace.Egress, mace.Matched, c.EgressMatched},
		{"egress", mace.Egress, mace.Ambiguous, c.EgressAmbiguous},
		{"ingress", mace.Ingress, mace.Matched, c.IngressMatched},
		{"ingress", mace.Ingress, mace.Ambiguous, c.IngressAmbiguous},
		{"ingress", mace.Ingress, mace.Merged, c.IngressMerged},
		{"ingress", mace.Ingress, mace.Unstarted, c.IngressUnstarted},
		{"delivery", mace.Delivery, mace.Matched, c.Delivered},
	} {
		if got := w.records[tt.kind][tt.status]; got != tt.count {
			w.t.Errorf("%d records of %s packets that are %s, and %d were counted", got, tt.what, tt.status, tt.count)
		}
	}
	ingress := c.IngressMatched + c.IngressAmbiguous + c.IngressMerged + c.IngressUnstarted
	// What is not IP, ARP say, is counted on both sides together.
	if seen, told := c.DeviceTx+c.DeviceRx, c.EgressStarted+ingress+c.Malformed; seen != told {
		w.t.Errorf("%d packets seen, %d accounted for: %+v", seen, told, c)
	}
	if c.EgressMatched+c.EgressAmbiguous > c.EgressStarted {
		w.t.Errorf("more packets have left than begun: %+v", c)
	}
	if c.EgressAmbiguous+c.IngressAmbiguous > 0 {
		w.t.Errorf("%d packets out and %d in are ambiguous", c.EgressAmbiguous, c.IngressAmbiguous)
	}
	w.ordered()
	if w.t.Failed() {
		w.t.Logf("counters: %+v; there were %+v, missing are %+v", c, w.there, w.missing)
	}
}

// ordered checks that no packet travels back in time.
func (w *watch) ordered() {
	w.t.Helper()
	for i := range w.passages {
		p := &w.passages[i]
		if p.Status != mace.Matched {
			continue
		}
		first, last := p.InnerNS, p.OuterNS
		if p.Direction == mace.Ingress {
			first, last = last, first
		}
		if first <= 0 || last <= first || last-first > int64(w.patience) {
			w.t.Fatalf("a matched packet goes from %d to %d: %+v", first, last, *p)
		}
	}
}

// unfinished is how many packets have begun and not left.
func (w *watch) unfinished() uint64 {
	return w.counts.EgressStarted - w.counts.EgressMatched - w.counts.EgressAmbiguous
}

// tally counts passages by their status.
func (w *watch) tally(direction mace.Kind, of func(*mace.Passage) bool) map[mace.Status]int {
	tally := map[mace.Status]int{}
	for i := range w.passages {
		if p := &w.passages[i]; p.Direction == direction && of(p) {
			tally[p.Status]++
		}
	}
	return tally
}
