package mace

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

// wire reads bytes as they are written here: in hexadecimal, with blanks and comments.
func wire(t testing.TB, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	addrA, addrB = netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("10.78.0.2")
	addrR        = netip.MustParseAddr("192.0.2.1") // a router on the way
	addr6A       = netip.MustParseAddr("fd77::2")
	addr6B       = netip.MustParseAddr("fd78::2")
)

const (
	ip6AB = "fd770000000000000000000000000002 fd780000000000000000000000000002"
	ip6BA = "fd780000000000000000000000000002 fd770000000000000000000000000002"
)

type packetCase struct {
	name, text string
	length     int // 0: of the bytes
	want       Packet
}

var packets = []packetCase{
	{"IPv4 echo request", `4500 0054 1234 4000 40 01 0000 0a4d0002 0a4e0002
		0800 f7ff 0102 0304 0000000000000000`, 0,
		Packet{Flow: Flow{protoICMP, addrA, addrB, 0x0102, 0x0102}, TTL: 64, ICMPType: 8, Seq: 0x0304}},
	{"IPv4 echo reply", `4500 0054 1234 0000 3f 01 0000 0a4e0002 0a4d0002
		0000 ffff 0102 ffff`, 0,
		Packet{Flow: Flow{protoICMP, addrB, addrA, 0x0102, 0x0102}, TTL: 63, Seq: 0xffff}},
	{"IPv6 echo request", `6000 0000 0010 3a 40 ` + ip6AB + `
		8000 0000 0102 0304 0000000000000000`, 0,
		Packet{Flow: Flow{protoICMPv6, addr6A, addr6B, 0x0102, 0x0102}, TTL: 64, ICMPType: 128, Seq: 0x0304}},
	{"IPv6 echo reply", `6000 0000 0010 3a 01 ` + ip6BA + `
		8100 0000 0102 0304`, 0,
		Packet{Flow: Flow{protoICMPv6, addr6B, addr6A, 0x0102, 0x0102}, TTL: 1, ICMPType: 129, Seq: 0x0304}},
	{"UDP", `4500 0020 0000 4000 40 11 0000 0a4d0002 0a4e0002
		9c40 0035 000c 0000 01020304`, 0,
		Packet{Flow: Flow{protoUDP, addrA, addrB, 40000, 53}, TTL: 64}},
	{"TCP SYN with options", `4500 003c 0000 4000 40 06 0000 0a4d0002 0a4e0002
		9c40 0050 00000064 00000000 a002 faf0 0000 0000 020405b40402080a0000000100000000 01030307`, 0,
		Packet{Flow: Flow{protoTCP, addrA, addrB, 40000, 80}, TTL: 64, Seq: 100, TCPFlags: tcpSYN}},
	{"TCP data with options, cut after the ports it needs", `6000 0000 0084 06 40 ` + ip6AB + `
		9c40 0050 00000064 000000c8 8018 faf0 0000 0000`, 40 + 132,
		Packet{Flow: Flow{protoTCP, addr6A, addr6B, 40000, 80}, TTL: 64, Seq: 100, Ack: 200, TCPFlags: tcpACK | 8, PayloadLen: 100}},
	{"IPv4 time exceeded for UDP", `4500 0038 0000 0000 fe 01 0000 c0000201 0a4d0002
		0b00 0000 00000000
		4500 0020 0000 4000 01 11 0000 0a4d0002 0a4e0002  9c40 829a 000c 0000`, 0,
		Packet{Flow: Flow{protoICMP, addrR, addrA, 0, 0}, TTL: 254, ICMPType: 11, Quoted: Flow{protoUDP, addrA, addrB, 40000, 33434}}},
	{"IPv4 time exceeded for an echo request", `4500 0038 0000 0000 fe 01 0000 c0000201 0a4d0002
		0b00 0000 00000000
		4500 0054 1234 4000 01 01 0000 0a4d0002 0a4e0002  0800 f7ff 0102 0304`, 0,
		Packet{Flow: Flow{protoICMP, addrR, addrA, 0, 0}, TTL: 254, ICMPType: 11, Quoted: Flow{protoICMP, addrA, addrB, 0x0102, 0x0102}, QuotedSeq: 0x0304}},
	{"IPv4 unreachable for TCP", `4500 0038 0000 0000 fe 01 0000 c0000201 0a4d0002
		0301 0000 00000000
		4500 003c 0000 4000 01 06 0000 0a4d0002 0a4e0002  9c40 0050 00000064`, 0,
		Packet{Flow: Flow{protoICMP, addrR, addrA, 0, 0}, TTL: 254, ICMPType: 3, ICMPCode: 1, Quoted: Flow{protoTCP, addrA, addrB, 40000, 80}, QuotedSeq: 100}},
	{"IPv4 with options quoted", `4500 0040 0000 0000 fe 01 0000 c0000201 0a4d0002
		0b00 0000 00000000
		4700 0028 0000 4000 01 11 0000 0a4d0002 0a4e0002 8307040a000001 00  9c40 829a 000c 0000`, 0,
		Packet{Flow: Flow{protoICMP, addrR, addrA, 0, 0}, TTL: 254, ICMPType: 11, Quoted: Flow{protoUDP, addrA, addrB, 40000, 33434}}},
	{"IPv6 time exceeded for UDP", `6000 0000 0038 3a 3f ` + ip6BA + `
		0300 0000 00000000
		6000 0000 0008 11 01 ` + ip6AB + `  9c40 829a 0008 0000`, 0,
		Packet{Flow: Flow{protoICMPv6, addr6B, addr6A, 0, 0}, TTL: 63, ICMPType: 3, Quoted: Flow{protoUDP, addr6A, addr6B, 40000, 33434}}},
	{"IPv4 later fragment", `4500 05dc 1234 20b9 40 01 0000 0a4d0002 0a4e0002
		0800 f7ff 0102 0304`, 0,
		Packet{Flow: Flow{protoICMP, addrA, addrB, 0, 0}, TTL: 64, NoTransport: true}},
	{"neighbour solicitation", `6000 0000 0018 3a ff ` + ip6AB + `
		8700 0000 00000000 fd780000000000000000000000000002`, 0,
		Packet{Flow: Flow{protoICMPv6, addr6A, addr6B, 0, 0}, TTL: 255, ICMPType: 135}},
	{"another protocol", `4500 0020 0000 4000 40 2f 0000 0a4d0002 0a4e0002
		9c40 0035 000c 0000`, 0,
		Packet{Flow: Flow{47, addrA, addrB, 0, 0}, TTL: 64}},
}

