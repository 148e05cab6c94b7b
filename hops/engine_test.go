package hops_test

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"tare/container"
	"tare/hops"
	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// The waterfall explains what the engine subtracts, so the two must agree: packet by packet, and in the median. Both
// watch the same packets at the same time, by programs at the same events. They differ by what each does between the
// event and its look at the clock, and by the other's program where that runs in between; at an interval's end the
// engine's is 0.1 to 0.5 us late on purpose (its own cost is to be inside). So the median difference must be below
// statedErrorNS or a tenth of the latency, whichever is more.
const statedErrorNS = 1000

func TestAgreesWithEngine(t *testing.T) {
	const requests = 200
	for _, network := range []struct {
		kind  lab.Network
		cases [][2]string // path and protocol
	}{
		{lab.NetworkBridge, [][2]string{{"bare-metal", "raw"}, {"bare-metal", "udp"}, {"wire", "ping"}, {"inner-dev", "tcp"}, {"max-dev", "udp"}, {"syscalls", "tcp"}}},
		{lab.NetworkVXLAN, [][2]string{{"bare-metal", "udp"}}},
		{lab.NetworkMacvlan, [][2]string{{"wire", "ping"}}},
	} {
		l := up(t, lab.Options{Network: network.kind})
		server := echo(t, l)
		for _, c := range network.cases {
			path, protocol := c[0], c[1]
			t.Run(string(network.kind)+"/"+path+"/"+protocol, func(t *testing.T) {
				w := watch(t, l, path)
				e := runEngine(t, l, path, network.kind == lab.NetworkMacvlan)
				exchange(t, l, macetest.Client{Protocol: protocol, Remote: remote(l, false, server.Port), Requests: requests, Stamp: stampOf(protocol)})
				e.finish()
				w.finish()
				for _, direction := range []hops.Direction{hops.Egress, hops.Ingress} {
					w.compare(e, direction, requests)
				}
				egress, ingress, err := e.ns.Aggregates()
				if err != nil {
					t.Fatal(err)
				}
				for direction, a := range []mace.Aggregate{egress, ingress} {
					median := w.waterfall.Summary(hops.Direction(direction)).Correction.P50NS
					if difference := abs(int64(median) - int64(a.QuantileNS(0.5))); difference > tolerated(int64(a.QuantileNS(0.5))) {
						t.Errorf("%s: the waterfall's median is %.0f ns, the engine's aggregate's is %d", hops.Direction(direction), median, a.QuantileNS(0.5))
					}
				}
			})
		}
	}
}

// stampOf makes the ICMP client one with kernel stamps, like ping, so that the paths' stamped interval is tried, too.
func stampOf(protocol string) string {
	if protocol == "raw" || protocol == "ping" {
		return "SO_TIMESTAMP"
	}
	return ""
}

func tolerated(ns int64) int64 { return max(statedErrorNS, ns/10) }

func abs(v int64) int64 { return max(v, -v) }

// key tells a packet of one direction from the others.
type key struct {
	flow     mace.Flow
	seq, ack uint32
	flags    uint8
	payload  int
}

func keyOf(p *mace.Packet) key { return key{p.Flow, p.Seq, p.Ack, p.TCPFlags, p.PayloadLen} }

// engine is the engine of package mace beside a session.
type engine struct {
	t      *testing.T
	engine *mace.Engine
	ns     *mace.Namespace
	found  map[key][]int64 // latencies of matched packets
}

func runEngine(t *testing.T, l *lab.Lab, pathName string, nicDelivers bool) *engine {
	t.Helper()
	hostCookie, err := container.NetNSCookie(l.NetNSPath(lab.Host))
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := container.NetNSCookie(l.NetNSPath(lab.Container(1)))
	if err != nil {
		t.Fatal(err)
	}
	nic := mace.Device{NetNSCookie: hostCookie, Name: lab.NIC}
	err = l.Do(lab.Host, func() error {
		link, err := net.InterfaceByName(lab.NIC)
		if err == nil {
			nic.Index = link.Index
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{t: t, found: map[key][]int64{}}
	e.engine, err = mace.Open(mace.Options{Path: path(t, pathName), NICs: []mace.Device{nic}, Aggregates: true, NICDelivers: nicDelivers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.engine.Close() })
	if e.ns, err = e.engine.Activate(cookie); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *engine) finish() {
	e.t.Helper()
	joiner := e.engine.NewJoiner(func(p *mace.Passage) {
		if p.Status == mace.Matched {
			e.found[keyOf(&p.Packet)] = append(e.found[keyOf(&p.Packet)], p.LatencyNS())
		}
	})
	if err := e.ns.Drain(joiner.Add); err != nil {
		e.t.Fatal(err)
	}
	joiner.Flush()
}

// compare looks for each trace's packet among the engine's.
func (w *watched) compare(e *engine, direction hops.Direction, want int) {
	w.t.Helper()
	var differences, latencies []int64
	for i := range w.traces {
		t := &w.traces[i]
		if t.Direction != direction || t.Incomplete != "" {
			continue
		}
		// A key that two packets share, as UDP's do, says only which of them came before the other.
		k := keyOf(&t.Packet)
		if same := e.found[k]; len(same) > 0 {
			differences = append(differences, same[0]-t.CorrectionNS())
			latencies = append(latencies, same[0])
			e.found[k] = same[1:]
		}
	}
	if len(differences) < want*9/10 {
		w.t.Errorf("%s: %d of %d packets are known to both", direction, len(differences), want)
		return
	}
	slices.Sort(differences)
	slices.Sort(latencies)
	middle, latency := differences[len(differences)/2], latencies[len(latencies)/2]
	if abs(middle) > tolerated(latency) {
		w.t.Errorf("%s: the engine says %s ns more than the waterfall, of %d, in the median of %d packets", direction,
			strconv.FormatInt(middle, 10), latency, len(differences))
	}
	w.t.Logf("%s: engine minus waterfall %d ns [%d, %d] of %d", direction, middle, differences[len(differences)/20],
		differences[len(differences)*19/20], latency)
}
