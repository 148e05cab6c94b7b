package lab

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const tunDevice = "/dev/net/tun"

// What may pass from end to end of a cable unfinished: checksums to be filled in, and TCP to be segmented, as on a veth.
const tapOffloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6

// attachTap opens the device of that name in the namespace of the calling thread, and makes it if there is none. Each
// read gives a packet that leaves by the device, each write is a packet that comes in by it, with a struct
// virtio_net_hdr before it. Reads do not block.
func attachTap(name string) (fd int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("attaching to the tap device %s: %w", name, err)
		}
	}()
	fd, err = unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return -1, fmt.Errorf("%s: %w (module tun)", tunDevice, err)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: tunDevice, Err: err}
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tapOffloads)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// tap makes a tap device that stays, for a forwarder to attach to. mac may be nil.
func (b *builder) tap(host, name string, mac net.HardwareAddr, mtu int) error {
	err := b.lab.Do(host, func() error {
		fd, err := attachTap(name)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
	})
	if err != nil {
		return fmt.Errorf("in %s: %w", host, err)
	}
	link, err := b.nl[host].LinkByName(name)
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", name, host, err)
	}
	if mac != nil {
		if err := b.nl[host].LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("setting the address of %s in %s: %w", name, host, err)
		}
	}
	if err := b.nl[host].LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("setting the MTU of %s in %s to %d: %w", name, host, mtu, err)
	}
	return nil
}