func TestParsePacket(t *testing.T) {
	for _, tt := range packets {
		t.Run(tt.name, func(t *testing.T) {
			header := wire(t, tt.text)
			length := tt.length
			if length == 0 {
				length = len(header)
			}
			got, ok := ParsePacket(header, length)
			if !ok || got != tt.want {
				t.Errorf("parsed %t\n%+v, want\n%+v", ok, got, tt.want)
			}
		})
	}
}

// However short it is cut, what is read must be so, and the rest unknown.
func TestParsePacketCutShort(t *testing.T) {
	for _, tt := range packets {
		header := wire(t, tt.text)
		least := ipv4HeaderBytes
		if header[0]>>4 == 6 {
			least = ipv6HeaderBytes
		}
		for n := range header {
			got, ok := ParsePacket(header[:n:n], len(header))
			if ok != (n >= least) {
				t.Errorf("%s cut to %d bytes: parsed %t", tt.name, n, ok)
			}
			if !ok {
				continue
			}
			if got.Src != tt.want.Src || got.Dst != tt.want.Dst || got.Protocol != tt.want.Protocol {
				t.Errorf("%s cut to %d bytes: from %s to %s by %d", tt.name, n, got.Src, got.Dst, got.Protocol)
			}
			for _, field := range []struct {
				name      string
				got, want any
				unknown   any
			}{
				{"port", got.SrcPort, tt.want.SrcPort, uint16(0)},
				{"number", got.Seq, tt.want.Seq, uint32(0)},
				{"flags", got.TCPFlags, tt.want.TCPFlags, uint8(0)},
				{"quoted port", got.Quoted.DstPort, tt.want.Quoted.DstPort, uint16(0)},
				{"quoted number", got.QuotedSeq, tt.want.QuotedSeq, uint32(0)},
			} {
				if field.got != field.want && field.got != field.unknown {
					t.Errorf("%s cut to %d bytes: %s %v, want %v or none", tt.name, n, field.name, field.got, field.want)
				}
			}
			if n < least+transportHeaderBytes && (got.EchoRequest() || got.EchoReply() || got.IsError() || got.IsTCPSYN()) {
				t.Errorf("%s cut to %d bytes is said to be something", tt.name, n)
			}
		}
	}
}

func TestParsePacketNonsense(t *testing.T) {
	for _, text := range []string{"", "45", "55000054123440004001000001020304050607080800f7ff", "0001080006040001"} {
		if got, ok := ParsePacket(wire(t, text), 100); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	// Lengths that lie.
	header := wire(t, packets[5].text)
	for _, length := range []int{-1, 0, 20, 39} {
		if got, ok := ParsePacket(header, length); !ok || got.PayloadLen != 0 {
			t.Errorf("of a packet of %d bytes %d are payload", length, got.PayloadLen)
		}
	}
}

func TestFlows(t *testing.T) {
	f := Flow{protoTCP, addrA, addrB, 1, 2}
	if got := f.Reverse(); got != (Flow{protoTCP, addrB, addrA, 2, 1}) || got.Reverse() != f {
		t.Errorf("reversed: %+v", got)
	}
	for protocol, want := range map[uint8]string{1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 47: ""} {
		if got := (Flow{Protocol: protocol}).ProtocolName(); got != want {
			t.Errorf("protocol %d is named %q, want %q", protocol, got, want)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, tt := range packets {
		header := wire(f, tt.text)
		f.Add(header, len(header))
	}
	f.Fuzz(func(t *testing.T, header []byte, length int) {
		before := bytes.Clone(header)
		p, ok := ParsePacket(header, length)
		if !bytes.Equal(header, before) {
			t.Error("the header was changed")
		}
		if !ok {
			return
		}
		if p.Src.Is4() != p.Dst.Is4() || !p.Src.IsValid() || p.PayloadLen < 0 {
			t.Errorf("%+v", p)
		}
		kinds := 0
		for _, is := range []bool{p.EchoRequest(), p.EchoReply(), p.IsError(), p.IsTCPSYN()} {
			if is {
				kinds++
			}
		}
		if kinds > 1 || p.Quoted != (Flow{}) && !p.IsError() {
			t.Errorf("it is several things at once: %+v", p)
		}
	})
}
