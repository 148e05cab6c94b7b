package prober

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How long a client waits for a reply to a datagram, which may be lost, and for the acknowledgement of a segment, after
// which TCP gives up. A limit on reading from a stream would set a timer for each message; sockperf has none, either.
const (
	datagramPatience = 500 * time.Millisecond
	streamPatience   = 5 * time.Second
)

// errTimeout means that nothing came in time.
var errTimeout = errors.New("no reply")

// sockaddr is the socket address of addr and port.
func sockaddr(addr string, port uint) (unix.Sockaddr, int, error) {
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		return nil, 0, fmt.Errorf("--addr=%q is no IP address", addr)
	}
	if ip.Is4() {
		return &unix.SockaddrInet4{Port: int(port), Addr: ip.As4()}, unix.AF_INET, nil
	}
	return &unix.SockaddrInet6{Port: int(port), Addr: ip.As16()}, unix.AF_INET6, nil
}

// openSocket opens a blocking socket, as sockperf does: TCP_NODELAY, buffers as the system has them.
func openSocket(o options) (int, unix.Sockaddr, error) {
	sa, family, err := sockaddr(o.addr, o.port)
	if err != nil {
		return 0, nil, err
	}
	kind := unix.SOCK_STREAM
	if o.udp {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("opening a socket: %w", err)
	}
	return fd, sa, nil
}

// The raw system calls below do not tell Go's scheduler that they block: there is nothing else to schedule, and telling
// costs some 50 ns each. They are sockperf's: recvfrom and sendto, not read and write, which pass the file layer first.

// readSome reads what is there or comes within the socket's time limit. A signal starts that again, so whoever has one
// says by isOver, asked after a signal, whether it is over; nil is never.
func readSome(fd int, buffer []byte, isOver func() bool) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)),
			unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
			if isOver != nil && isOver() {
				return 0, errTimeout
			}
		case unix.EAGAIN:
			return 0, errTimeout
		default:
			return 0, errno
		}
	}
}

// readFull reads a message of a stream.
func readFull(fd int, buffer []byte) error {
	for have := 0; have < len(buffer); {
		n, err := readSome(fd, buffer[have:], nil)
		if err != nil {
			return err
		}
		if n == 0 {
			if have == 0 {
				return io.EOF
			}
			return io.ErrUnexpectedEOF
		}
		have += n
	}
	return nil
}

func writeFull(fd int, buffer []byte) error {
	for sent := 0; sent < len(buffer); {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&buffer[sent])), uintptr(len(buffer)-sent),
			unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return errTimeout
		default:
			return errno
		}
	}
	return nil
}
