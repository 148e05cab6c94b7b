package lab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighbour tells host that addr is at mac, as if they had just spoken: the entry ages like any other.
func (b *builder) neighbour(host, device string, addr netip.Addr, mac net.HardwareAddr) error {
	link, err := b.nl[host].LinkByName(device)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", device, host, err)
	}
	family := netlink.FAMILY_V4
	if addr.Is6() {
		family = netlink.FAMILY_V6
	}
	err = b.nl[host].NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, Family: family, State: netlink.NUD_REACHABLE,
		IP: addr.AsSlice(), HardwareAddr: mac})
	if err != nil {
		return fmt.Errorf("adding neighbour %s on %s in %s: %w", addr, device, host, err)
	}
	return nil
}

// neighbours introduces those who will speak to each other, so that no first packet waits for ARP or neighbour
// discovery, and no trace begins with them.
func (b *builder) neighbours() error {
	l := b.lab
	type acquaintance struct {
		host, device string
		addr4, addr6 netip.Addr
	}
	introduce := func(one, other acquaintance) error {
		return errors.Join(
			b.neighbour(one.host, one.device, other.addr4, macOf(other.addr4)), b.neighbour(one.host, one.device, other.addr6, macOf(other.addr4)),
			b.neighbour(other.host, other.device, one.addr4, macOf(one.addr4)), b.neighbour(other.host, other.device, one.addr6, macOf(one.addr4)))
	}
	hostNIC := acquaintance{Host, NIC, l.HostAddr4(), l.HostAddr6()}
	remoteNIC := acquaintance{Remote, RemoteDevice, l.RemoteNICAddr4(), l.RemoteNICAddr6()}
	if err := introduce(hostNIC, remoteNIC); err != nil {
		return err
	}
	for i := 1; i <= l.Containers(); i++ {
		container := acquaintance{Container(i), ContainerDevice, l.ContainerAddr4(i), l.ContainerAddr6(i)}
		peers := []acquaintance{{Host, Bridge, l.GatewayAddr4(), l.GatewayAddr6()}}
		switch l.options.Network {
		case NetworkVXLAN:
			peers = append(peers, acquaintance{Remote, VXLANDevice, l.RemoteAddr4(), l.RemoteAddr6()})
		case NetworkMacvlan:
			peers = []acquaintance{remoteNIC}
		}
		for _, peer := range peers {
			if err := introduce(container, peer); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitRunning returns when every device carries packets.
func (b *builder) waitRunning() error {
	deadline := time.Now().Add(10 * time.Second)
	for _, host := range b.lab.Hosts() {
		for {
			waiting := ""
			links, err := b.nl[host].LinkList()
			if err != nil {
				return fmt.Errorf("listing the devices in %s: %w", host, err)
			}
			for _, link := range links {
				if link.Attrs().RawFlags&unix.IFF_RUNNING == 0 {
					waiting = link.Attrs().Name
				}
			}
			if waiting == "" {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s in %s has no carrier after 10 s", waiting, host)
			}
			select {
			case <-b.ctx.Done():
				return b.ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	return nil
}
