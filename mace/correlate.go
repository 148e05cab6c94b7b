package mace

import (
	"slices"
	"time"
)

// RTT is a request that a program in the container sent and the reply that it got.
type RTT struct {
	Request, Reply Passage
	// Status is Matched only if both passages are. Otherwise it is the first of theirs that is not; or Ambiguous,
	// where the reply may belong to another request too; or Unfinished, where the request was not seen at a NIC.
	Status Status
}

// GrossNS is the round-trip time at the path's inner ends, in the container.
func (r *RTT) GrossNS() int64 { return r.Reply.InnerNS - r.Request.InnerNS }

// TareNS is what the container's network has added to it.
func (r *RTT) TareNS() int64 { return r.Request.LatencyNS() + r.Reply.LatencyNS() }

// NetNS is what remains: the round-trip time at the path's outer ends.
func (r *RTT) NetNS() int64 { return r.GrossNS() - r.TareNS() }

// Probe is the flow and the number of what was asked, also where the request itself was not seen: then the reply tells.
func (r *RTT) Probe() (Flow, uint32) {
	switch {
	case r.Request.Direction == Egress:
		return r.Request.Flow, r.Request.Seq
	case r.Reply.IsError():
		return r.Reply.Quoted, r.Reply.QuotedSeq
	}
	return r.Reply.Flow.Reverse(), r.Reply.Seq
}

// Bounds of a correlator's memory: a peer that never answers, or a scan, must not fill it.
const (
	maxOutstanding     = 1 << 17
	maxOutstandingFlow = 1 << 10
	outstandingFor     = 2 * time.Minute
	pruneEvery         = time.Second
	maxIdle            = 1 << 10 // conversations without a request that are kept
)

// Correlator pairs requests with replies: ICMP echo by identifier and sequence number; UDP by the reversed flow; TCP
// by the acknowledgement that ends a segment; and whatever an ICMP error quotes.
type Correlator struct {
	emit        func(*RTT)
	outstanding map[Flow]*conversation
	count       int
	prunedNS    int64
}

type conversation struct {
	requests []request // oldest first
}

type request struct {
	passage Passage
	seq     uint32 // ICMP echo: its number. TCP: the acknowledgement that covers it.
	again   bool   // TCP: sent more than once, so that an answer may be to either (Karn's rule)
}

// NewCorrelator calls emit for each round trip, when its reply has come. The RTT is valid during that call only.
func NewCorrelator(emit func(*RTT)) *Correlator {
	return &Correlator{emit: emit, outstanding: map[Flow]*conversation{}}
}

// Add takes the next passage, in the order in which the packets passed.
func (c *Correlator) Add(p *Passage) {
	if p.Direction == Egress {
		c.sent(p)
		return
	}
	switch {
	case p.IsError():
		c.error(p)
	case p.EchoReply():
		c.echoReply(p)
	case p.Protocol == protoUDP:
		c.udp(p)
	case p.Protocol == protoTCP && p.TCPFlags&tcpACK != 0:
		c.tcp(p)
	}
}

func (c *Correlator) sent(p *Passage) {
	r := request{passage: *p}
	switch p.Protocol {
	case protoICMP, protoICMPv6:
		if !p.EchoRequest() {
			return
		}
		r.seq = p.Seq
		c.take(p.Flow, p.Seq) // lost, if the numbers have come round: nothing may answer it any more
	case protoUDP:
	case protoTCP:
		length := uint32(p.PayloadLen)
		if p.TCPFlags&(tcpSYN|tcpFIN) != 0 {
			length++
		}
		if length == 0 {
			return // a bare acknowledgement is not answered
		}
		r.seq = p.Seq + length
	default:
		return
	}
	if c.count >= maxOutstanding || len(c.outstanding) >= maxOutstanding {
		c.prune(p.InnerNS)
	}
	if c.count >= maxOutstanding || len(c.outstanding) >= maxOutstanding {
		return
	}
	conv := c.outstanding[p.Flow]
	if conv == nil {
		conv = &conversation{}
		c.outstanding[p.Flow] = conv
	}
	if p.Protocol == protoTCP {
		for i := range conv.requests {
			if conv.requests[i].seq == r.seq {
				conv.requests[i].again = true
				return
			}
		}
	}
	if len(conv.requests) >= maxOutstandingFlow {
		conv.requests = conv.requests[1:]
		c.count--
	}
	conv.requests = append(conv.requests, r)
	c.count++
}

