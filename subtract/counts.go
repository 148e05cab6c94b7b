package subtract

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/container"
	"tare/mace"
)

// place is where packets are counted twice: by the programs, and by something that knows nothing of them.
type place int

const (
	containerOut   place = iota // by the container's devices
	containerIn                 // by the container's devices
	containerInIP               // by the container's protocols, which get what is left after GRO and XDP
	firstNIC                    // by the first NIC: out, in; by the second: out, in ...
	placesPerNIC   = 2
	countingNarrow = 3 // readings of one place, of which the narrowest counts
)

// offset is how many packets an independent count is ahead of what the programs have seen. Packets that pass during the
// reading are in one and not in the other, so it is known within bounds only: at rest they are equal.
type offset struct{ low, high int64 }

// reading is all counts at about the same instant.
type reading struct {
	at      time.Time
	counted []uint64 // by place
	seen    []uint64 // what the programs saw, each packet as one
	extra   []uint64 // what is to be added if each segment of a GSO packet counts
	offsets []offset
}

// counter reads the counts of one session.
type counter struct {
	session *Session
	host    *netlink.Handle // of the NICs' network namespace
	// The path's events in the container and at the NIC come before segmentation, which a device counts after it.
	segmentedOut, segmentedAtNIC bool
	// Which of the NICs count each packet as it passes. Hardware is asked for its counts now and then.
	exactNICs []bool
}

func newCounter(s *Session) (*counter, error) {
	c := &counter{session: s}
	path := s.engine.Path()
	c.segmentedOut = path.Egress.Inner.Event != mace.NetDevStartXmit
	c.segmentedAtNIC = path.Egress.Outer.Event == mace.NetDevQueue
	err := container.InNetNS(s.nics[0].NetNSPath, func() (err error) {
		if c.host, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		for _, nic := range s.nics {
			link, err := c.host.LinkByIndex(nic.Index)
			if err != nil {
				return err
			}
			c.exactNICs = append(c.exactNICs, link.Type() == "veth")
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("counting the packets of %s: %w", strings.Join(s.NICNames(), ", "), err)
	}
	return c, nil
}

func (c *counter) close() { c.host.Close() }

func (c *counter) places() int { return int(firstNIC) + placesPerNIC*len(c.session.nics) }

// read takes all counts. The programs' are read before and after each independent one.
func (c *counter) read() (reading, error) {
	n := c.places()
	r := reading{at: time.Now(), counted: make([]uint64, n), seen: make([]uint64, n), extra: make([]uint64, n), offsets: make([]offset, n)}
	if err := c.readContainer(&r); err != nil {
		return r, err
	}
	for i := range c.session.nics {
		if err := c.readNIC(&r, i); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *reading) take(p place, counted, before, after, extra uint64) {
	o := offset{int64(counted) - int64(after), int64(counted) - int64(before)}
	if r.counted[p] == 0 || o.high-o.low < r.offsets[p].high-r.offsets[p].low {
		r.counted[p], r.seen[p], r.extra[p], r.offsets[p] = counted, before, extra, o
	}
}

func (c *counter) readContainer(r *reading) error {
	err := container.InNetNS(c.session.target.NetNSPath, func() error {
		for range countingNarrow {
			before, err := c.session.ns.Counters()
			if err != nil {
				return err
			}
			independent, err := countInNetNS()
			if err != nil {
				return err
			}
			after, err := c.session.ns.Counters()
			if err != nil {
				return err
			}
			r.take(containerOut, independent.tx, before.DeviceTx, after.DeviceTx, before.DeviceTxExtra)
			r.take(containerIn, independent.rx, before.DeviceRx, after.DeviceRx, before.DeviceRxExtra)
			r.take(containerInIP, independent.ip, ipReceived(before), ipReceived(after), 0)
			if before == after {
				break
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("counting the container's packets: %w", err)
	}
	return nil
}

// ipReceived is how many of the packets that arrived at the container's devices were IP's.
func ipReceived(c mace.Counters) uint64 {
	return c.IngressMatched + c.IngressAmbiguous + c.IngressMerged + c.IngressUnstarted
}

func (c *counter) readNIC(r *reading, i int) error {
	nic := c.session.nics[i]
	for range countingNarrow {
		before, err := c.session.engine.NICCounters(i)
		if err != nil {
			return err
		}
		link, err := c.host.LinkByIndex(nic.Index)
		if err != nil || link.Attrs().Statistics == nil {
			return nil // it has disappeared, which is told elsewhere: from here on nothing is counted
		}
		after, err := c.session.engine.NICCounters(i)
		if err != nil {
			return err
		}
		statistics, p := link.Attrs().Statistics, firstNIC+placesPerNIC*place(i)
		r.take(p, statistics.TxPackets, before.Tx, after.Tx, before.TxExtra)
		r.take(p+1, statistics.RxPackets, before.Rx, after.Rx, before.RxExtra)
		if before == after {
			break
		}
	}
	return nil
}

// independent is what a network namespace has counted by itself since it was made.
type independent struct {
	tx, rx uint64 // all devices but lo
	ip     uint64 // IP packets received, but for lo's
}

// countInNetNS reads the counts of the calling thread's network namespace.
func countInNetNS() (sum independent, err error) {
	// What the protocols have counted comes first: a packet of lo that passes meanwhile is then taken off too much.
	snmp, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return sum, err
	}
	snmp6, err := os.ReadFile("/proc/thread-self/net/snmp6")
	if err != nil && !os.IsNotExist(err) { // a kernel without IPv6
		return sum, err
	}
	dev, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		return sum, err
	}
	return parseCounts(string(snmp), string(snmp6), string(dev))
}

// parseCounts reads /proc/net/snmp, snmp6 and dev.
func parseCounts(snmp, snmp6, dev string) (sum independent, err error) {
	// "Ip: Forwarding DefaultTTL InReceives ...", and the values in the next line that begins so.
	_, values, _ := strings.Cut(snmp, "\nIp: ")
	if _, err := fmt.Sscan(values, new(int), new(int), &sum.ip); err != nil {
		return sum, fmt.Errorf("no InReceives in /proc/net/snmp: %w", err)
	}
	if _, value, ok := strings.Cut(snmp6, "Ip6InReceives"); ok {
		var v6 uint64
		if _, err := fmt.Sscan(value, &v6); err != nil {
			return sum, fmt.Errorf("no Ip6InReceives in /proc/net/snmp6: %w", err)
		}
		sum.ip += v6
	}
	for line := range strings.Lines(dev) {
		name, text, ok := strings.Cut(line, ":")
		if !ok {
			continue // of the header
		}
		var v [10]uint64 // of received: bytes, packets, ..; of sent: bytes, packets
		if _, err := fmt.Sscan(text, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9]); err != nil {
			return sum, fmt.Errorf("reading a device's counts in /proc/net/dev: %w: %q", err, line)
		}
		if strings.TrimSpace(name) == "lo" {
			sum.ip -= min(sum.ip, v[1])
			continue
		}
		sum.rx += v[1]
		sum.tx += v[9]
	}
	return sum, nil
}
