package subtract

import (
	"math"
	"net/netip"
	"sync"

	"tare/mace"
	"tare/tool"
)

// roundTrips keeps what was measured until the tool's text asks for it.
type roundTrips struct {
	mu sync.Mutex
	// Two generations bound the memory of a run without end: the older one is dropped when the newer one is full.
	young, old generation
	// What the tool sent to each target, in order: fping and traceroute -T print only an ordinal.
	echoSent map[netip.Addr][]uint16 // sequence numbers
	tcpSent  map[netip.Addr][]uint16 // source ports
	shown    *candidate              // by the last call of correct
	// Of all round trips, whether the tool shows them or not; us.
	gross, added, net []float64
	status            map[string]int
}

const (
	generationSize = 1 << 17
	maxSent        = 1 << 20 // per target
	maxAdded       = 1 << 21
)

type generation struct {
	size   int
	byEcho map[probeKey][]*candidate
	byPort map[probeKey][]*candidate
}

// probeKey is how a tool's text names a probe: by sequence number or by port, and by whom it was sent to.
type probeKey struct {
	target netip.Addr
	number uint16
}

type candidate struct {
	rtt  mace.RTT
	used bool // the tool has shown it already
}

func newGeneration() generation {
	return generation{byEcho: map[probeKey][]*candidate{}, byPort: map[probeKey][]*candidate{}}
}

func newRoundTrips() *roundTrips {
	return &roundTrips{
		young: newGeneration(), old: newGeneration(),
		echoSent: map[netip.Addr][]uint16{}, tcpSent: map[netip.Addr][]uint16{},
		status: map[string]int{},
	}
}

// request notes what leaves the container.
func (t *roundTrips) request(p *mace.Passage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p.EchoRequest():
		if sent := t.echoSent[p.Dst]; len(sent) < maxSent {
			t.echoSent[p.Dst] = append(sent, uint16(p.Seq))
		}
	case p.IsTCPSYN():
		if sent := t.tcpSent[p.Dst]; len(sent) < maxSent {
			t.tcpSent[p.Dst] = append(sent, p.SrcPort)
		}
	}
}

// add keeps a round trip.
func (t *roundTrips) add(r *mace.RTT) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status[r.Status.String()]++
	if r.Status == mace.Matched && len(t.added) < maxAdded {
		t.gross = append(t.gross, float64(r.GrossNS())/1e3)
		t.added = append(t.added, float64(r.TareNS())/1e3)
		t.net = append(t.net, float64(r.NetNS())/1e3)
	}
	if t.young.size >= generationSize {
		t.old, t.young = t.young, newGeneration()
	}
	flow, seq := r.Probe()
	c := &candidate{rtt: *r}
	t.young.size++
	switch flow.ProtocolName() {
	case "icmp", "icmp6":
		key := probeKey{flow.Dst, uint16(seq)}
		t.young.byEcho[key] = append(t.young.byEcho[key], c)
	case "udp":
		key := probeKey{flow.Dst, flow.DstPort}
		t.young.byPort[key] = append(t.young.byPort[key], c)
	case "tcp":
		key := probeKey{flow.Dst, flow.SrcPort}
		t.young.byPort[key] = append(t.young.byPort[key], c)
	}
}

// correct finds the correction of an RTT that the tool has printed.
func (t *roundTrips) correct(r tool.Reply) tool.Correction {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, unique := closest(t.candidates(r), r.RTTUs)
	t.shown = c
	switch {
	case c == nil:
		return tool.Correction{Status: mace.Unseen.String()}
	case c.rtt.Status != mace.Matched:
		c.used = true
		return tool.Correction{Status: c.rtt.Status.String()}
	case !unique:
		return tool.Correction{Status: mace.Ambiguous.String()}
	}
	c.used = true
	added := float64(c.rtt.TareNS()) / 1e3
	if added > r.RTTUs+r.ResolutionUs {
		// More was added than there is: it cannot be this round trip's.
		return tool.Correction{Status: mace.Ambiguous.String()}
	}
	return tool.Correction{AddedUs: added, CorrectedUs: r.RTTUs - added, OK: true}
}

// last is the round trip that correct has found last.
func (t *roundTrips) last() (mace.RTT, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == nil {
		return mace.RTT{}, false
	}
	return t.shown.rtt, true
}

// allAdded is what was added to each round trip, in us.
func (t *roundTrips) allAdded() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]float64(nil), t.added...)
}

// summarize fills in what is known without the tool's text.
func (t *roundTrips) summarize(line *Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line.Status = map[string]int{}
	line.Received = 0
	for status, n := range t.status {
		line.Status[status] = n
		line.Received += n
	}
	line.Matched = t.status[mace.Matched.String()]
	line.Sent = line.Received
	if line.Received > 0 {
		line.Coverage = float64(line.Matched) / float64(line.Received)
	}
	line.RTTUs = distribution(tool.Describe(t.gross))
	line.AddedUs = distribution(tool.Describe(t.added))
	line.CorrectedUs = distribution(tool.Describe(t.net))
}

// candidates are the round trips that the tool may mean.
func (t *roundTrips) candidates(r tool.Reply) []*candidate {
	target := r.TargetAddr
	if r.Kind == tool.Echo && r.From.IsValid() {
		target = r.From
	}
	target = target.WithZone("")
	byPort, number := false, uint16(r.Seq)
	switch {
	case r.Kind == tool.Echo && !r.From.IsValid(): // TODO-ordinal
		sent := t.echoSent[target]
		if r.Seq < 0 || r.Seq >= len(sent) {
			return nil
		}
		number = sent[r.Seq]
	case r.Kind == tool.Probe && r.Proto == "udp" && r.Port > 0:
		byPort, number = true, uint16(r.Port)
	case r.Kind == tool.Probe && r.Proto == "tcp":
		sent := t.tcpSent[target]
		if r.Probe < 0 || r.Probe >= len(sent) {
			return nil
		}
		byPort, number = true, sent[r.Probe]
	case r.Seq < 0:
		return nil
	}
	key := probeKey{target, number}
	if byPort {
		return append(t.old.byPort[key], t.young.byPort[key]...)
	}
	return append(t.old.byEcho[key], t.young.byEcho[key]...)
}

// agreementUs is how far the time that the tool printed may be from the one seen in the kernel for two round trips
// to be told apart by it.
const agreementUs = 5

// closest is the unused candidate whose round trip agrees best with what was printed. unique is false where another
// one, of another conversation, would fit as well: two tools with the same numbers in the same container.
func closest(all []*candidate, printedUs float64) (best *candidate, unique bool) {
	distance := func(c *candidate) float64 {
		return math.Abs(float64(c.rtt.GrossNS())/1e3 - printedUs)
	}
	for _, c := range all {
		if !c.used && (best == nil || distance(c) <= distance(best)) {
			best = c
		}
	}
	for _, c := range all {
		if c != best && !c.used && c.rtt.Request.Flow != best.rtt.Request.Flow &&
			distance(c)-distance(best) < agreementUs {
			return best, false
		}
	}
	return best, true
}
