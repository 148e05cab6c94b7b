package mace

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// talk is a conversation of passages whose times count up by a microsecond each.
type talk struct {
	t   *testing.T
	c   *Correlator
	now int64
	got []string
}

func newTalk(t *testing.T) *talk {
	k := &talk{t: t}
	k.c = NewCorrelator(func(r *RTT) {
		flow, seq := r.Probe()
		text := fmt.Sprintf("%s %d->%d #%d %s", flow.ProtocolName(), flow.SrcPort, flow.DstPort, seq, r.Status)
		if r.Request.InnerNS != 0 {
			text += fmt.Sprintf(" %d us", r.GrossNS()/1000)
		}
		k.got = append(k.got, text)
	})
	return k
}

func (k *talk) add(direction Kind, p Packet, status ...Status) {
	k.now += 1000
	passage := &Passage{Packet: p, Direction: direction, InnerNS: k.now, OuterNS: k.now + 10}
	if direction == Ingress {
		passage.OuterNS = k.now - 10
	}
	if len(status) > 0 {
		passage.Status = status[0]
	}
	k.c.Add(passage)
}

func (k *talk) want(want ...string) {
	k.t.Helper()
	if !slices.Equal(k.got, want) {
		k.t.Errorf("round trips\n%q, want\n%q", k.got, want)
	}
	k.got = nil
	count := 0
	for _, conv := range k.c.outstanding {
		count += len(conv.requests)
	}
	if count != k.c.count {
		k.t.Errorf("%d requests are outstanding, and %d are counted", count, k.c.count)
	}
}

func echoPacket(direction Kind, id uint16, seq uint32) Packet {
	p := Packet{Flow: Flow{protoICMP, addrA, addrB, id, id}, ICMPType: icmpEchoRequest, Seq: seq}
	if direction == Ingress {
		p.Flow, p.ICMPType = p.Flow.Reverse(), icmpEchoReply
	}
	return p
}

func (k *talk) ping(seq uint32, status ...Status) {
	k.add(Egress, echoPacket(Egress, 7, seq), status...)
}
func (k *talk) pong(seq uint32, status ...Status) {
	k.add(Ingress, echoPacket(Ingress, 7, seq), status...)
}

func TestCorrelateEcho(t *testing.T) {
	k := newTalk(t)
	k.ping(1)
	k.ping(2)
	k.pong(2)
	k.pong(1)
	k.want("icmp 7->7 #2 matched 1 us", "icmp 7->7 #1 matched 3 us")

	k.add(Egress, echoPacket(Egress, 8, 1)) // another pinger with the same numbers
	k.ping(1)
	k.add(Ingress, echoPacket(Ingress, 8, 1))
	k.pong(1)
	k.want("icmp 8->8 #1 matched 2 us", "icmp 7->7 #1 matched 2 us")

	k.ping(3) // lost
	k.ping(4)
	k.pong(4)
	k.pong(4) // a duplicate is no second round trip
	k.want("icmp 7->7 #4 matched 1 us", "icmp 7->7 #4 unfinished")
}

func TestCorrelateStatus(t *testing.T) {
	for _, tt := range []struct {
		request, reply Status
		want           string
	}{
		{Matched, Matched, "matched"},
		{Ambiguous, Matched, "ambiguous"},
		{NoSyscall, Unstarted, "no-syscall"},
		{Matched, Merged, "merged"},
		{Matched, Unstarted, "unstarted"},
	} {
		k := newTalk(t)
		k.ping(1, tt.request)
		k.pong(1, tt.reply)
		k.want("icmp 7->7 #1 " + tt.want + " 1 us")
	}
}

// Sequence numbers of ICMP come round after 65,536 packets, which a flood sends within seconds.
func TestCorrelateEchoWraparound(t *testing.T) {
	k := newTalk(t)
	for i := range uint32(70000) {
		k.ping(i & 0xffff)
		if i != 5 { // lost
			k.pong(i & 0xffff)
		}
	}
	for i, got := range k.got {
		seq := i
		if i >= 5 {
			seq++
		}
		if want := fmt.Sprintf("icmp 7->7 #%d matched 1 us", seq&0xffff); got != want {
			t.Fatalf("round trip %d is %q, want %q", i, got, want)
		}
	}
	k.got = nil
	// A duplicate of what was answered must not pass for the answer to what was lost a round before.
	k.ping(5)
	k.pong(5)
	k.pong(5)
	k.want("icmp 7->7 #5 matched 1 us", "icmp 7->7 #5 unfinished")
}

