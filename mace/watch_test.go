package mace_test

import (
	"fmt"
	"os"
	"strings"
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

	tx, rx  uint64 // of the namespace's devices at the start
	started uint64 // ICMPv6 messages that the namespace had sent by then
	counts  mace.Counters
	// What the last reading of the devices' own counts was since the start.
	deviceTx, deviceRx uint64
	// How many ICMPv6 messages the namespace has sent since the start. Unless the test pings by IPv6, they are for
	// neighbours, and begin to leave but do not go by the NIC.
	neighbourly uint64
	// Why the devices' own counts may differ from what the programs see, where they may.
	inexactTx, inexactRx string
	// How many packets the programs may have missed: those that a timer sends may be sent on top of PID 1, where some
	// kernels run no program.
	unseen   uint64
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
	w := &watch{t: t, lab: l, patience: time.Second, host: host, records: map[mace.Kind]map[mace.Status]uint64{},
		egress: map[sighting]int{}, lengths: map[sighting]uint32{}}
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
		w.started = icmp6Sent(t, l, host)
		w.tx, w.rx = devicePackets(t, l, host)
		if w.ns, err = engine.Activate(cookie); err != nil {
			t.Fatal(err)
		}
		if tx, rx := devicePackets(t, l, host); tx == w.tx && rx == w.rx {
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
	tx, rx := devicePackets(w.t, w.lab, w.host)
	w.neighbourly = icmp6Sent(w.t, w.lab, w.host) - w.started
	changed = counts != w.counts || tx-w.tx != w.deviceTx || rx-w.rx != w.deviceRx
	w.counts, w.deviceTx, w.deviceRx = counts, tx-w.tx, rx-w.rx
	return changed
}

// finish waits until nothing moves any more, and checks that every packet is accounted for.
func (w *watch) finish() {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		w.drain()
		if !w.read() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.joiner.Flush()
	w.account()
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
	exact := func(seen, counted uint64) bool { return seen <= counted && counted-seen <= w.unseen }
	if w.inexactTx == "" && !exact(c.DeviceTx, w.deviceTx) || w.inexactRx == "" && !exact(c.DeviceRx, w.deviceRx) {
		w.t.Errorf("the audit finds %d of %d packets out and %d of %d in", c.DeviceTx, w.deviceTx, c.DeviceRx, w.deviceRx)
	}
	w.ordered()
	if w.t.Failed() {
		w.t.Logf("counters: %+v", c)
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

func icmp6Sent(t *testing.T, l *lab.Lab, host string) (sent uint64) {
	t.Helper()
	err := l.Do(host, func() error {
		text, err := os.ReadFile("/proc/thread-self/net/snmp6")
		if err != nil {
			return err
		}
		_, after, _ := strings.Cut(string(text), "Icmp6OutMsgs")
		_, err = fmt.Sscan(after, &sent)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
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
