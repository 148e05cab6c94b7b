package mace_test

import (
	"context"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
)

// Beside container-to-container traffic buffers are reused within microseconds, and an skb's address alone is wrong for
// one packet in four.
func TestNoFalseMatches(t *testing.T) {
	pings := 20000
	if testing.Short() { // an emulator takes some thirty times as long
		pings = 300
	}
	l := up(t, lab.Options{Containers: 3})
	tap := tapNIC(t, l)
	for _, path := range []string{"inner-dev", "max-dev", "wire"} {
		run(t, path, func(t *testing.T) {
			load, err := l.StartBackground(context.Background(), lab.Background{LocalICMP: true, LocalUDP: true, LocalTCP: true, For: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer load.Stop()
			engine := open(t, l, path, roomy)
			w := activate(t, engine, l, "c1")
			command(t, l, "c1", "ping", "-q", "-f", "-c", strconv.Itoa(pings/3), "-W", "2", l.RemoteAddr4().String())
			if err := load.Stop(); err != nil {
				t.Error(err)
			}
			w.finish()
			tap.confirm(w)
			for i := range w.passages {
				p := &w.passages[i]
				other := p.Dst
				if p.Direction == mace.Ingress {
					other = p.Src
				}
				if p.Status == mace.Matched && other != l.RemoteAddr4() {
					t.Fatalf("matched, and not of this conversation: %+v", *p)
				}
			}
			out, in := int(w.counts.EgressMatched)+w.missing.out(), int(w.counts.IngressMatched)+w.missing.in()
			if out < pings/3 || in < pings/3 {
				t.Errorf("of %d pings %d left and %d came back, with %+v unseen", pings/3, w.counts.EgressMatched, w.counts.IngressMatched, w.missing)
			}
			rejections, err := engine.Rejections()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("would have been wrong: %d by their identity, %d by their age", rejections.Identity, rejections.Age)
		})
	}
}

// What has been seen in a container that sends to a neighbour has begun and never leaves.
func TestNeighboursAreNotMatched(t *testing.T) {
	const pings = 1000
	l := up(t, lab.Options{Containers: 2})
	for _, path := range mace.PathNames() {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			command(t, l, "c1", "ping", "-q", "-f", "-c", strconv.Itoa(pings), "-W", "2", l.ContainerAddr4(2).String())
			w.finish()
			if c := w.counts; c.EgressMatched+c.IngressMatched != 0 || w.unfinished()+w.missing.containerTx < pings || c.IngressUnstarted+w.missing.containerRx < pings {
				t.Errorf("%d pings to a neighbour: %+v, unseen %+v", pings, c, w.missing)
			}
			for i := range w.rtts {
				if r := &w.rtts[i]; r.Status == mace.Matched {
					t.Fatalf("a neighbour's round trip is corrected: %+v", *r)
				}
			}
		})
	}
}

// What hosts say to their neighbours is much alike, all that differs are addresses; and it stays on its link. The
// container's must not pass for the NIC's own.
func TestLinkLocalMessagesAreNotMatched(t *testing.T) {
	const messages = 320
	l := up(t, lab.Options{})
	var sockets []int
	for _, at := range [][2]string{{"c1", lab.ContainerDevice}, {lab.Host, lab.NIC}} {
		dev := device(t, l, at[0], at[1])
		err := l.Do(at[0], func() error {
			fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
			if err != nil {
				return err
			}
			sockets = append(sockets, fd)
			// The kernel sends its own without a flow label, which would tell them apart.
			const autoFlowLabel = 70 // IPV6_AUTOFLOWLABEL
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, autoFlowLabel, 0); err != nil {
				return err
			}
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, dev.Index)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, fd := range sockets {
			unix.Close(fd)
		}
	}()
	const listenerReport = 143
	to := &unix.SockaddrInet6{Addr: netip.MustParseAddr("ff02::16").As16()}
	for _, path := range []string{"inner-dev", "max-dev"} {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			// In bursts, so that the NIC's come to be where some container's were.
			for i := 0; i < messages; i += 16 {
				for who, fd := range sockets {
					for j := range 16 {
						// As RFC 3810 has it: the group that is joined is at the end.
						report := make([]byte, 28)
						report[0], report[7], report[8] = listenerReport, 1, 4
						report[12], report[13], report[26], report[27] = 0xff, 2, byte(who), byte(i+j)
						if err := unix.Sendto(fd, report, 0, to); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			w.finish()
			if w.counts.EgressStarted+w.missing.containerTx < messages || w.counts.EgressMatched > 0 {
				t.Errorf("of %d messages to neighbours %d are said to have left by the NIC", w.counts.EgressStarted, w.counts.EgressMatched)
			}
		})
	}
}
