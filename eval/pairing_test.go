package eval

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Packets of iputils ping -s 64 from 10.77.0.2 by 10.78.0.1 to 10.78.0.2, as they were on the wire (92 bytes).
const (
	requestHex = "4500005c1a2b40003f01" + "0b5e" + "0a4e0001" + "0a4e0002" + "0800f7ff" + "a1b2" + "0007" +
		"8a6b1f6700000000" + "4d3c020000000000" + "101112131415161718191a1b1c1d1e1f" + "202122232425262728292a2b2c2d2e2f" + "3031323334353637" + "38393a3b3c3d3e3f"
	replyHex = "4500005c77e100004001" + "ecab" + "0a4e0002" + "0a4e0001" + "0000ffff" + "a1b2" + "0007" +
		"8a6b1f6700000000" + "4d3c020000000000" + "101112131415161718191a1b1c1d1e1f" + "202122232425262728292a2b2c2d2e2f" + "3031323334353637" + "38393a3b3c3d3e3f"
	// The same request with IP options (record route) in front of ICMP.
	optionsHex = "4700002c1a2b40003f010000" + "0a4e0001" + "0a4e0002" + "0703040000000000" + "0800f7ff" + "a1b20008" + "8a6b1f6700000000"
	fragment   = "450000301a2b00b93f010000" + "0a4e0001" + "0a4e0002" + "0800f7ffa1b20007" + "8a6b1f6700000000"
	udpHex     = "450000241a2b40003f110000" + "0a4e0001" + "0a4e0002" + "00350035001000008a6b1f6700000000"
	ipv6Hex    = "600000000010" + "3a40" + "fd780000000000000000000000000001" + "fd780000000000000000000000000002" + "8000f7ffa1b20007"
	timeExcHex = "450000381a2b40003f010000" + "0a4e0002" + "0a4e0001" + "0b00f4ff00000000" + "4500005c1a2b4000010100000a4e00010a4e0002" + "0800f7ff"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseTapped(t *testing.T) {
	host, remote := netip.MustParseAddr("10.78.0.1"), netip.MustParseAddr("10.78.0.2")
	payload := [16]byte{0x8a, 0x6b, 0x1f, 0x67, 0, 0, 0, 0, 0x4d, 0x3c, 0x02}
	for _, tt := range []struct {
		name, packet string
		want         tapped
		ok           bool
	}{
		{"request", requestHex, tapped{Src: host, Dst: remote, ID: 0xa1b2, echo: echo{8, 7, payload}}, true},
		{"reply", replyHex, tapped{Src: remote, Dst: host, ID: 0xa1b2, echo: echo{0, 7, payload}}, true},
		{"IP options", optionsHex, tapped{Src: host, Dst: remote, ID: 0xa1b2, echo: echo{8, 8, [16]byte{0x8a, 0x6b, 0x1f, 0x67}}}, true},
		{"no payload", requestHex[:56], tapped{Src: host, Dst: remote, ID: 0xa1b2, echo: echo{8, 7, [16]byte{}}}, true},
		{"cut in ICMP", requestHex[:54], tapped{}, false},
		{"cut in IP", requestHex[:38], tapped{}, false},
		{"later fragment", fragment, tapped{}, false},
		{"UDP", udpHex, tapped{}, false},
		{"IPv6", ipv6Hex, tapped{}, false},
		{"time exceeded", timeExcHex, tapped{}, false},
		{"nothing", "", tapped{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseTapped(unhex(t, tt.packet))
			if ok != tt.ok || ok && !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v %t, want %+v %t", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// TestEchoFilter runs the filter in a virtual machine on the same bytes that the kernel would show it.
func TestEchoFilter(t *testing.T) {
	for _, tt := range []struct {
		name, packet string
		length       int
		taken        bool
	}{
		{"request of the length", requestHex, 92, true},
		{"reply of the length", replyHex, 92, true},
		{"request of another length", requestHex, 84, false},
		{"any length", requestHex, 0, true},
		{"reply, any length", replyHex, 0, true},
		{"UDP", udpHex, 0, false},
		{"IPv6", ipv6Hex, 0, false},
		{"time exceeded", timeExcHex, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var raw []bpf.RawInstruction
			for _, i := range echoFilter(tt.length) {
				raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
			}
			instructions, ok := bpf.Disassemble(raw)
			if !ok {
				t.Fatal("unknown instructions")
			}
			vm, err := bpf.NewVM(instructions)
			if err != nil {
				t.Fatal(err)
			}
			n, err := vm.Run(unhex(t, tt.packet))
			if err != nil || (n > 0) != tt.taken {
				t.Errorf("takes %d bytes (%v), want taken: %t", n, err, tt.taken)
			}
		})
	}
}

func TestStampOf(t *testing.T) {
	stamp := unix.Timespec{Sec: 1_700_000_000, Nsec: 123_456_789}
	control := make([]byte, unix.CmsgSpace(16))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS
	header.SetLen(unix.CmsgLen(16))
	*(*unix.Timespec)(unsafe.Pointer(&control[unix.CmsgLen(0)])) = stamp
	if got, err := stampOf(control); err != nil || got != 1_700_000_000_123_456_789 {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := stampOf(nil); err == nil {
		t.Error("no stamp is no error")
	}
}

func TestPairTrips(t *testing.T) {
	request := func(id, seq uint16, at int64) tapped {
		return tapped{Outgoing: true, RealNS: at, ID: id, echo: echo{Type: icmpEcho, Seq: seq}}
	}
	reply := func(id, seq uint16, at int64) tapped {
		return tapped{RealNS: at, ID: id, echo: echo{Type: icmpEchoReply, Seq: seq}}
	}
	for _, tt := range []struct {
		name    string
		packets []tapped
		want    []tapTrip
	}{
		{"in turn", []tapped{request(1, 1, 10), reply(1, 1, 15), request(1, 2, 20), reply(1, 2, 27)},
			[]tapTrip{{1, 1, 0, 10, 15}, {1, 2, 1, 20, 27}}},
		{"reply read before its request", []tapped{reply(1, 1, 15), request(1, 1, 10)}, []tapTrip{{1, 1, 0, 10, 15}}},
		{"lost request counts as sent", []tapped{request(1, 1, 10), request(1, 2, 20), reply(1, 2, 22)}, []tapTrip{{1, 2, 1, 20, 22}}},
		{"number come round", []tapped{request(1, 1, 10), request(1, 1, 90), reply(1, 1, 95)}, []tapTrip{{1, 1, 1, 90, 95}}},
		{"duplicate reply", []tapped{request(1, 1, 10), reply(1, 1, 15), reply(1, 1, 16)}, []tapTrip{{1, 1, 0, 10, 15}}},
		{"two tools", []tapped{request(1, 1, 10), request(2, 1, 11), reply(2, 1, 14), reply(1, 1, 15)},
			[]tapTrip{{2, 1, 1, 11, 14}, {1, 1, 0, 10, 15}}},
		{"the other way round", []tapped{{RealNS: 10, ID: 1, echo: echo{Type: icmpEcho, Seq: 1}},
			{Outgoing: true, RealNS: 12, ID: 1, echo: echo{Type: icmpEchoReply, Seq: 1}}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := pairTrips(tt.packets); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
