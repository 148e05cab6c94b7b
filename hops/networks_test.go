package hops_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/hops"
	"tare/lab"
	"tare/mace/macetest"
)

// What lies between a container and the NIC, in each kind of network: egress from the system call, ingress to the
// program. Another name for a hop is a change that users see.
var expectedHops = map[lab.Network][2]string{
	lab.NetworkBridge: {
		"socket, IP stack eth0|qdisc eth0|veth → veth1|backlog veth1|bridge → br0|backlog, RPS br0|netfilter, routing → nic0|qdisc nic0|driver nic0",
		"backlog nic0|netfilter, routing → br0|qdisc br0|bridge → veth1|qdisc veth1|veth → eth0|backlog eth0|socket, wake-up |copy, return ",
	},
	lab.NetworkVXLAN: {
		"socket, IP stack eth0|qdisc eth0|veth → veth1|backlog veth1|bridge → vxlan0|qdisc vxlan0|vxlan → nic0|qdisc nic0|driver nic0",
		"backlog nic0|vxlan → vxlan0|GRO vxlan0|bridge → veth1|qdisc veth1|veth → eth0|backlog eth0|socket, wake-up |copy, return ",
	},
	lab.NetworkMacvlan: {
		"socket, IP stack eth0|qdisc eth0|macvlan → nic0|qdisc nic0|driver nic0",
		"backlog nic0|socket, wake-up |copy, return ",
	},
}

// What each client's packets are, over IPv4 and over IPv6.
var packetsOf = map[string][2]string{
	"ping": {"icmp", "icmp6"}, "raw": {"icmp", "icmp6"}, "udp": {"udp", "udp6"}, "tcp": {"tcp", "tcp6"},
}

func TestNetworks(t *testing.T) {
	const requests = 30
	for _, network := range lab.Networks {
		l := up(t, lab.Options{Network: network})
		server := echo(t, l)
		// TCP's are clones of what the sender keeps, and such pass by VXLAN's GRO: they are looked at alone.
		for _, clients := range [][]string{{"ping", "raw", "udp"}, {"tcp"}} {
			t.Run(string(network)+"/"+strings.Join(clients, "+"), func(t *testing.T) {
				w := watch(t, l, "bare-metal")
				want := map[string]int{}
				for _, client := range clients {
					for version, shown := range packetsOf[client] {
						exchange(t, l, macetest.Client{Protocol: client, Remote: remote(l, version == 1, server.Port), Requests: requests})
						want[shown] += requests
					}
				}
				r := w.finish()
				noTx, noRx := missing(r.Account)
				for shown, n := range want {
					out, _ := w.complete(hops.Egress, shown)
					in, read := w.complete(hops.Ingress, shown)
					// TCP may put the data of two packets into one before a slow program reads it.
					if out < n-noTx || in < n-noRx || read < n*9/10-noRx {
						t.Errorf("%s: of %d requests %d went the whole way out; of their answers %d came back, %d of them to a program; %d and %d are known to be missing; %v %v",
							shown, n, out, in, read, noTx, noRx, r.Egress.Unexplained.Incomplete, r.Ingress.Unexplained.Incomplete)
					}
				}
				for i, s := range []hops.Summary{r.Egress, r.Ingress} {
					got := strings.Join(names(s), "|")
					want := expectedHops[network][i]
					if clients[0] == "tcp" {
						want = strings.Replace(want, "GRO vxlan0", "backlog vxlan0", 1)
					}
					if got != want {
						t.Errorf("hops are\n%s\nwant\n%s", got, want)
					}
				}
			})
		}
	}
}

// A NIC that cannot segment gets its packets cut behind the point where bare-metal ends: what follows is not known
// then, and what comes before is.
func TestSegmentedAtNIC(t *testing.T) {
	l := up(t, lab.Options{NICOffloads: lab.Offloads{TSO: lab.Off, GSO: lab.Off}})
	server := echo(t, l)
	w := watch(t, l, "bare-metal")
	exchange(t, l, macetest.Client{Protocol: "tcp", Remote: remote(l, false, server.Port), Requests: 20, Size: 20000})
	r := w.finish()
	cut := 0
	for i := range w.traces {
		trace := &w.traces[i]
		if trace.Direction != hops.Egress || trace.Len < 3000 {
			continue
		}
		last := trace.Points[len(trace.Points)-1]
		if trace.Incomplete != "" || !last.Device.NIC || last.Event != hops.NetDevQueue {
			t.Errorf("a packet of %d bytes ends at %s: %q", trace.Len, last, trace.Incomplete)
		}
		cut++
	}
	// TCP may send some in pieces.
	if noTx, _ := missing(r.Account); cut+noTx < 10 {
		t.Errorf("%d packets of more than the MTU were seen, in 20 requests of 20,000 bytes", cut)
	}
}

