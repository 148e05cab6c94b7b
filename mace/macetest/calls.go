package macetest

import (
	"errors"
	"io"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Senders are the ways to send one message on a connected socket. sendmmsg is beside them: it sends many.
var Senders = map[string]func(*socket, []byte) error{
	"send": func(s *socket, b []byte) error { return s.wrote(sendto(s.fd, b, nil, 0)) },
	"sendto": func(s *socket, b []byte) error {
		if s.client.Protocol == "tcp" {
			return s.wrote(sendto(s.fd, b, nil, 0)) // which has no use for an address
		}
		return unix.Sendto(s.fd, b, 0, s.to)
	},
	"sendmsg": func(s *socket, b []byte) error {
		_, err := unix.SendmsgN(s.fd, b, nil, nil, 0)
		return err
	},
	"write":  func(s *socket, b []byte) error { return s.wrote(unix.Write(s.fd, b)) },
	"writev": func(s *socket, b []byte) error { return s.wrote(unix.Writev(s.fd, [][]byte{b[:4], b[4:]})) },
	"io_uring send": func(s *socket, b []byte) error {
		return s.wrote(s.ring.transfer(opSend, s.fd, b, false))
	},
	"io_uring sendmsg": func(s *socket, b []byte) error {
		_, err := s.ring.message(opSendmsg, s.fd, b, nil)
		return err
	},
	// By a thread of the kernel's, which is in no system call.
	"io_uring send by a worker": func(s *socket, b []byte) error {
		return s.wrote(s.ring.transfer(opSend, s.fd, b, true))
	},
	"sendmmsg": func(s *socket, b []byte) error { return sendmmsg(s.fd, [][]byte{b}) },
}

// Receivers are the ways to receive. recvmmsg is beside them: it receives many.
var Receivers = map[string]func(s *socket, b []byte) (n int, stampNS int64, err error){
	"recv":     func(s *socket, b []byte) (int, int64, error) { return plain(recvfrom(s.fd, b, false)) },
	"recvfrom": func(s *socket, b []byte) (int, int64, error) { return plain(recvfrom(s.fd, b, true)) },
	"recvmsg": func(s *socket, b []byte) (int, int64, error) {
		control := make([]byte, 256)
		n, nc, _, _, err := unix.Recvmsg(s.fd, b, control, 0)
		return n, stampIn(control[:max(nc, 0)]), err
	},
	"read":  func(s *socket, b []byte) (int, int64, error) { return plain(unix.Read(s.fd, b)) },
	"readv": func(s *socket, b []byte) (int, int64, error) { return plain(unix.Readv(s.fd, [][]byte{b[:4], b[4:]})) },
	"io_uring recv": func(s *socket, b []byte) (int, int64, error) {
		return plain(s.ring.transfer(opRecv, s.fd, b, false))
	},
	"io_uring recvmsg": func(s *socket, b []byte) (int, int64, error) {
		control := make([]byte, 256)
		n, err := s.ring.message(opRecvmsg, s.fd, b, &control)
		return n, stampIn(control), err
	},
	"recvmmsg": func(s *socket, b []byte) (int, int64, error) {
		got, err := recvmmsg(s.fd, 1)
		if err != nil {
			return 0, 0, err
		}
		return copy(b, got[0].payload), got[0].stampNS, nil
	},
}

func plain(n int, err error) (int, int64, error) { return n, 0, err }

// wrote makes an error of a short write: a test that sends less than it means proves nothing.
func (s *socket) wrote(n int, err error) error {
	if err == nil && n < s.client.Size {
		err = io.ErrShortWrite
	}
	return err
}

type datagram struct {
	payload []byte
	stampNS int64
}

const maxDatagram = 1 << 16

func (s *socket) receiveOne() ([]datagram, error) {
	b := make([]byte, maxDatagram)
	if s.client.Peek {
		if err := again(func() error { _, _, err := unix.Recvfrom(s.fd, b, unix.MSG_PEEK); return err }); err != nil {
			return nil, err
		}
	}
	var n int
	var stamp int64
	err := again(func() (err error) {
		n, stamp, err = Receivers[s.client.Receive](s, b)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []datagram{{b[:n], stamp}}, nil
}

// receiveStream reads one answer's bytes, in as many calls as it takes.
func (s *socket) receiveStream() ([]datagram, error) {
	var whole datagram
	for len(whole.payload) < s.client.Size {
		got, err := s.receiveOne()
		if err != nil {
			return nil, err
		}
		if len(got[0].payload) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		whole.payload = append(whole.payload, got[0].payload...)
		whole.stampNS = got[0].stampNS
	}
	return []datagram{whole}, nil
}

func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func sendto(fd int, b []byte, to *unix.RawSockaddrInet4, toLen uintptr) (int, error) {
	n, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0,
		uintptr(unsafe.Pointer(to)), toLen)
	return result(n, errno)
}

// recvfrom asks for the sender's address, or, as recv does, does not.
func recvfrom(fd int, b []byte, address bool) (int, error) {
	var from unix.RawSockaddrAny
	size := uint32(unsafe.Sizeof(from))
	var fromPtr, sizePtr unsafe.Pointer
	if address {
		fromPtr, sizePtr = unsafe.Pointer(&from), unsafe.Pointer(&size)
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0,
		uintptr(fromPtr), uintptr(sizePtr))
	return result(n, errno)
}

func result(n uintptr, errno unix.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

func newMessage(b []byte, control []byte) mmsghdr {
	var m mmsghdr
	iov := &unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	m.header.Iov = iov
	m.header.SetIovlen(1)
	if len(control) > 0 {
		m.header.Control = &control[0]
		m.header.SetControllen(len(control))
	}
	return m
}

func sendmmsg(fd int, messages [][]byte) error {
	var vector []mmsghdr
	for _, b := range messages {
		vector = append(vector, newMessage(b, nil))
	}
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&vector[0])), uintptr(len(vector)), 0, 0, 0)
	runtime.KeepAlive(messages)
	if sent, err := result(n, errno); err != nil {
		return err
	} else if sent < len(messages) {
		return io.ErrShortWrite
	}
	return nil
}

// recvmmsg waits for up to n datagrams.
func recvmmsg(fd, n int) ([]datagram, error) {
	var vector []mmsghdr
	payloads, controls := make([][]byte, n), make([][]byte, n)
	for i := range n {
		payloads[i], controls[i] = make([]byte, maxDatagram), make([]byte, 256)
		vector = append(vector, newMessage(payloads[i], controls[i]))
	}
	got, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&vector[0])), uintptr(n), 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	var datagrams []datagram
	for i := range int(got) {
		datagrams = append(datagrams, datagram{payloads[i][:vector[i].length], stampIn(controls[i][:vector[i].header.Controllen])})
	}
	return datagrams, nil
}
