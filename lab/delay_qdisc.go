package lab

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// qdisc replaces the queueing discipline of the delay's device.
func (b *builder) qdisc(d Delay) error {
	host, name := d.device()
	link, err := b.nl[host].LinkByName(name)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", name, host, err)
	}
	attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	switch d.By {
	case DelayByNetem:
		netem := netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: uint32(d.Time.Microseconds()), Limit: qdiscPackets})
		err = b.nl[host].QdiscReplace(netem)
	case DelayByTBF:
		err = b.lab.Do(host, func() error { return replaceTBF(attrs, d.Time) })
	}
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("adding %s to %s in %s: this kernel has none (module sch_%s): use another kind of delay: %w",
			d.By, name, host, d.By, errors.ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("adding %s to %s in %s: %w", d.By, name, host, err)
	}
	return nil
}

// What waits in a queueing discipline, as in the default of netem.
const qdiscPackets = 1000

// tbfPacketBytes is what every packet counts as in tbf: more than any has, but for the largest that TSO makes, which
// the kernel divides in two.
const tbfPacketBytes = math.MaxUint16

// replaceTBF sets a tbf that lets one packet pass per interval, in the namespace of the calling thread. The netlink
// package cannot say mpu, the size that smaller packets count as.
func replaceTBF(attrs netlink.QdiscAttrs, interval time.Duration) error {
	bytesPerSecond := uint64(tbfPacketBytes * int64(time.Second) / int64(interval))
	parameters := nl.TcTbfQopt{Limit: qdiscPackets * tbfPacketBytes}
	parameters.Rate.Mpu = tbfPacketBytes
	parameters.Rate.Linklayer = nl.LINKLAYER_ETHERNET
	parameters.Rate.Rate = uint32(min(bytesPerSecond, math.MaxUint32))
	options := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	options.AddRtAttr(nl.TCA_TBF_PARMS, parameters.Serialize())
	if bytesPerSecond > math.MaxUint32 {
		options.AddRtAttr(nl.TCA_TBF_RATE64, nl.Uint64Attr(bytesPerSecond))
	}
	options.AddRtAttr(nl.TCA_TBF_BURST, nl.Uint32Attr(tbfPacketBytes))

	request := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	request.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: int32(attrs.LinkIndex), Handle: attrs.Handle, Parent: attrs.Parent})
	request.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("tbf")))
	request.AddData(options)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
