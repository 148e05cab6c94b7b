package lab

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From linux/ethtool.h. Setting one of these legacy switches sets every feature of its group, for IPv4 and IPv6.
const (
	ethtoolGetTSO, ethtoolSetTSO = 0x1e, 0x1f
	ethtoolGetGSO, ethtoolSetGSO = 0x23, 0x24
	ethtoolGetGRO, ethtoolSetGRO = 0x2b, 0x2c
)

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct {
	command uint32
	value   uint32
}

// ethtoolRequest is struct ifreq with ifr_data; the padding brings it to the kernel's 40 bytes.
type ethtoolRequest struct {
	name  [unix.IFNAMSIZ]byte
	value *ethtoolValue
	_     [16]byte
}

// ethtool runs one command on a device in the namespace of the calling thread.
func ethtool(device string, command, value uint32) (uint32, error) {
	// Any socket does; this one needs no IP.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	argument := &ethtoolValue{command: command, value: value}
	request := ethtoolRequest{value: argument}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return 0, errno
	}
	return argument.value, nil
}

// set switches a device's offloads, in the namespace of the calling thread.
func (o Offloads) set(device string) error {
	for _, s := range []struct {
		name     string
		toggle   Toggle
		get, set uint32
	}{
		{"GSO", o.GSO, ethtoolGetGSO, ethtoolSetGSO},
		{"TSO", o.TSO, ethtoolGetTSO, ethtoolSetTSO},
		{"GRO", o.GRO, ethtoolGetGRO, ethtoolSetGRO},
	} {
		if s.toggle == Unchanged {
			continue
		}
		var want uint32
		if s.toggle == On {
			want = 1
		}
		if _, err := ethtool(device, s.set, want); err != nil {
			return fmt.Errorf("switching %s %s on %s: %w", s.name, s.toggle, device, err)
		}
		// The kernel drops what conflicts with another feature, silently.
		if got, err := ethtool(device, s.get, 0); err == nil && got != want {
			return fmt.Errorf("switching %s %s on %s: the kernel leaves it as it is", s.name, s.toggle, device)
		}
	}
	return nil
}

// readOffloads reads a device's offloads, in the namespace of the calling thread.
func readOffloads(device string) (Offloads, error) {
	var toggles [3]Toggle
	for i, command := range []uint32{ethtoolGetTSO, ethtoolGetGSO, ethtoolGetGRO} {
		value, err := ethtool(device, command, 0)
		if err != nil {
			return Offloads{}, fmt.Errorf("reading the offloads of %s: %w", device, err)
		}
		toggles[i] = Off
		if value != 0 {
			toggles[i] = On
		}
	}
	return Offloads{TSO: toggles[0], GSO: toggles[1], GRO: toggles[2]}, nil
}

func (b *builder) offloads() error {
	apply := func(host, device string, offloads Offloads) error {
		if offloads == (Offloads{}) {
			return nil
		}
		if err := b.lab.Do(host, func() error { return offloads.set(device) }); err != nil {
			return fmt.Errorf("in %s: %w", host, err)
		}
		return nil
	}
	if err := apply(Host, NIC, b.lab.options.NICOffloads); err != nil {
		return err
	}
	if err := apply(Remote, RemoteDevice, b.lab.options.RemoteOffloads); err != nil {
		return err
	}
	for i := 1; i <= b.lab.Containers(); i++ {
		if err := apply(Container(i), ContainerDevice, b.lab.options.ContainerOffloads); err != nil {
			return err
		}
	}
	return nil
}
