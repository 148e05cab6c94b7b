package hops_test

import (
	"fmt"
	"strings"
	"testing"

	"tare/hops"
	"tare/lab"
)

// Why is the bridge slow? Each test makes one thing slow, and of all hops between container and NIC the one where that
// thing is must grow the most. Waterfalls of one run are compared; how long anything takes means nothing here.

// somePings are of several flows, from one CPU: with receive packet steering a flow's CPU is a matter of luck, and
// some of these are not processed where they are sent.
func somePings(t *testing.T, l *lab.Lab) {
	t.Helper()
	command(t, l, lab.Container(1), "sh", "-c", fmt.Sprintf(
		"for i in 1 2 3 4 5 6 7 8; do taskset -c 0 ping -q -c 20 -i 0.004 %s & done; wait", l.RemoteAddr4()))
}

func waterfallOf(t *testing.T, l *lab.Lab) *hops.Report {
	t.Helper()
	const pings = 160
	w := watch(t, l, "bare-metal")
	somePings(t, l)
	r := w.finish()
	noTx, noRx := missing(r.Account)
	// With RPS a packet may pass on top of PID 1, where some kernels run no programs.
	if r.Egress.Packets+noTx < pings/2 || r.Ingress.Packets+noRx < pings/2 {
		t.Fatalf("of %d pings %d went out, %d came back, %d and %d are known to be missing", pings, r.Egress.Packets, r.Ingress.Packets, noTx, noRx)
	}
	return r
}

// grownMost is the hop of a direction whose median has grown the most: of those inside of what is subtracted, or of all.
func grownMost(differences []hops.Difference, direction string, insideOnly bool) (most hops.Difference) {
	for _, d := range differences {
		if d.Direction == direction && (d.Inside || !insideOnly) && d.DeltaNS > most.DeltaNS {
			most = d
		}
	}
	return most
}

func describe(differences []hops.Difference) string {
	var b strings.Builder
	for _, d := range differences {
		fmt.Fprintf(&b, "  %-8s %-20s %-10s %+10.2f us\n", d.Direction, d.Name, d.Device, d.DeltaNS/1000)
	}
	return b.String()
}

func TestRightHopGrows(t *testing.T) {
	l := up(t, lab.Options{})
	before := waterfallOf(t, l)
	grows := func(t *testing.T, differences []hops.Difference, direction, hop string, inside, insideOnly bool) {
		t.Helper()
		most := grownMost(differences, direction, insideOnly)
		if got := most.Name + " " + most.Device; got != hop {
			t.Errorf("%s: what grew most is %q, want %q\n%s", direction, got, hop, describe(differences))
		}
		if most.Inside != inside {
			t.Errorf("%s: %s is inside of what bare-metal subtracts: %v", direction, hop, most.Inside)
		}
	}
	t.Run("rules", func(t *testing.T) {
		var rules strings.Builder
		rules.WriteString("table inet slow { chain forward { type filter hook forward priority -10; policy accept;\n")
		for i := range 5000 {
			fmt.Fprintf(&rules, "ip saddr 203.0.%d.%d drop\n", i/250, i%250)
		}
		rules.WriteString("}\n}\n")
		cmd := l.Command(t.Context(), lab.Host, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules.String())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("adding rules: %v\n%s", err, out)
		}
		defer command(t, l, lab.Host, "nft", "delete", "table", "inet", "slow")
		differences := hops.Compare(before, waterfallOf(t, l))
		// Some 30 us. How soon a program wakes up is another matter, and on a busy machine varies by more.
		grows(t, differences, "egress", "netfilter, routing → nic0", true, true)
		grows(t, differences, "ingress", "netfilter, routing → br0", true, true)
	})
	queue := func(t *testing.T, device string) []hops.Difference {
		t.Helper()
		// A packet every 4 ms, and they come eight times as fast: the last one waits for some 0.6 s.
		command(t, l, lab.Host, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "200kbit", "burst", "2000", "latency", "5s")
		defer command(t, l, lab.Host, "tc", "qdisc", "del", "dev", device, "root")
		return hops.Compare(before, waterfallOf(t, l))
	}
	t.Run("queue on the NIC", func(t *testing.T) {
		// It would be there on bare metal, too: what is subtracted ends before it.
		grows(t, queue(t, lab.NIC), "egress", "qdisc nic0", false, false)
	})
	t.Run("queue on the veth", func(t *testing.T) {
		grows(t, queue(t, lab.HostVeth(1)), "ingress", "qdisc veth1", true, false)
	})
	t.Run("RPS", func(t *testing.T) {
		differences := hops.Compare(before, waterfallOf(t, up(t, lab.Options{RPS: true})))
		grown := map[bool]float64{}
		for _, d := range differences {
			if d.Inside && d.DeltaNS > 0 {
				grown[strings.HasPrefix(d.Name, "backlog")] += d.DeltaNS
			}
		}
		if grown[true] <= grown[false] {
			t.Errorf("with RPS backlogs grew by %.0f ns and all else by %.0f\n%s", grown[true], grown[false], describe(differences))
		}
	})
}
