package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// builder has every namespace of a lab at hand while it is built.
type builder struct {
	ctx   context.Context
	lab   *Lab
	state *state // written again for each process that stays
	ns    map[string]netns.NsHandle
	nl    map[string]*netlink.Handle
}

// build makes the namespaces and everything in them.
func build(ctx context.Context, l *Lab, st *state) error {
	b := &builder{ctx: ctx, lab: l, state: st, ns: map[string]netns.NsHandle{}, nl: map[string]*netlink.Handle{}}
	defer b.close()
	steps := []func() error{b.namespaces, b.nic}
	switch l.options.Network {
	case NetworkBridge:
		steps = append(steps, b.bridge, b.nat)
	case NetworkVXLAN:
		steps = append(steps, b.bridge, b.vxlan, b.nat)
	case NetworkMacvlan:
		steps = append(steps, b.macvlan)
	}
	steps = append(steps, b.offloads, b.rps, b.neighbours, b.delays, b.waitRunning)
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) close() {
	for _, handle := range b.nl {
		handle.Close()
	}
	for _, ns := range b.ns {
		ns.Close()
	}
}

func (b *builder) namespaces() error {
	for _, host := range b.lab.Hosts() {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if err := createNetNS(b.lab.NetNSName(host)); err != nil {
			return err
		}
		ns, err := netns.GetFromPath(b.lab.NetNSPath(host))
		if err != nil {
			return fmt.Errorf("opening namespace %q: %w", b.lab.NetNSName(host), err)
		}
		b.ns[host] = ns
		if b.nl[host], err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("opening netlink in namespace %q: %w", b.lab.NetNSName(host), err)
		}
		if err := b.lab.Do(host, func() error { return quietSysctls(host == Host) }); err != nil {
			return fmt.Errorf("setting up namespace %q: %w", b.lab.NetNSName(host), err)
		}
		if err := b.up(host, "lo"); err != nil {
			return err
		}
	}
	return nil
}

// nic makes the cable between the host's NIC and the remote host.
func (b *builder) nic() error {
	if err := b.nicCable(); err != nil {
		return err
	}
	err := b.up(Host, NIC, netip.PrefixFrom(b.lab.HostAddr4(), nicNet4.Bits()), netip.PrefixFrom(b.lab.HostAddr6(), nicNet6.Bits()))
	if err != nil {
		return err
	}
	return b.up(Remote, RemoteDevice,
		netip.PrefixFrom(b.lab.RemoteNICAddr4(), nicNet4.Bits()), netip.PrefixFrom(b.lab.RemoteNICAddr6(), nicNet6.Bits()))
}

// veth makes a pair of devices: name in Host, peerName in the namespace of peerHost. mac may be nil.
func (b *builder) veth(name, peerHost, peerName string, mac, peerMAC net.HardwareAddr, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, mac
	pair := netlink.NewVeth(attrs)
	pair.PeerName, pair.PeerMTU, pair.PeerHardwareAddr = peerName, uint32(mtu), peerMAC
	pair.PeerNamespace = netlink.NsFd(int(b.ns[peerHost]))
	if err := b.nl[Host].LinkAdd(pair); err != nil {
		return fmt.Errorf("adding veth %s in %s with peer %s in %s: %w", name, Host, peerName, peerHost, err)
	}
	return nil
}

// up gives a device its addresses and sets it up, in this order: the first packet already has a source address.
func (b *builder) up(host, device string, addrs ...netip.Prefix) error {
	link, err := b.nl[host].LinkByName(device)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", device, host, err)
	}
	for _, prefix := range addrs {
		addr := &netlink.Addr{IPNet: &net.IPNet{
			IP:   prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}}
		if prefix.Addr().Is6() {
			addr.Flags = unix.IFA_F_NODAD // usable at once
		}
		if err := b.nl[host].AddrAdd(link, addr); err != nil {
			return fmt.Errorf("adding address %s to %s in %s: %w", prefix, device, host, err)
		}
	}
	if err := b.nl[host].LinkSetUp(link); err != nil {
		return fmt.Errorf("setting %s in %s up: %w", device, host, err)
	}
	return nil
}

// defaultRoute sends everything else in host by way of gateway.
func (b *builder) defaultRoute(host string, gateway netip.Addr) error {
	family, everything := netlink.FAMILY_V4, &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	if gateway.Is6() {
		family, everything = netlink.FAMILY_V6, &net.IPNet{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}
	}
	route := &netlink.Route{Family: family, Dst: everything, Gw: gateway.AsSlice()}
	if err := b.nl[host].RouteAdd(route); err != nil {
		return fmt.Errorf("adding the default route by %s in %s: %w", gateway, host, err)
	}
	return nil
}

// deleteLinks deletes every device of a namespace but the loopback device.
func deleteLinks(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("opening namespace %s: %w", path, err)
	}
	defer ns.Close()
	handle, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening netlink in %s: %w", path, err)
	}
	defer handle.Close()
	links, err := handle.LinkList()
	if err != nil {
		return fmt.Errorf("listing the devices in %s: %w", path, err)
	}
	for _, link := range links {
		if link.Attrs().Flags&net.FlagLoopback != 0 {
			continue
		}
		// ENODEV: it went with another, as a macvlan does with its NIC.
		err := handle.LinkDel(link)
		if err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("deleting %s in %s: %w", link.Attrs().Name, path, err)
		}
	}
	return nil
}
