package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// macvlan gives each container a device on the NIC, in bridge mode as Docker does by default. Host and containers do
// not reach each other: a macvlan device never speaks to the device below it.
func (b *builder) macvlan() error {
	l := b.lab
	nic, err := b.nl[Host].LinkByName(NIC)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", NIC, Host, err)
	}
	for i := 1; i <= l.Containers(); i++ {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU, attrs.HardwareAddr = ContainerDevice, l.options.MTU, macOf(l.ContainerAddr4(i))
		attrs.ParentIndex = nic.Attrs().Index
		attrs.Namespace = netlink.NsFd(int(b.ns[Container(i)]))
		if err := b.nl[Host].LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}); err != nil {
			return fmt.Errorf("adding macvlan %s of %s in %s: %w", ContainerDevice, NIC, Container(i), err)
		}
		err := b.up(Container(i), ContainerDevice,
			netip.PrefixFrom(l.ContainerAddr4(i), nicNet4.Bits()), netip.PrefixFrom(l.ContainerAddr6(i), nicNet6.Bits()))
		if err != nil {
			return err
		}
	}
	return nil
}
