package mace_test

import (
	"fmt"
	"strconv"
	"testing"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

func TestNetworks(t *testing.T) {
	for _, network := range lab.Networks {
		for _, mtu := range []int{1500, 9000} {
			t.Run(fmt.Sprintf("%s/%d", network, mtu), func(t *testing.T) {
				l := up(t, lab.Options{Network: network, MTU: mtu})
				server := echo(t, l, lab.Remote)
				paths := []string{"bare-metal", "max-dev", "syscalls"}
				if mtu > 1500 {
					paths = paths[:1] // a large packet is one packet to all of them
				}
				for _, path := range paths {
					engine := open(t, l, path)
					for _, p := range protocols {
						run(t, path+"/"+p.name, func(t *testing.T) {
							w := activate(t, engine, l, "c1")
							c := macetest.Client{Protocol: p.protocol, Remote: remote(l, p.v6, server.Port), Requests: 20, Size: mtu - 200}
							result := exchange(t, l, "c1", c)
							w.finish()
							w.answered(c, result)
						})
					}
					engine.Close()
				}
			})
		}
	}
}

// Fragments: connection tracking puts packets together and takes them apart again, and may use other skbs for that.
// What is not known for certain is not matched, and never is one fragment's time another one's.
func TestFragments(t *testing.T) {
	for _, network := range lab.Networks {
		l := up(t, lab.Options{Network: network})
		tap := tapNIC(t, l)
		for _, v6 := range []bool{false, true} {
			run(t, fmt.Sprintf("%s/v6=%t", network, v6), func(t *testing.T) {
				const requests, fragments = 20, 3 // 3,008 bytes of ICMP in packets of 1,450 to 1,500
				w := activate(t, open(t, l, "inner-dev"), l, "c1")
				command(t, l, "c1", "ping", "-q", "-i", "0.002", "-s", "3000", "-c", strconv.Itoa(requests), "-W", "5",
					remote(l, v6, 0).Addr().String())
				w.finish()
				if w.counts.EgressStarted+w.missing.containerTx < requests*fragments {
					t.Errorf("%d packets are too few to be %d pings of %d fragments", w.counts.EgressStarted, requests, fragments)
				}
				tap.confirm(w)
				for i := range w.rtts {
					if r := &w.rtts[i]; r.Status == mace.Matched && r.TareNS() >= r.GrossNS() {
						t.Errorf("of %d ns %d are the container network's", r.GrossNS(), r.TareNS())
					}
				}
				t.Logf("egress %d of %d, ingress %d matched and %d unstarted", w.counts.EgressMatched, w.counts.EgressStarted,
					w.counts.IngressMatched, w.counts.IngressUnstarted)
			})
		}
	}
}
