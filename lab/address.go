package lab

import (
	"net"
	"net/netip"
)

// The two networks: the containers' (or the overlay's), and the NIC's.
var (
	containerNet4 = netip.MustParsePrefix("10.77.0.0/24")
	containerNet6 = netip.MustParsePrefix("fd77::/64")
	nicNet4       = netip.MustParsePrefix("10.78.0.0/24")
	nicNet6       = netip.MustParsePrefix("fd78::/64")
)

// Last bytes of addresses. A macvlan container is in the NIC's network and begins at 10, clear of host and remote.
const (
	gatewayByte         = 1
	nicHostByte         = 1
	nicRemoteByte       = 2
	overlayRemoteByte   = 254
	containerByteBefore = 1
	macvlanByteBefore   = 10
)

// addressIn returns the address of net whose last byte is last.
func addressIn(network netip.Prefix, last int) netip.Addr {
	bytes := network.Addr().AsSlice()
	bytes[len(bytes)-1] = byte(last)
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// macOf returns the hardware address of an IPv4 address, built as Docker builds it: 02:42 and the address. A fixed
// address lets neighbours be known ahead, and keeps the bridge from changing its own with each new port.
func macOf(addr4 netip.Addr) net.HardwareAddr {
	bytes := addr4.As4()
	return net.HardwareAddr{0x02, 0x42, bytes[0], bytes[1], bytes[2], bytes[3]}
}

func (o Options) containerAddr4(i int) netip.Addr {
	if o.Network == NetworkMacvlan {
		return addressIn(nicNet4, macvlanByteBefore+i)
	}
	return addressIn(containerNet4, containerByteBefore+i)
}

func (o Options) containerAddr6(i int) netip.Addr {
	if o.Network == NetworkMacvlan {
		return addressIn(nicNet6, macvlanByteBefore+i)
	}
	return addressIn(containerNet6, containerByteBefore+i)
}

// ContainerAddr4 returns the IPv4 address of container i, from 1.
func (l *Lab) ContainerAddr4(i int) netip.Addr { return l.options.containerAddr4(i) }

// ContainerAddr6 returns the IPv6 address of container i, from 1.
func (l *Lab) ContainerAddr6(i int) netip.Addr { return l.options.containerAddr6(i) }

// RemoteAddr4 returns the IPv4 address by which containers reach the remote host: in a VXLAN lab the one in the
// overlay, else the one in the NIC's network.
func (l *Lab) RemoteAddr4() netip.Addr {
	if l.options.Network == NetworkVXLAN {
		return addressIn(containerNet4, overlayRemoteByte)
	}
	return addressIn(nicNet4, nicRemoteByte)
}

// RemoteAddr6 is RemoteAddr4 for IPv6.
func (l *Lab) RemoteAddr6() netip.Addr {
	if l.options.Network == NetworkVXLAN {
		return addressIn(containerNet6, overlayRemoteByte)
	}
	return addressIn(nicNet6, nicRemoteByte)
}

// RemoteNICAddr4 returns the remote host's IPv4 address in the NIC's network, whatever the network kind. A ping from
// Host to it is the bare-metal reference.
func (l *Lab) RemoteNICAddr4() netip.Addr { return addressIn(nicNet4, nicRemoteByte) }

// RemoteNICAddr6 is RemoteNICAddr4 for IPv6.
func (l *Lab) RemoteNICAddr6() netip.Addr { return addressIn(nicNet6, nicRemoteByte) }

// HostAddr4 returns the IPv4 address of the host's NIC: what the remote sees of a masqueraded container.
func (l *Lab) HostAddr4() netip.Addr { return addressIn(nicNet4, nicHostByte) }

// HostAddr6 is HostAddr4 for IPv6.
func (l *Lab) HostAddr6() netip.Addr { return addressIn(nicNet6, nicHostByte) }

// GatewayAddr4 returns the bridge's IPv4 address; a macvlan lab has no bridge.
func (l *Lab) GatewayAddr4() netip.Addr { return addressIn(containerNet4, gatewayByte) }

// GatewayAddr6 is GatewayAddr4 for IPv6.
func (l *Lab) GatewayAddr6() netip.Addr { return addressIn(containerNet6, gatewayByte) }