// With GRO, a veth polls like a real NIC does: packets wait in its ring, and get their receive stamp after GRO.
func TestPolledNIC(t *testing.T) {
	const requests = 30
	// It does so for packets of a peer that does not segment.
	polled := lab.Offloads{TSO: lab.Off, GSO: lab.Off, GRO: lab.On}
	l := up(t, lab.Options{NICOffloads: polled, RemoteOffloads: polled})
	server := echo(t, l)
	w := watch(t, l, "bare-metal")
	exchange(t, l, macetest.Client{Protocol: "udp", Remote: remote(l, true, server.Port), Requests: requests})
	r := w.finish()
	const want = "GRO nic0|backlog nic0|netfilter, routing → br0|qdisc br0|bridge → veth1|qdisc veth1|veth → eth0|backlog eth0|socket, wake-up |copy, return "
	if got := strings.Join(names(r.Ingress), "|"); got != want {
		t.Errorf("hops are\n%s\nwant\n%s", got, want)
	}
	if _, noRx := missing(r.Account); r.Ingress.Packets+noRx < requests {
		t.Errorf("%d of %d packets in: %v", r.Ingress.Packets, requests, r.Ingress.Unexplained.Incomplete)
	}
}

// A neighbour's packets stay on the host: they are no part of the waterfall, and they are accounted for.
func TestNeighbour(t *testing.T) {
	const pings = 300
	l := up(t, lab.Options{Containers: 2})
	w := watch(t, l, "bare-metal")
	command(t, l, lab.Container(1), "ping", "-q", "-i", "0.001", "-c", strconv.Itoa(pings), l.ContainerAddr4(2).String())
	r := w.finish()
	noTx, noRx := missing(r.Account)
	if n, _ := w.complete(hops.Egress, "icmp"); n > 0 {
		t.Errorf("%d pings to a neighbour have left by the NIC", n)
	}
	if got := r.Egress.Unexplained.Incomplete[hops.ReasonUnfinished]; got < pings-noTx {
		t.Errorf("%d of %d pings are accounted for", got, pings)
	}
	if int(r.Account.IngressUnstarted) < pings-noRx {
		t.Errorf("%d of %d answers are accounted for", r.Account.IngressUnstarted, pings)
	}
}

// Beside others' traffic buffers are reused within microseconds. No point of theirs may appear in the container's
// traces.
func TestBesideOthers(t *testing.T) {
	const pings = 2000
	l := up(t, lab.Options{Containers: 3})
	load, err := l.StartBackground(t.Context(), lab.Background{LocalICMP: true, LocalUDP: true, For: 20e9})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	w := watch(t, l, "bare-metal")
	command(t, l, lab.Container(1), "ping", "-q", "-f", "-c", strconv.Itoa(pings), "-W", "2", l.RemoteAddr4().String())
	if err := load.Stop(); err != nil {
		t.Error(err)
	}
	r := w.finish()
	ours := []string{"eth0", "veth1", "br0", "nic0", ""}
	for i := range w.traces {
		if w.traces[i].Incomplete != "" {
			continue
		}
		for _, p := range w.traces[i].Points {
			if !slices.Contains(ours, p.Device.Name) {
				t.Fatalf("a packet between %s and %s has passed %s", w.traces[i].Packet.Src, w.traces[i].Packet.Dst, p)
			}
		}
	}
	// No point of theirs is missing, either, unless the kernel has left out the program.
	if n := r.Egress.Unexplained.Hops + r.Ingress.Unexplained.Hops; n > int(r.Account.SkippedRuns)+pings/100 {
		t.Errorf("%d hops have no name, and %d runs of programs were skipped", n, r.Account.SkippedRuns)
	}
	noTx, noRx := missing(r.Account)
	out, _ := w.complete(hops.Egress, "icmp")
	in, _ := w.complete(hops.Ingress, "icmp")
	// A slot may be another packet's, though seldom: then a trace is missing, and counted.
	if out < pings*99/100-noTx || in < pings*99/100-noRx {
		t.Errorf("of %d pings %d went out and %d came back: %+v", pings, out, in, r.Account)
	}
}
