package mace

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// Flow is what tells the packets of one conversation from others, as the container sees it: NAT has not rewritten
// it yet on the way out, and has restored it on the way in.
type Flow struct {
	Protocol uint8
	Src, Dst netip.Addr
	// Ports; for ICMP echo both are its identifier.
	SrcPort, DstPort uint16
}

// Reverse is the flow of the answers.
func (f Flow) Reverse() Flow {
	f.Src, f.Dst = f.Dst, f.Src
	f.SrcPort, f.DstPort = f.DstPort, f.SrcPort
	return f
}

// ProtocolName is the protocol's name in lower case, or "" for one that tare does not know.
func (f Flow) ProtocolName() string {
	switch f.Protocol {
	case protoICMP:
		return "icmp"
	case protoICMPv6:
		return "icmp6"
	case protoTCP:
		return "tcp"
	case protoUDP:
		return "udp"
	}
	return ""
}

// TCP flags that matter to pairing.
const (
	tcpFIN = 1 << 0
	tcpSYN = 1 << 1
	tcpRST = 1 << 2
	tcpACK = 1 << 4
)

// Packet is what a record's header says.
type Packet struct {
	Flow
	TTL                uint8 // or hop limit
	NoTransport        bool  // a later fragment, or too short: what follows here is not known
	ICMPType, ICMPCode uint8
	Seq                uint32 // of TCP, or of ICMP echo
	Ack                uint32
	TCPFlags           uint8
	PayloadLen         int // of TCP
	// Quoted is the flow of the packet that an ICMP error is about, as it was sent; zero for all others.
	Quoted    Flow
	QuotedSeq uint32
}

// ICMP types.
const (
	icmpEchoReply, icmpEchoRequest     = 0, 8
	icmp6EchoRequest, icmp6EchoReply   = 128, 129
	icmpUnreachable, icmpTimeExceeded  = 3, 11
	icmpParameterProblem               = 12
	icmp6FirstInformational            = 128
	ipv4HeaderBytes, ipv6HeaderBytes   = 20, 40
	transportHeaderBytes, icmpErrorGap = 8, 8
)

// EchoRequest and EchoReply say what an ICMP packet is; IsError, whether it quotes another packet.
func (p *Packet) EchoRequest() bool {
	return !p.NoTransport && p.Protocol == protoICMP && p.ICMPType == icmpEchoRequest || !p.NoTransport && p.Protocol == protoICMPv6 && p.ICMPType == icmp6EchoRequest
}

// EchoReply reports whether it answers an EchoRequest.
func (p *Packet) EchoReply() bool {
	return !p.NoTransport && p.Protocol == protoICMP && p.ICMPType == icmpEchoReply || !p.NoTransport && p.Protocol == protoICMPv6 && p.ICMPType == icmp6EchoReply
}

// IsError reports whether it is an ICMP error message.
func (p *Packet) IsError() bool {
	if p.NoTransport {
		return false
	}
	switch p.Protocol {
	case protoICMP:
		return p.ICMPType == icmpUnreachable || p.ICMPType == icmpTimeExceeded || p.ICMPType == icmpParameterProblem
	case protoICMPv6:
		return p.ICMPType < icmp6FirstInformational
	}
	return false
}

// IsTCPSYN reports whether it opens a TCP connection.
func (p *Packet) IsTCPSYN() bool {
	return p.Protocol == protoTCP && p.TCPFlags&(tcpSYN|tcpACK) == tcpSYN
}

// ParsePacket reads a record's header: an IP header without options, then as much of the transport header as there
// was. length is the packet's, from the IP header on. It reports false for what is not IP or too short; a field that
// the header does not reach stays zero.
func ParsePacket(header []byte, length int) (Packet, bool) {
	var p Packet
	transport, ok := parseIP(header, &p.Flow)
	if !ok {
		return p, false
	}
	p.TTL = header[8]
	if p.Src.Is6() {
		p.TTL = header[7]
	}
	p.parseTransport(transport, length-(len(header)-len(transport)))
	return p, true
}

// parseIP fills addresses and protocol and returns what follows the IP header.
func parseIP(b []byte, f *Flow) (transport []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	switch b[0] >> 4 {
	case 4:
		if len(b) < ipv4HeaderBytes {
			return nil, false
		}
		f.Protocol = b[9]
		f.Src, f.Dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
		if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
			return nil, true // a later fragment
		}
		return b[ipv4HeaderBytes:], true
	case 6:
		if len(b) < ipv6HeaderBytes {
			return nil, false
		}
		f.Protocol = b[6]
		f.Src, f.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		return b[ipv6HeaderBytes:], true
	}
	return nil, false
}

func (p *Packet) parseTransport(b []byte, length int) {
	if len(b) < transportHeaderBytes {
		p.NoTransport = true
		return
	}
	switch p.Protocol {
	case protoTCP, protoUDP:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		if p.Protocol == protoTCP {
			p.Seq = binary.BigEndian.Uint32(b[4:])
			if len(b) >= 14 {
				p.Ack = binary.BigEndian.Uint32(b[8:])
				p.TCPFlags = b[13]
				p.PayloadLen = max(0, length-int(b[12]>>4)*4)
			}
		}
	case protoICMP, protoICMPv6:
		p.ICMPType, p.ICMPCode = b[0], b[1]
		switch {
		case p.EchoRequest(), p.EchoReply():
			p.SrcPort = binary.BigEndian.Uint16(b[4:])
			p.DstPort = p.SrcPort
			p.Seq = uint32(binary.BigEndian.Uint16(b[6:]))
		case p.IsError():
			p.parseQuoted(b[icmpErrorGap:])
		}
	}
}

// parseQuoted reads the packet inside an ICMP error: this time with its options, as it was on the wire.
func (p *Packet) parseQuoted(b []byte) {
	rest, ok := parseIP(b, &p.Quoted)
	if !ok {
		return
	}
	if b[0]>>4 == 4 {
		skip := int(b[0]&0xf)*4 - ipv4HeaderBytes
		if skip < 0 || skip > len(rest) {
			return
		}
		rest = rest[skip:]
	}
	if len(rest) < transportHeaderBytes {
		return
	}
	switch p.Quoted.Protocol {
	case protoTCP, protoUDP:
		p.Quoted.SrcPort, p.Quoted.DstPort = binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
		if p.Quoted.Protocol == protoTCP {
			p.QuotedSeq = binary.BigEndian.Uint32(rest[4:])
		}
	case protoICMP, protoICMPv6:
		p.Quoted.SrcPort = binary.BigEndian.Uint16(rest[4:])
		p.Quoted.DstPort = p.Quoted.SrcPort
		p.QuotedSeq = uint32(binary.BigEndian.Uint16(rest[6:]))
	}
}
