package mace_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
)

// What looks like a packet seen before, to the last bit, may be its repetition: a resolver asks the same question again
// when it gets no answer, from the same buffer. Where the first one was lost on the host, its time must not become the
// second one's. IPv6 has no identification that would tell them apart.
func TestRepetitionAfterLoss(t *testing.T) {
	const rounds = 30
	l := up(t, lab.Options{})
	asker, server := udpPair(t, l)
	answerTo := ask(t, asker, server)
	for _, path := range []string{"inner-dev", "max-dev"} {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			var again []int64 // when each repetition was sent, and answered, at the earliest
			for range rounds {
				for _, lost := range []bool{true, false} {
					forwarding(t, l, !lost)
					if !lost {
						again = append(again, monotonicNS())
					}
					if _, err := asker.Write([]byte("the same question, every time")); err != nil {
						t.Fatal(err)
					}
					if _, err := server.WriteTo([]byte("the same answer, every time"), answerTo); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.finish()
			w.complete()
			for _, direction := range []mace.Kind{mace.Egress, mace.Ingress} {
				n := 0
				for i := range w.passages {
					p := &w.passages[i]
					if p.Direction != direction || p.ProtocolName() != "udp" || p.Status != mace.Matched {
						continue
					}
					first := p.InnerNS
					if direction == mace.Ingress {
						first = p.OuterNS
					}
					if n < rounds && first < again[n] {
						t.Fatalf("%s packet %d was sent %d us after the time that it is said to begin", direction, n, (again[n]-first)/1000)
					}
					n++
				}
				if n != rounds {
					t.Errorf("%d of %d %s packets matched", n, rounds, direction)
				}
			}
		})
	}
}

// udpPair is a socket in c1 that is connected to one on the remote host, by IPv6.
func udpPair(t *testing.T, l *lab.Lab) (asker net.Conn, server net.PacketConn) {
	t.Helper()
	err := l.Do(lab.Remote, func() (err error) {
		server, err = net.ListenPacket("udp6", netip.AddrPortFrom(l.RemoteAddr6(), 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	err = l.Do("c1", func() (err error) {
		asker, err = net.Dial("udp6", server.LocalAddr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { asker.Close() })
	return asker, server
}

// ask sends a first question, and returns whom the answer is for.
func ask(t *testing.T, asker net.Conn, server net.PacketConn) net.Addr {
	t.Helper()
	if _, err := asker.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := server.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, from, err := server.ReadFrom(make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	return from
}

// forwarding lets the host forward IPv6, or drop what it should.
func forwarding(t *testing.T, l *lab.Lab, on bool) {
	t.Helper()
	value := map[bool]string{true: "1", false: "0"}[on]
	err := l.Do(lab.Host, func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte(value), 0) })
	if err != nil {
		t.Fatal(err)
	}
}

func monotonicNS() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// A packet may wait at the NIC while one namespace is let go and another takes its place.
func TestPacketsUnderWayStayPrivate(t *testing.T) {
	l := up(t, lab.Options{Containers: 2})
	// Some 400 ms for each packet that is sent below.
	command(t, l, lab.Host, "tc", "qdisc", "add", "dev", lab.NIC, "root", "tbf", "rate", "20kbit", "burst", "1600", "latency", "5s")
	engine := open(t, l, "inner-dev")
	first := activate(t, engine, l, "c1")
	conn, _ := udpPair(t, l)
	for range 3 {
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	first.drain()
	if err := first.ns.Close(); err != nil {
		t.Fatal(err)
	}
	second := activate(t, engine, l, "c2")
	time.Sleep(900 * time.Millisecond)
	second.drain()
	second.joiner.Flush()
	for i := range second.passages {
		if p := &second.passages[i]; p.Src == l.ContainerAddr6(1) {
			t.Errorf("c2 is told of c1's packet: %+v", *p)
		}
	}
	second.read()
	if second.counts.EgressMatched > 0 {
		t.Errorf("c1's packets are counted as c2's: %+v", second.counts)
	}
}

// Ethernet fills short packets up, and IP takes the filling off again on its way: no merging.
func TestPaddedPacket(t *testing.T) {
	l := up(t, lab.Options{})
	var server net.PacketConn
	err := l.Do(lab.Remote, func() (err error) {
		server, err = net.ListenPacket("udp4", netip.AddrPortFrom(l.RemoteAddr4(), 0).String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var asker net.Conn
	err = l.Do("c1", func() (err error) {
		asker, err = net.Dial("udp4", server.LocalAddr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	to := ask(t, asker, server).(*net.UDPAddr).AddrPort()
	from := server.LocalAddr().(*net.UDPAddr).AddrPort()
	for _, path := range []string{"inner-dev", "max-dev"} {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			sendFrame(t, l, padded(l, from, to))
			w.finish()
			w.complete()
			tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return p.ProtocolName() == "udp" })
			if tally[mace.Matched] != 1 {
				t.Errorf("a padded packet: %v", tally)
			}
		})
	}
}

// padded is a UDP datagram of 4 bytes in a frame of 60, the least that Ethernet carries.
func padded(l *lab.Lab, from, to netip.AddrPort) []byte {
	frame := make([]byte, 60)
	host, remote := l.HostAddr4().As4(), l.RemoteNICAddr4().As4()
	copy(frame, append([]byte{2, 0x42}, host[:]...)) // the lab's hardware addresses
	copy(frame[6:], append([]byte{2, 0x42}, remote[:]...))
	frame[12] = 8
	ip := frame[14:]
	copy(ip, []byte{0x45, 0, 0, 32, 0x12, 0x34, 0, 0, 64, unix.IPPROTO_UDP})
	src, dst := from.Addr().Unmap().As4(), to.Addr().Unmap().As4()
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	binary.BigEndian.PutUint16(ip[20:], from.Port())
	binary.BigEndian.PutUint16(ip[22:], to.Port())
	binary.BigEndian.PutUint16(ip[24:], 12) // and no checksum, which UDP may do without
	return frame
}

// sendFrame sends a frame from the remote host's device.
func sendFrame(t *testing.T, l *lab.Lab, frame []byte) {
	t.Helper()
	dev := device(t, l, lab.Remote, lab.RemoteDevice)
	err := l.Do(lab.Remote, func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: dev.Index})
	})
	if err != nil {
		t.Fatal(err)
	}
}
