package macetest

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Stamps are the ways in which a socket asks for receive stamps. Those in Stamped get the kernel's; the others ask for
// something near it, and get none.
var Stamps = map[string]func(fd int) error{
	"": func(int) error { return nil },
	"SO_TIMESTAMP": func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1)
	},
	"SO_TIMESTAMPNS": func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	},
	"SO_TIMESTAMP_NEW": func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP_NEW, 1)
	},
	"SO_TIMESTAMPING": func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING,
			unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	},
	// Stamps are generated, but none is reported.
	"SO_TIMESTAMPING without SOFTWARE": func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE)
	},
	"SO_TIMESTAMP off again": func(fd int) error {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1); err != nil {
			return err
		}
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 0)
	},
}

// Stamped says which of Stamps give the program the kernel's stamp.
var Stamped = map[string]bool{
	"SO_TIMESTAMP": true, "SO_TIMESTAMPNS": true, "SO_TIMESTAMP_NEW": true, "SO_TIMESTAMPING": true,
}

// SetStamp asks for receive stamps.
func SetStamp(fd int, stamp string) error {
	set, ok := Stamps[stamp]
	if !ok {
		return fmt.Errorf("unknown kind of stamp %q", stamp)
	}
	if err := set(fd); err != nil {
		return fmt.Errorf("setting %s: %w", stamp, err)
	}
	return nil
}

// stampIn finds a receive stamp among control messages; 0 if there is none.
func stampIn(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || len(m.Data) < 16 {
			continue
		}
		seconds := int64(binary.NativeEndian.Uint64(m.Data))
		fraction := int64(binary.NativeEndian.Uint64(m.Data[8:]))
		switch m.Header.Type {
		case unix.SO_TIMESTAMP, unix.SO_TIMESTAMP_NEW:
			return seconds*1e9 + fraction*1e3
		case unix.SO_TIMESTAMPNS, unix.SO_TIMESTAMPING: // the first of its three is the software stamp
			return seconds*1e9 + fraction
		}
	}
	return 0
}
