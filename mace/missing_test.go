package mace_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// Some kernels run no program while PID 1 is current, and on top of it packets are handled, too: at the container's
// devices and, independently, at the NIC. How many packets the programs have missed is known all the same, because
// devices and protocols count by themselves. So no test says how many packets there must be without saying how many of
// them may be missing, and that is exactly as many as are known to be.

// missing is how many packets the programs have not seen, by place and direction.
type missing struct {
	containerTx, containerRx, nicTx, nicRx uint64
}

func (m missing) out() int   { return int(m.containerTx + m.nicTx) }
func (m missing) in() int    { return int(m.containerRx + m.nicRx) }
func (m missing) total() int { return m.out() + m.in() }

// independent is what was counted without the programs.
type independent struct {
	containerTx, containerRx uint64 // by the container's devices
	containerIP              uint64 // IP packets that the container's own protocols received, but for those of lo
	nicTx, nicRx             uint64
	neighbourly              uint64 // ICMPv6 messages that the container has sent
}

func (a independent) sub(b independent) independent {
	return independent{a.containerTx - b.containerTx, a.containerRx - b.containerRx, a.containerIP - b.containerIP,
		a.nicTx - b.nicTx, a.nicRx - b.nicRx, a.neighbourly - b.neighbourly}
}

// countIndependently reads all counts. A NIC that is gone counts no more.
func (w *watch) countIndependently() (now independent) {
	w.t.Helper()
	now.containerTx, now.containerRx = devicePackets(w.t, w.lab, w.host)
	now.nicTx, now.nicRx = w.nic.tx, w.nic.rx
	err := w.lab.Do(lab.Host, func() error {
		if link, err := netlink.LinkByName(lab.NIC); err == nil {
			statistics := link.Attrs().Statistics
			now.nicTx, now.nicRx = statistics.TxPackets, statistics.RxPackets
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.nic.tx, w.nic.rx = now.nicTx, now.nicRx
	err = w.lab.Do(w.host, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		snmp, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		snmp6, err := os.ReadFile("/proc/thread-self/net/snmp6")
		if err != nil {
			return err
		}
		var v4, v6 uint64
		// "Ip: Forwarding DefaultTTL InReceives ...", and a line of values below it.
		_, values, _ := strings.Cut(string(snmp), "\nIp: ")
		if _, err := fmt.Sscan(values, new(int), new(int), &v4); err != nil {
			return fmt.Errorf("reading InReceives of %q: %w", snmp, err)
		}
		for field, into := range map[string]*uint64{"Ip6InReceives": &v6, "Icmp6OutMsgs": &now.neighbourly} {
			_, value, _ := strings.Cut(string(snmp6), field)
			if _, err := fmt.Sscan(value, into); err != nil {
				return fmt.Errorf("reading %s: %w", field, err)
			}
		}
		now.containerIP = v4 + v6 - lo.Attrs().Statistics.RxPackets
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

// compare finds out what is missing.
func (w *watch) compare() {
	w.t.Helper()
	less := func(seen, counted uint64, where string) uint64 {
		if seen > counted {
			w.t.Errorf("%s: the programs saw %d packets, and there were %d", where, seen, counted)
			return 0
		}
		return counted - seen
	}
	c, n, there := w.counts, w.nicCounts, w.there
	tx, nicTx, nicRx := c.DeviceTx, n.Tx, n.Rx
	// Where a path's event comes before segmentation, and the device cannot do it, it counts the segments. A veth that
	// can counts what it is given.
	options := w.lab.Options()
	if w.plain(w.path.Egress.Inner) && options.ContainerOffloads.TSO == lab.Off {
		tx += c.DeviceTxExtra
	}
	if w.path.Egress.Outer.Event == mace.NetDevQueue && options.NICOffloads.TSO == lab.Off {
		nicTx += n.TxExtra
	}
	if options.NICOffloads.GRO == lab.On {
		if options.RemoteOffloads.TSO != lab.Off {
			w.t.Fatal("a NIC that merges what was never segmented cannot be compared with its own counts")
		}
		nicRx += n.RxExtra
	}
	w.missing = missing{
		containerTx: less(tx, there.containerTx, "container, out"),
		nicTx:       less(nicTx, there.nicTx, "NIC, out"),
		nicRx:       less(nicRx, there.nicRx, "NIC, in"),
	}
	switch w.arrivals {
	case byDevice:
		w.missing.containerRx = less(c.DeviceRx, there.containerRx, "container, in")
	case byProtocol:
		ip := c.IngressMatched + c.IngressAmbiguous + c.IngressMerged + c.IngressUnstarted
		// What the bridge sends to all is seen and is not for this one.
		w.missing.containerRx = there.containerIP - min(ip, there.containerIP)
	}
}

// plain: the point is before segmentation.
func (w *watch) plain(p mace.Point) bool {
	return p.Event == mace.NetDevQueue || p.Event == mace.SysEnter
}

// arrivals says by what the packets that the container receives are counted independently.
type arrivals int

const (
	byDevice   arrivals = iota
	byProtocol          // with GRO and with XDP a device counts something else than what it hands on
	whenRead            // on a macvlan device there is nothing to see until they are read: see Options.NICDelivers
)

// tooBlind is the share of missing packets from which on a test can say nothing: one in five.
func (w *watch) tooBlind() bool {
	share := func(missing, counted uint64) bool { return 5*missing > counted }
	m, there := w.missing, w.there
	return share(m.containerTx, there.containerTx) || share(m.containerRx, there.containerRx) ||
		share(m.nicTx, there.nicTx) || share(m.nicRx, there.nicRx)
}

// attempts is how often a test is begun anew because of what went unseen.
const attempts = 6

var abandoned = map[*testing.T]bool{}

// abandon ends an attempt that run begins anew. It is no failure yet.
func (w *watch) abandon() {
	w.t.Helper()
	if !abandonable[w.t] {
		w.t.Fatalf("too much went unseen: %+v of %+v", w.missing, w.there)
	}
	abandoned[w.t] = true
	w.t.Skipf("attempt ends: %+v of %+v went unseen", w.missing, w.there)
}

var abandonable = map[*testing.T]bool{}

// run is t.Run for a test that may have to be begun anew because too many packets went unseen.
func run(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	for range attempts {
		again := false
		t.Run(name, func(t *testing.T) {
			abandonable[t] = true
			defer func() {
				again = abandoned[t]
				delete(abandoned, t)
				delete(abandonable, t)
			}()
			f(t)
		})
		if !again {
			return
		}
	}
	t.Errorf("%s: in each of %d attempts too much went unseen", name, attempts)
}

// near reports whether so many are there as should be, but for those that are known to be missing.
func near(got, want, missing int) bool { return got <= want && got+missing >= want }

// blindWhile starts a process, for as long as the test takes. Programs that do nothing while it is current are, with RPS,
// those of a kernel that keeps packets from them.
func blindWhile(t *testing.T, idle time.Duration) (pid int) {
	t.Helper()
	spinner, err := macetest.StartSpinner(idle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(spinner.Stop)
	return spinner.PID()
}

// blindTests, in the environment, runs all tests as on a kernel that keeps packets from programs: so long, such as 20ms,
// are the pauses between milliseconds in which it does.
const blindTests = "TARE_TEST_BLIND"