func udpPacket(direction Kind, port uint16) Packet {
	p := Packet{Flow: Flow{protoUDP, addrA, addrB, port, 53}}
	if direction == Ingress {
		p.Flow = p.Flow.Reverse()
	}
	return p
}

func TestCorrelateUDP(t *testing.T) {
	k := newTalk(t)
	k.add(Egress, udpPacket(Egress, 1000))
	k.add(Ingress, udpPacket(Ingress, 1000))
	k.want("udp 1000->53 #0 matched 1 us")
	k.add(Ingress, udpPacket(Ingress, 1000)) // more of the answer, or unasked
	k.want()
	// Two questions, one answer: to which? And the late second answer must not shift the pairs that follow.
	k.add(Egress, udpPacket(Egress, 1000))
	k.add(Egress, udpPacket(Egress, 1000))
	k.add(Ingress, udpPacket(Ingress, 1000))
	k.want("udp 1000->53 #0 ambiguous 2 us")
	k.add(Ingress, udpPacket(Ingress, 1000))
	k.want()
	k.add(Egress, udpPacket(Egress, 1000))
	k.add(Egress, udpPacket(Egress, 1001)) // another flow is another matter
	k.add(Ingress, udpPacket(Ingress, 1001))
	k.add(Ingress, udpPacket(Ingress, 1000))
	k.want("udp 1001->53 #0 matched 1 us", "udp 1000->53 #0 matched 3 us")
}

func (k *talk) segment(direction Kind, flags uint8, seq, ack uint32, length int) {
	p := Packet{Flow: Flow{protoTCP, addrA, addrB, 1000, 80}, TCPFlags: flags, Seq: seq, Ack: ack, PayloadLen: length}
	if direction == Ingress {
		p.Flow = p.Flow.Reverse()
	}
	k.add(direction, p)
}

func TestCorrelateTCP(t *testing.T) {
	k := newTalk(t)
	const start = 1<<32 - 50 // sequence numbers come round, too
	k.segment(Egress, tcpSYN, start, 0, 0)
	k.segment(Ingress, tcpSYN|tcpACK, 0, start+1, 0)
	k.want("tcp 1000->80 #4294967246 matched 1 us")
	k.segment(Egress, tcpACK, start+1, 1, 0) // answered by nobody
	k.segment(Egress, tcpACK, start+1, 1, 100)
	var next uint32 = 51 // start + 1 + 100
	k.segment(Ingress, tcpACK, 1, next, 0)
	k.segment(Ingress, tcpACK, 1, next, 200) // the answer, after the acknowledgement
	k.want("tcp 1000->80 #4294967247 matched 1 us")
	// One acknowledgement for three: only the last one's round trip is known.
	for i := range uint32(3) {
		k.segment(Egress, tcpACK, next+i*100, 201, 100)
	}
	k.segment(Ingress, tcpACK, 201, next+300, 0)
	k.want("tcp 1000->80 #251 matched 1 us")
	// One in the middle of a segment settles what is before it.
	k.segment(Egress, tcpACK, 351, 201, 100)
	k.segment(Egress, tcpACK, 451, 201, 100)
	k.segment(Ingress, tcpACK, 201, 500, 0)
	k.want()
	k.segment(Ingress, tcpACK, 201, 551, 0)
	k.want("tcp 1000->80 #451 matched 2 us")
	k.segment(Egress, tcpFIN|tcpACK, 551, 201, 0)
	k.segment(Ingress, tcpACK, 201, 552, 0)
	k.want("tcp 1000->80 #551 matched 1 us")
}

