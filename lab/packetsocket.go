package lab

import (
	"encoding/binary"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// attachPacketSocket opens a device in the namespace of the calling thread. Each read gives a packet that comes in by the
// device, each write is a packet that leaves by it, with a struct virtio_net_hdr before it. Reads do not block.
func attachPacketSocket(name string) (fd int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("opening a packet socket on %s: %w", name, err)
		}
	}()
	device, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	// Of no protocol until it is bound, or it would get the packets of all devices in between.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
			fd = -1
		}
	}()
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, packetSocketBytes},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, packetSocketBytes},
	} {
		if err := unix.SetsockoptInt(fd, option.level, option.name, option.value); err != nil {
			return fd, err
		}
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: device.Index})
}

// Room for a window of large segments.
const packetSocketBytes = 8 << 20

// htons gives a number in network byte order.
func htons(v uint16) uint16 { return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v)) }
