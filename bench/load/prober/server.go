package prober

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// serve echoes messages until it is killed.
func serve(o options) error {
	fd, sa, err := openSocket(o)
	if err != nil {
		return err
	}
	if !o.udp {
		// Connections of the last server on this port may still be about.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return fmt.Errorf("binding to %s port %d: %w", o.addr, o.port, err)
	}
	if o.udp {
		return echoDatagrams(fd)
	}
	if err := unix.Listen(fd, 16); err != nil {
		return fmt.Errorf("listening on %s port %d: %w", o.addr, o.port, err)
	}
	buffer := make([]byte, o.size)
	for {
		connection, _, err := unix.Accept(fd)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		// One client at a time: a second one would disturb what the first one measures.
		if err := echoStream(connection, buffer); err != nil {
			fmt.Fprintf(os.Stderr, "%s: a connection ended: %s\n", Command, err)
		}
		unix.Close(connection)
	}
}

func echoStream(fd int, buffer []byte) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	for {
		err := readFull(fd, buffer)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = writeFull(fd, buffer)
		}
		if err != nil {
			return err
		}
	}
}

// echoDatagrams sends each datagram back to where it came from.
func echoDatagrams(fd int) error {
	buffer := make([]byte, 1<<16)
	var from unix.RawSockaddrAny
	for {
		length := uint32(unsafe.Sizeof(from))
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)), 0,
			uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&length)))
		if errno != 0 {
			// An ICMP error that an earlier client's end provoked is not the end of this server.
			if errno == unix.EINTR || errno == unix.ECONNREFUSED {
				continue
			}
			return fmt.Errorf("receiving: %w", errno)
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&buffer[0])), n, 0,
			uintptr(unsafe.Pointer(&from)), uintptr(length)) // what cannot be sent is lost, and the client counts it
	}
}
