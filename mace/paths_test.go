package mace_test

import (
	"math"
	"slices"
	"testing"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// protocols are those that a path must follow in both directions.
var protocols = []struct {
	name, protocol string
	v6             bool
}{
	{"icmp", "raw", false}, {"icmp6", "raw", true},
	{"udp4", "udp", false}, {"udp6", "udp", true},
	{"tcp4", "tcp", false}, {"tcp6", "tcp", true},
}

func TestEveryPathFollowsEveryProtocol(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range mace.PathNames() {
		t.Run(path, func(t *testing.T) {
			engine := open(t, l, path)
			for _, p := range protocols {
				run(t, p.name, func(t *testing.T) {
					w := activate(t, engine, l, "c1")
					c := macetest.Client{Protocol: p.protocol, Remote: remote(l, p.v6, server.Port), Requests: 100}
					result := exchange(t, l, "c1", c)
					w.finish()
					w.answered(c, result)
					w.aggregatesAgree()
				})
			}
		})
	}
}

// question reports whether the passage is one of the client's requests, and answer, one of their answers. A TCP
// segment without payload is neither.
func question(c macetest.Client, p *mace.Passage) bool {
	return p.Dst == c.Remote.Addr() && carries(c, p)
}

func answer(c macetest.Client, p *mace.Passage) bool {
	return p.Src == c.Remote.Addr() && carries(c, p)
}

func carries(c macetest.Client, p *mace.Passage) bool {
	switch c.Protocol {
	case "udp":
		return p.ProtocolName() == "udp"
	case "tcp":
		return p.ProtocolName() == "tcp" && p.PayloadLen > 0
	}
	return p.EchoRequest() || p.EchoReply()
}

// answered checks that all of a client's packets were matched in both directions and all of its round trips paired.
func (w *watch) answered(c macetest.Client, result macetest.Result) {
	w.t.Helper()
	forgiven := 0
	for _, direction := range []mace.Kind{mace.Egress, mace.Ingress} {
		of := question
		if direction == mace.Ingress {
			of = answer
		}
		tally := w.tally(direction, func(p *mace.Passage) bool { return of(c, p) })
		forgiven += tally[mace.NoSyscall]
		forgive(c, direction, tally)
		if direction == mace.Ingress && w.lab.Options().Network == lab.NetworkMacvlan {
			// Nothing but its reading tells of a packet there: one whose reading is missed leaves no record at all.
			if absent := c.Requests - tally[mace.Matched]; absent > 0 && absent <= max(1, c.Requests/10) {
				tally[mace.Matched] += absent
				forgiven += absent
			}
		}
		if !w.expected(direction, tally, c.Requests) {
			w.t.Errorf("%d requests, unseen packets are %+v, and by status these %s packets: %v", c.Requests, w.missing, direction, tally)
		}
	}
	for i := range w.passages {
		p := &w.passages[i]
		if question(c, p) && p.Direction == mace.Egress && p.PID != uint32(result.PID) {
			w.t.Fatalf("a request of process %d is said to be of %d", result.PID, p.PID)
		}
		if answer(c, p) && p.Direction == mace.Ingress && p.Delivered && p.PID != uint32(result.PID) {
			w.t.Fatalf("an answer to process %d is said to be read by %d", result.PID, p.PID)
		}
	}
	paired, half := 0, 0
	for i := range w.rtts {
		r := &w.rtts[i]
		if !question(c, &r.Request) {
			continue
		}
		if c.Protocol != "raw" && r.Status == mace.NoSyscall {
			paired++ // counted above
			continue
		}
		if r.Status == mace.Unstarted || r.Status == mace.Unfinished || c.Protocol == "udp" && r.Status == mace.Ambiguous {
			half++ // so its other end, or of UDP the answer before it, must be among those that went unseen
			continue
		}
		if r.Status != mace.Matched || r.NetNS() <= 0 || r.TareNS() <= 0 || r.GrossNS() != r.NetNS()+r.TareNS() {
			w.t.Fatalf("round trip %s: gross %d = tare %d + net %d ns", r.Status, r.GrossNS(), r.TareNS(), r.NetNS())
		}
		paired++
	}
	// A UDP answer of which nobody knows leaves two requests open, and the next answer fits both.
	unknown := w.missing.total() + forgiven
	if !near(paired, c.Requests, 2*unknown) || half > unknown {
		w.t.Errorf("%d of %d requests were paired with their answers, %d with half of one; unseen: %+v", paired, c.Requests, half, w.missing)
	}
}

// expected checks by status the packets that there must be of one direction, so many: matched, but for those of which an
// end is known to be missing. Of what did not reach the NIC there is no passage.
func (w *watch) expected(direction mace.Kind, tally map[mace.Status]int, packets int) bool {
	missing, halfSeen := w.missing.out(), 0
	if direction == mace.Ingress {
		missing, halfSeen = w.missing.in(), tally[mace.Unstarted]
	}
	total := 0
	for _, n := range tally {
		total += n
	}
	return near(tally[mace.Matched], packets, missing) && tally[mace.Matched]+halfSeen == total && halfSeen <= int(w.missing.nicRx)
}

// forgive takes a few packets without a system call for matched. With UDP, answers that none was seen to read: a reader
// on another CPU can be faster than the event that says that the packet is queued (bpf/udp.h). It is missed then, and
// never mistaken. With TCP, requests that none has sent: on a slow machine a connection may hold one back until it is
// acknowledged what was sent before.
func forgive(c macetest.Client, direction mace.Kind, tally map[mace.Status]int) {
	may := c.Protocol == "udp" && direction == mace.Ingress || c.Protocol == "tcp" && direction == mace.Egress
	if missed := tally[mace.NoSyscall]; may && missed <= max(1, c.Requests/10) {
		tally[mace.Matched] += missed
		delete(tally, mace.NoSyscall)
	}
}

// aggregatesAgree checks the aggregates that the programs keep against the records.
func (w *watch) aggregatesAgree() {
	w.t.Helper()
	egress, ingress, err := w.ns.Aggregates()
	if err != nil {
		w.t.Fatal(err)
	}
	latencies := map[mace.Kind][]int64{}
	delivers := w.records[mace.Delivery][mace.Matched] > 0
	for i := range w.passages {
		p := &w.passages[i]
		// Where the way ends depends on who reads the packet, so the programs count it when it is read.
		if p.Status == mace.Matched && (p.Direction == mace.Egress || !delivers || p.Delivered) {
			latencies[p.Direction] = append(latencies[p.Direction], p.LatencyNS())
		}
	}
	w.agree("egress", egress, latencies[mace.Egress])
	w.agree("ingress", ingress, latencies[mace.Ingress])
}

func (w *watch) agree(direction string, a mace.Aggregate, latencies []int64) {
	w.t.Helper()
	if a.Count != uint64(len(latencies)) {
		w.t.Errorf("%s: %d latencies in the aggregate, %d in records", direction, a.Count, len(latencies))
		return
	}
	if len(latencies) == 0 {
		return
	}
	slices.Sort(latencies)
	var sum, squares float64
	for _, ns := range latencies {
		sum += float64(ns)
	}
	mean := sum / float64(len(latencies))
	for _, ns := range latencies {
		squares += (float64(ns) - mean) * (float64(ns) - mean)
	}
	stddev := math.Sqrt(squares / float64(len(latencies)))
	if math.Abs(a.MeanNS-mean) > 1 || math.Abs(a.StddevNS-stddev) > 1+stddev/1e6 {
		w.t.Errorf("%s: mean %f and deviation %f in the aggregate, %f and %f in records", direction, a.MeanNS, a.StddevNS, mean, stddev)
	}
	if a.MinNS != uint64(latencies[0]) || a.MaxNS != uint64(latencies[len(latencies)-1]) {
		w.t.Errorf("%s: %d to %d in the aggregate, %d to %d in records", direction, a.MinNS, a.MaxNS, latencies[0], latencies[len(latencies)-1])
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		want := float64(latencies[max(0, int(math.Ceil(q*float64(len(latencies))))-1)])
		// A bucket is 1/32 of its value wide, and its middle speaks for it.
		if got := float64(a.QuantileNS(q)); math.Abs(got-want) > want*0.032+1 {
			w.t.Errorf("%s: quantile %g is %g in the aggregate, %g in records", direction, q, got, want)
		}
	}
}