// prune forgets requests that nobody will answer any more. It looks at all of them, so it does so once in a while.
func (c *Correlator) prune(nowNS int64) {
	if nowNS-c.prunedNS < int64(pruneEvery) {
		return
	}
	c.prunedNS = nowNS
	for flow, conv := range c.outstanding {
		for len(conv.requests) > 0 && nowNS-conv.requests[0].passage.InnerNS > int64(outstandingFor) {
			conv.requests = conv.requests[1:]
			c.count--
		}
		if len(conv.requests) == 0 {
			delete(c.outstanding, flow)
		}
	}
}

// take removes and returns the request of this number; the later one, if the number has come round.
func (c *Correlator) take(flow Flow, seq uint32) (request, bool) {
	conv := c.outstanding[flow]
	if conv == nil {
		return request{}, false
	}
	for i := len(conv.requests) - 1; i >= 0; i-- {
		if conv.requests[i].seq != seq {
			continue
		}
		r := conv.requests[i]
		conv.requests = slices.Delete(conv.requests, i, i+1)
		c.forget(flow, conv, 1)
		return r, true
	}
	return request{}, false
}

// forget counts n requests of a conversation as settled. The conversation stays: most go on.
func (c *Correlator) forget(flow Flow, conv *conversation, n int) {
	c.count -= n
	if len(conv.requests) == 0 && len(c.outstanding) > maxIdle {
		delete(c.outstanding, flow)
	}
}

func (c *Correlator) echoReply(p *Passage) {
	r, ok := c.take(p.Flow.Reverse(), p.Seq)
	if !ok {
		c.orphan(p)
		return
	}
	c.pair(r, p, false)
}

func (c *Correlator) udp(p *Passage) {
	flow := p.Flow.Reverse()
	conv := c.outstanding[flow]
	if conv == nil || len(conv.requests) == 0 {
		return // nobody asked: this side is the server
	}
	// With several questions open, which one is answered is anybody's guess. All are dropped, so that one lost
	// reply does not shift every later pair.
	r, n := conv.requests[0], len(conv.requests)
	conv.requests = conv.requests[:0]
	c.forget(flow, conv, n)
	c.pair(r, p, n > 1)
}

func (c *Correlator) tcp(p *Passage) {
	flow := p.Flow.Reverse()
	conv := c.outstanding[flow]
	if conv == nil {
		return
	}
	// What an acknowledgement covers is settled; only the segment that it ends exactly has its own round trip.
	n := 0
	for n < len(conv.requests) && int32(p.Ack-conv.requests[n].seq) >= 0 {
		n++
	}
	if n == 0 {
		return
	}
	last := conv.requests[n-1]
	conv.requests = slices.Delete(conv.requests, 0, n)
	c.forget(flow, conv, n)
	if last.seq == p.Ack {
		c.pair(last, p, last.again)
	}
}

// error pairs an ICMP error with the packet that it quotes, as NAT has given the container's view of it back.
func (c *Correlator) error(p *Passage) {
	if p.Quoted.Protocol == protoUDP {
		if conv := c.outstanding[p.Quoted]; conv != nil && len(conv.requests) > 0 {
			r, n := conv.requests[0], len(conv.requests)
			conv.requests = slices.Delete(conv.requests, 0, 1)
			c.forget(p.Quoted, conv, 1)
			c.pair(r, p, n > 1)
			return
		}
	}
	if p.Quoted.Protocol == protoTCP {
		if conv := c.outstanding[p.Quoted]; conv != nil {
			for _, r := range conv.requests {
				if r.passage.Seq == p.QuotedSeq {
					taken, _ := c.take(p.Quoted, r.seq)
					c.pair(taken, p, taken.again)
					return
				}
			}
		}
	}
	if r, ok := c.take(p.Quoted, p.QuotedSeq); ok {
		c.pair(r, p, false)
		return
	}
	c.orphan(p)
}

func (c *Correlator) pair(r request, p *Passage, ambiguous bool) {
	rtt := RTT{Request: r.passage, Reply: *p}
	switch {
	case r.passage.Status != Matched:
		rtt.Status = r.passage.Status
	case p.Status != Matched:
		rtt.Status = p.Status
	case ambiguous:
		rtt.Status = Ambiguous
	}
	c.emit(&rtt)
}

// orphan reports a reply to a request that left by no NIC: the container talks to this host, or to a neighbour.
func (c *Correlator) orphan(p *Passage) {
	c.emit(&RTT{Reply: *p, Status: Unfinished})
}
