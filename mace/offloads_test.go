package mace_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// Segmentation and merging make several packets of one and one of several. Each is matched, or counted as what has
// become of it, and none is taken for another.
func TestOffloads(t *testing.T) {
	toggle := map[bool]lab.Toggle{true: lab.On, false: lab.Off}
	for _, nic := range []bool{true, false} {
		for _, container := range []bool{true, false} {
			for _, gro := range []bool{true, false} {
				t.Run(fmt.Sprintf("nic=%t,container=%t,gro=%t", nic, container, gro), func(t *testing.T) {
					segment := func(on bool) lab.Offloads {
						return lab.Offloads{TSO: toggle[on], GSO: toggle[on], GRO: toggle[gro]}
					}
					// A wire carries no packet that is larger than the MTU.
					l := up(t, lab.Options{NICOffloads: segment(nic), ContainerOffloads: segment(container),
						RemoteOffloads: lab.Offloads{TSO: lab.Off, GSO: lab.Off}})
					tap := tapNIC(t, l)
					server := echo(t, l, lab.Remote)
					for _, path := range []string{"bare-metal", "inner-dev"} {
						run(t, path, func(t *testing.T) {
							w := activate(t, open(t, l, path, roomy), l, "c1")
							if gro {
								w.arrivals = byProtocol
							}
							bulk(t, l, server)
							w.finish()
							tap.confirm(w)
							c := w.counts
							// What is one packet at one end and many at the other is not found again.
							segmented := path == "bare-metal" && !container || path == "inner-dev" && !nic
							split := c.EgressStartedGSO - c.EgressMatchedGSO
							if !segmented && split > w.missing.nicTx {
								t.Errorf("nobody segments, and %d GSO packets are not found at the NIC; unseen: %+v", split, w.missing)
							}
							want := split + w.there.neighbourly
							if w.unfinished() > want+w.missing.nicTx || w.unfinished()+w.missing.containerTx < want {
								t.Errorf("%d packets are not found at the NIC, %d were segmented, %d were for neighbours, unseen are %+v: %+v",
									w.unfinished(), split, w.there.neighbourly, w.missing, c)
							}
							tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return p.Src == l.RemoteAddr4() })
							if tally[mace.Unstarted] > int(w.missing.nicRx) || !gro && tally[mace.Merged] > 0 {
								t.Errorf("packets in are %v; unseen: %+v", tally, w.missing)
							}
							t.Logf("egress %d of %d (GSO %d of %d), ingress matched %d merged %d unstarted %d", c.EgressMatched, c.EgressStarted,
								c.EgressMatchedGSO, c.EgressStartedGSO, c.IngressMatched, c.IngressMerged, c.IngressUnstarted)
							if w.missing.total() > 0 {
								t.Logf("unseen: %+v of %+v", w.missing, w.there)
							}
						})
					}
				})
			}
		}
	}
}

// roomy makes rings that nobody need empty for a while.
func roomy(o *mace.Options) { o.RingBytes = 64 << 20 }

// bulk sends data by TCP to the echo server, which sends it back at the same time.
func bulk(t *testing.T, l *lab.Lab, server *macetest.Echo) {
	t.Helper()
	const total = 8 << 20
	var conn net.Conn
	err := l.Do("c1", func() (err error) {
		conn, err = net.DialTimeout("tcp", remote(l, false, server.Port).String(), 5*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() {
		chunk := make([]byte, 128<<10)
		for n := 0; n < total; n += len(chunk) {
			if _, err := conn.Write(chunk); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	if _, err := io.CopyN(io.Discard, conn, total); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}
