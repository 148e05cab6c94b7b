package eval

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

const icmpEchoReply, icmpEcho = 0, 8

// identityBytes is how much of the payload is compared: ping begins it with the time of sending, so that with the
// sequence number it is unique.
const identityBytes = 16

// tapped is an ICMP echo packet, request or reply, as the tap saw it.
type tapped struct {
	Outgoing bool
	RealNS   int64 // CLOCK_REALTIME
	Src, Dst netip.Addr
	echo
	ID uint16
}

// echo is what stays the same of an echo packet on its way through NAT.
type echo struct {
	Type    uint8
	Seq     uint16
	Payload [identityBytes]byte
}

// parseTapped reads a packet from its IPv4 header on; false for what is not ICMP echo.
func parseTapped(b []byte) (tapped, bool) {
	var p tapped
	if len(b) < 20 || b[0]>>4 != 4 || b[9] != 1 {
		return p, false
	}
	header := int(b[0]&0xf) * 4
	fragment := binary.BigEndian.Uint16(b[6:]) & 0x1fff
	if header < 20 || len(b) < header+8 || fragment != 0 {
		return p, false
	}
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	icmp := b[header:]
	p.Type = icmp[0]
	if p.Type != icmpEcho && p.Type != icmpEchoReply {
		return p, false
	}
	p.ID, p.Seq = binary.BigEndian.Uint16(icmp[4:]), binary.BigEndian.Uint16(icmp[6:])
	copy(p.Payload[:], icmp[8:])
	return p, true
}

// tapTrip is a round trip at the NIC.
type tapTrip struct {
	ID, Seq    uint16
	Ordinal    int // of the request among all requests, in the order of sending
	TxNS, RxNS int64
}

// RTTUs is the round-trip time at the NIC.
func (t tapTrip) RTTUs() float64 { return float64(t.RxNS-t.TxNS) / 1e3 }

// pairTrips pairs requests that left with replies that came in, by identifier and sequence number. Numbers come round
// after 65,536: the latest request before the reply counts. What has no partner is left out.
func pairTrips(packets []tapped) []tapTrip {
	packets = slices.Clone(packets)
	slices.SortStableFunc(packets, func(a, b tapped) int { return int(a.RealNS - b.RealNS) })
	type name struct{ id, seq uint16 }
	open := map[name]tapTrip{}
	var trips []tapTrip
	sent := 0
	for _, p := range packets {
		key := name{p.ID, p.Seq}
		switch {
		case p.Outgoing && p.Type == icmpEcho:
			open[key] = tapTrip{ID: p.ID, Seq: p.Seq, Ordinal: sent, TxNS: p.RealNS}
			sent++
		case !p.Outgoing && p.Type == icmpEchoReply:
			if trip, ok := open[key]; ok {
				trip.RxNS = p.RealNS
				trips = append(trips, trip)
				delete(open, key)
			}
		}
	}
	return trips
}
