package arm

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolOff runs one of the legacy "set" commands (linux/ethtool.h) with 0, in the namespace of the calling thread.
func ethtoolOff(device string, command uint32) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening a socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	value := &struct{ command, value uint32 }{command: command} // struct ethtool_value
	request := struct {                                         // struct ifreq: 40 bytes
		name  [unix.IFNAMSIZ]byte
		value unsafe.Pointer
		_     [16]byte
	}{value: unsafe.Pointer(value)}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
