package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

const (
	vxlanID   = 77
	vxlanPort = 4789 // IANA's, RFC 7348
	// Outer IPv4 (20), UDP (8), VXLAN (8) and inner Ethernet (14) headers.
	vxlanOverheadBytes = 50
)

// vxlan makes the overlay's tunnel: on the host a port of the bridge, on the remote host a device with an address in
// the containers' subnet. Each end knows the other one, nothing is multicast.
func (b *builder) vxlan() error {
	l := b.lab
	if err := b.tunnel(Host, NIC, l.HostAddr4(), l.RemoteNICAddr4(), nil); err != nil {
		return err
	}
	if err := b.enslave(VXLANDevice); err != nil {
		return err
	}
	if err := b.up(Host, VXLANDevice); err != nil {
		return err
	}
	if err := b.tunnel(Remote, RemoteDevice, l.RemoteNICAddr4(), l.HostAddr4(), macOf(l.RemoteAddr4())); err != nil {
		return err
	}
	return b.up(Remote, VXLANDevice,
		netip.PrefixFrom(l.RemoteAddr4(), containerNet4.Bits()), netip.PrefixFrom(l.RemoteAddr6(), containerNet6.Bits()))
}

func (b *builder) tunnel(host, lower string, local, remote netip.Addr, mac net.HardwareAddr) error {
	under, err := b.nl[host].LinkByName(lower)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", lower, host, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = VXLANDevice, b.lab.options.containerMTU(), mac
	err = b.nl[host].LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: vxlanID, VtepDevIndex: under.Attrs().Index,
		SrcAddr: local.AsSlice(), Group: remote.AsSlice(), Port: vxlanPort, Learning: true})
	if err != nil {
		return fmt.Errorf("adding %s over %s in %s: %w", VXLANDevice, lower, host, err)
	}
	return nil
}
