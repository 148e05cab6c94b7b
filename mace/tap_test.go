package mace_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
)

// tap is the referee: a packet socket on the lab's NIC, which the engine knows nothing of.
type tap struct {
	t  *testing.T
	fd int
	// Without NAT ahead a container's packet is on the wire as it was sent, but for what a tunnel puts around it.
	tunnel bool

	mu  sync.Mutex
	out map[sighting]int
	// How many packets the socket was given, and how many were read from it.
	given, taken uint32
	// For TCP: from which sequence number to which each outgoing packet goes.
	streams map[stream][]span
	done    chan struct{}
}

// sighting is what stays the same of a packet on its way through NAT.
type sighting struct {
	protocol   uint8
	src        string // of multicast, which no NAT changes
	dst        string
	dstPort    uint16
	icmpType   uint8
	id, offset uint16 // of IPv4, and of the fragment
	seq, ack   uint32
}

type stream struct {
	dst     string
	dstPort uint16
}

type span struct{ from, to uint32 }

const tapBytes = 256 // of each packet: all headers

func tapNIC(t *testing.T, l *lab.Lab) *tap {
	t.Helper()
	p := &tap{t: t, tunnel: l.Options().Network == lab.NetworkVXLAN, out: map[sighting]int{}, streams: map[stream][]span{}, done: make(chan struct{})}
	nic := device(t, l, lab.Host, lab.NIC)
	err := l.Do(lab.Host, func() (err error) {
		p.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cut := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: tapBytes}}
	all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
	err = errors.Join(
		unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
		unix.SetsockoptSockFprog(p.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &cut[0]}),
		unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 20000}),
		unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: nic.Index}))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	go p.read(stop)
	t.Cleanup(func() {
		close(stop)
		<-p.done
		unix.Close(p.fd)
	})
	return p
}

func (p *tap) read(stop chan struct{}) {
	defer close(p.done)
	b := make([]byte, tapBytes)
	for {
		n, from, err := unix.Recvfrom(p.fd, b, 0)
		select {
		case <-stop:
			return
		default:
		}
		if err != nil {
			continue
		}
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype == unix.PACKET_OUTGOING {
			p.saw(b[:n])
		}
		p.mu.Lock()
		p.taken++
		p.mu.Unlock()
	}
}

func (p *tap) saw(b []byte) {
	const overhead = 20 + 8 + 8 + 14 // of VXLAN over IPv4, with the inner Ethernet header
	if p.tunnel {
		if len(b) <= overhead {
			return
		}
		b = b[overhead:]
	}
	packet, ok := mace.ParsePacket(withoutExtensions(b), ipLength(b))
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[sightingOf(b, &packet)]++
	if packet.ProtocolName() == "tcp" {
		key := stream{packet.Dst.String(), packet.DstPort}
		p.streams[key] = append(p.streams[key], span{packet.Seq, packet.Seq + uint32(packet.PayloadLen)})
	}
}

// ipLength is the packet's by its header.
func ipLength(b []byte) int {
	if b[0]>>4 == 4 {
		return int(binary.BigEndian.Uint16(b[2:]))
	}
	return 40 + int(binary.BigEndian.Uint16(b[4:]))
}

// withoutExtensions takes out the header that the lab's IPv6 packets may have before their transport header: that of a
// fragment, or the one that announces multicast listeners to routers. The engine's headers come without.
func withoutExtensions(b []byte) []byte {
	const hopByHop, fragment = 0, 44
	if b[0]>>4 != 6 || b[6] != fragment && b[6] != hopByHop || len(b) < 48 {
		return b
	}
	if b[6] == fragment && binary.BigEndian.Uint16(b[42:])&0xfff8 != 0 {
		return b[:40]
	}
	short := append(append([]byte(nil), b[:40]...), b[48:]...)
	short[6] = b[40]
	return short
}

func sightingOf(b []byte, p *mace.Packet) sighting {
	s := sighting{protocol: p.Protocol, dst: p.Dst.String(), dstPort: p.DstPort, icmpType: p.ICMPType, seq: p.Seq, ack: p.Ack}
	if p.ProtocolName() == "icmp" || p.ProtocolName() == "icmp6" {
		s.dstPort = 0 // the identifier, which is NAT's
	}
	if p.Dst.IsMulticast() {
		s.src = p.Src.String()
	}
	if b[0]>>4 == 4 {
		s.id, s.offset = binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:])&0x1fff
	}
	return s
}

// catchUp waits until everything that the socket was given has been read.
func (p *tap) catchUp(t *testing.T) {
	t.Helper()
	for range 3000 {
		stats, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil || stats.Drops > 0 {
			t.Fatalf("the tap has lost %d packets: %v", stats.Drops, err)
		}
		p.mu.Lock()
		p.given += stats.Packets // since it was last asked
		done := p.taken == p.given
		p.mu.Unlock()
		if done {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the tap does not get to the end of what it has")
}

// confirm checks that for each packet which is said to have left one such packet was on the wire.
func (p *tap) confirm(w *watch) {
	w.t.Helper()
	p.catchUp(w.t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(w.egress) == 0 {
		w.t.Error("nothing is said to have left")
	}
	for s, n := range w.egress {
		if p.out[s] >= n {
			continue
		}
		if s.protocol == unix.IPPROTO_TCP && p.covers(s, w.lengths[s]) {
			continue
		}
		w.t.Errorf("%d packets are said to have left, and the tap saw %d: %+v", n, p.out[s], s)
	}
}

// covers reports whether a segment's bytes have left, in as many packets as segmentation has made of it.
func (p *tap) covers(s sighting, length uint32) bool {
	at, end := s.seq, s.seq+length
	for _, piece := range p.streams[stream{s.dst, s.dstPort}] {
		if piece.from == at {
			at = piece.to
		}
		if at == end {
			return true
		}
	}
	return false
}
