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
	// sane: the path ends where the tool takes its time, so nothing can be corrected to less than nothing. A path that
	// the user has chosen may end anywhere.
	sane bool
	argv []string

	mu sync.Mutex
	// Two generations bound the memory of a run without end: the older one is dropped when the newer one is full.
	young, old generation
	shown      *candidate              // by the last call of correct
	addresses  map[string][]netip.Addr // of targets that argv names
}

// generationSize is how far a tool's text may lag behind: some hold back 4 KiB, which is 60 lines.
const generationSize = 1 << 15

type generation struct {
	size    int
	byProbe map[probeKey][]*candidate
	echoes  map[uint16]*echoSeries // by the identifier that one tool has
	byTTL   map[ttlKey][]*candidate
	stayed  map[netip.Addr]bool // targets of probes that a router on this host has sent back
}

// probeKey is how a tool's text names a probe: by sequence number or by port, and by whom it was sent to.
type probeKey struct {
	protocol string
	target   netip.Addr
	number   uint16
}

// ttlKey finds the probes of traceroute that have no number: those of one hop, in order.
type ttlKey struct {
	target netip.Addr
	ttl    uint8
}

// candidate is what has to be remembered of a round trip.
type candidate struct {
	flow                         mace.Flow // of the request
	seq                          uint32
	status                       mace.Status
	grossNS, egressNS, ingressNS int64
	used                         bool // the tool has shown it already
}

func (c *candidate) tareNS() int64 { return c.egressNS + c.ingressNS }

func newGeneration() generation {
	return generation{
		byProbe: map[probeKey][]*candidate{}, echoes: map[uint16]*echoSeries{}, byTTL: map[ttlKey][]*candidate{},
		stayed: map[netip.Addr]bool{},
	}
}

func newRoundTrips(sane bool, argv []string) *roundTrips {
	return &roundTrips{sane: sane, argv: argv, young: newGeneration(), old: newGeneration(), addresses: map[string][]netip.Addr{}}
}

// request notes what leaves the container: that of the requests that nobody answers is all there ever is.
func (t *roundTrips) request(p *mace.Passage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case p.EchoRequest():
		t.young.echo(p.Flow, uint16(p.Seq))
	case p.IsTCPSYN() || p.ProtocolName() == "udp":
		// An unanswered probe counts in the order of its hop. Its round trip, if it comes, takes this place.
		key := ttlKey{p.Dst, p.TTL}
		if probes := t.young.byTTL[key]; len(probes) < 256 && t.young.size < generationSize {
			t.young.size++
			t.young.byTTL[key] = append(probes, &candidate{flow: p.Flow, seq: p.Seq, status: mace.Unseen})
		}
	}
}

// add keeps a round trip.
func (t *roundTrips) add(r *mace.RTT) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.young.size >= generationSize {
		t.old, t.young = t.young, newGeneration()
	}
	t.young.size++
	flow, seq := r.Probe()
	c := &candidate{
		flow: r.Request.Flow, seq: r.Request.Seq, status: r.Status,
		grossNS: r.GrossNS(), egressNS: r.Request.LatencyNS(), ingressNS: r.Reply.LatencyNS(),
	}
	key := probeKey{flow.ProtocolName(), flow.Dst, uint16(seq)}
	if r.Reply.IsError() && r.Request.Direction != mace.Egress {
		t.young.stayed[flow.Dst] = true
	}
	switch key.protocol {
	case "icmp", "icmp6":
		key.protocol = "icmp"
		t.young.echo(flow, uint16(seq)) // one that stayed on this host was not seen to leave
	case "udp", "tcp":
		key.number = flow.DstPort
		t.fill(c, r.Request.TTL)
	default:
		return
	}
	t.young.byProbe[key] = append(t.young.byProbe[key], c)
}

// fill puts a round trip where its request is in the order of its hop.
func (t *roundTrips) fill(c *candidate, ttl uint8) {
	for _, g := range []*generation{&t.young, &t.old} {
		probes := g.byTTL[ttlKey{c.flow.Dst, ttl}]
		for i, probe := range probes {
			if probe.flow == c.flow && probe.seq == c.seq {
				probes[i] = c
				return
			}
		}
	}
}

// last is the round trip that correct has found last.
func (t *roundTrips) last() (candidate, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shown == nil {
		return candidate{}, false
	}
	return *t.shown, true
}

// correct finds the correction of an RTT that the tool has printed.
func (t *roundTrips) correct(r tool.Reply) tool.Correction {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, unique := closest(t.candidates(r), r.RTTUs)
	t.shown = c
	switch {
	case c == nil && r.Kind == tool.Probe && r.Hop == 1 && (t.young.stayed[r.TargetAddr] || t.old.stayed[r.TargetAddr]):
		return tool.Correction{Status: mace.Unfinished.String()}
	case c == nil:
		return tool.Correction{Status: mace.Unseen.String()}
	case c.status != mace.Matched:
		c.used = true
		return tool.Correction{Status: c.status.String()}
	case !unique:
		return tool.Correction{Status: mace.Ambiguous.String()}
	}
	c.used = true
	added := float64(c.tareNS()) / 1e3
	if t.sane && added > r.RTTUs+r.ResolutionUs {
		// More was added than there is: it cannot be this round trip's.
		return tool.Correction{Status: mace.Ambiguous.String()}
	}
	return tool.Correction{AddedUs: added, CorrectedUs: r.RTTUs - added, OK: true}
}

// candidates are the round trips that the tool may mean.
func (t *roundTrips) candidates(r tool.Reply) []*candidate {
	target := r.TargetAddr
	if !target.IsValid() {
		target = t.named(r.Target)
	}
	if r.Kind == tool.Echo && r.From.IsValid() {
		target = r.From
	}
	target = target.WithZone("")
	var found []*candidate
	for _, g := range []*generation{&t.old, &t.young} {
		switch {
		case r.Kind == tool.Echo && !r.From.IsValid(): // fping
			for _, series := range g.echoes {
				if seq, ok := series.number(target, r.Seq); ok {
					found = append(found, g.byProbe[probeKey{"icmp", target, seq}]...)
				}
			}
		case r.Kind == tool.Probe && r.Port > 0:
			found = append(found, g.byProbe[probeKey{"udp", target, uint16(r.Port)}]...)
		case r.Seq >= 0:
			found = append(found, g.byProbe[probeKey{"icmp", target, uint16(r.Seq)}]...)
		case r.Kind == tool.Probe && r.Column >= 0:
			if probes := g.byTTL[ttlKey{target, uint8(r.Hop)}]; r.Column < len(probes) {
				found = append(found, probes[r.Column])
			}
		}
	}
	return found
}

// agreementUs is how far the time that the tool printed may be from the one seen in the kernel for two round trips
// to be told apart by it.
const agreementUs = 5

// closest is the unused candidate whose round trip agrees best with what was printed. unique is false where another
// one, of another conversation, would fit as well: two tools with the same numbers in the same container.
func closest(all []*candidate, printedUs float64) (best *candidate, unique bool) {
	distance := func(c *candidate) float64 {
		return math.Abs(float64(c.grossNS)/1e3 - printedUs)
	}
	for _, c := range all {
		if !c.used && (best == nil || distance(c) <= distance(best)) {
			best = c
		}
	}
	for _, c := range all {
		if c != best && !c.used && c.flow != best.flow &&
			distance(c)-distance(best) < agreementUs {
			return best, false
		}
	}
	return best, true
}
