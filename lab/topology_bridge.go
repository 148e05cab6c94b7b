package lab

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// bridge makes br0 and joins the containers to it, as Docker makes docker0.
func (b *builder) bridge() error {
	l, mtu := b.lab, b.lab.options.containerMTU()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = Bridge, mtu, macOf(l.GatewayAddr4())
	if err := b.nl[Host].LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("adding bridge %s in %s: %w", Bridge, Host, err)
	}
	for i := 1; i <= l.Containers(); i++ {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if err := b.veth(HostVeth(i), Container(i), ContainerDevice, nil, macOf(l.ContainerAddr4(i)), mtu); err != nil {
			return err
		}
		port, err := b.port(HostVeth(i))
		if err != nil {
			return err
		}
		if err := b.enslave(port); err != nil {
			return err
		}
		if err := b.up(Host, port); err != nil {
			return err
		}
		err = b.up(Container(i), ContainerDevice,
			netip.PrefixFrom(l.ContainerAddr4(i), containerNet4.Bits()), netip.PrefixFrom(l.ContainerAddr6(i), containerNet6.Bits()))
		if err != nil {
			return err
		}
		for _, gateway := range []netip.Addr{l.GatewayAddr4(), l.GatewayAddr6()} {
			if err := b.defaultRoute(Container(i), gateway); err != nil {
				return err
			}
		}
	}
	return b.up(Host, Bridge,
		netip.PrefixFrom(l.GatewayAddr4(), containerNet4.Bits()), netip.PrefixFrom(l.GatewayAddr6(), containerNet6.Bits()))
}

// enslave makes a device of Host a port of the bridge.
func (b *builder) enslave(device string) error {
	bridge, err := b.nl[Host].LinkByName(Bridge)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", Bridge, Host, err)
	}
	port, err := b.nl[Host].LinkByName(device)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", device, Host, err)
	}
	if err := b.nl[Host].LinkSetMaster(port, bridge); err != nil {
		return fmt.Errorf("making %s a port of %s: %w", device, Bridge, err)
	}
	return nil
}