// Karn's rule: what was sent more than once has no round-trip time, as its acknowledgement may be to either.
func TestCorrelateTCPRetransmission(t *testing.T) {
	k := newTalk(t)
	k.segment(Egress, tcpACK, 1, 1, 100)
	k.segment(Egress, tcpACK, 1, 1, 100)
	k.segment(Ingress, tcpACK, 1, 101, 0)
	k.want("tcp 1000->80 #1 ambiguous 2 us")
	// Sent again in other pieces: nothing of it has a round trip, whatever is acknowledged.
	k.segment(Egress, tcpACK, 101, 1, 3000)
	k.segment(Egress, tcpACK, 101, 1, 1000)
	k.segment(Ingress, tcpACK, 1, 1101, 0)
	k.segment(Ingress, tcpACK, 1, 3101, 0)
	k.want()
}

func TestCorrelateErrors(t *testing.T) {
	k := newTalk(t)
	exceeded := func(quoted Flow, seq uint32) Packet {
		return Packet{Flow: Flow{protoICMP, addrR, addrA, 0, 0}, ICMPType: icmpTimeExceeded, Quoted: quoted, QuotedSeq: seq}
	}
	k.ping(1)
	k.ping(2)
	k.add(Ingress, exceeded(echoPacket(Egress, 7, 0).Flow, 2))
	k.want("icmp 7->7 #2 matched 1 us")
	k.add(Ingress, exceeded(echoPacket(Egress, 7, 0).Flow, 2)) // again
	k.want("icmp 7->7 #2 unfinished")

	// traceroute sends many probes at once, each to a port of its own.
	for port := range uint16(3) {
		p := udpPacket(Egress, 1000)
		p.DstPort = 33434 + port
		k.add(Egress, p)
	}
	k.add(Ingress, exceeded(Flow{protoUDP, addrA, addrB, 1000, 33435}, 0))
	k.want("udp 1000->33435 #0 matched 2 us")

	k.segment(Egress, tcpSYN, 500, 0, 0)
	k.add(Ingress, exceeded(Flow{protoTCP, addrA, addrB, 1000, 80}, 500))
	k.want("tcp 1000->80 #500 matched 1 us")
	k.add(Ingress, exceeded(Flow{protoTCP, addrA, addrB, 1000, 80}, 500))
	k.want("tcp 1000->80 #500 unfinished")
	k.add(Ingress, exceeded(Flow{}, 0)) // too short to say what it is about
	if len(k.got) != 1 {
		t.Errorf("%q", k.got)
	}
}

// A peer that never answers must not fill the memory, be it asked by one flow or by many.
func TestCorrelatorBounds(t *testing.T) {
	t.Run("one flow", func(t *testing.T) {
		k := newTalk(t)
		for i := range uint32(10 * maxOutstandingFlow) {
			k.ping(i)
		}
		k.want()
		if k.c.count > maxOutstandingFlow {
			t.Errorf("%d requests of one flow are kept", k.c.count)
		}
		k.pong(10*maxOutstandingFlow - 1) // the youngest are kept
		k.want(fmt.Sprintf("icmp 7->7 #%d matched 1 us", 10*maxOutstandingFlow-1))
	})
	t.Run("many flows", func(t *testing.T) {
		k := newTalk(t)
		for i := range maxOutstanding + 1000 {
			p := udpPacket(Egress, uint16(i))
			p.Dst = netip.AddrFrom4([4]byte{10, 1, byte(i >> 16), 1})
			k.add(Egress, p)
		}
		if k.c.count > maxOutstanding || len(k.c.outstanding) > maxOutstanding {
			t.Errorf("%d requests of %d flows are kept", k.c.count, len(k.c.outstanding))
		}
		// They are forgotten in time, and there is room again.
		k.now += int64(outstandingFor) + int64(time.Second)
		k.ping(1)
		k.pong(1)
		k.want("icmp 7->7 #1 matched 1 us")
	})
	t.Run("many flows of many", func(t *testing.T) {
		k := newTalk(t)
		for range 2 * maxOutstanding / 256 {
			for flow := range uint16(256) {
				k.add(Egress, udpPacket(Egress, flow))
			}
		}
		if k.c.count > maxOutstanding {
			t.Errorf("%d requests are kept, at most %d may be", k.c.count, maxOutstanding)
		}
	})
}
