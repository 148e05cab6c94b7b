package mace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// stampHolder keeps the kernel stamping received packets. It does so only while some socket asks for it, and begins
// a moment after the first one has asked: without a holder, the first reply of a short run has no stamp.
type stampHolder struct {
	fd int
}

func holdStamps() (*stampHolder, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a socket to hold receive stamps on: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMP, 1); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("asking for receive stamps: %w", err)
	}
	return &stampHolder{fd}, nil
}

func (h *stampHolder) release() { unix.Close(h.fd) }
