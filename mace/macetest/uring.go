package macetest

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of linux/io_uring.h.
const (
	opSendmsg = 9
	opRecvmsg = 10
	opSend    = 26
	opRecv    = 27

	offSQRing = 0
	offCQRing = 0x8000000
	offSQEs   = 0x10000000

	enterGetEvents = 1
	sqeAsync       = 1 << 4
)

type uringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32
	_                                                                      [3]uint32
	sq                                                                     struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

type uringSQE struct {
	opcode, flags uint8
	_             uint16
	fd            int32
	_             uint64
	addr          uint64
	length        uint32
	_             uint32
	userData      uint64
	_             [3]uint64
}

type uringCQE struct {
	userData   uint64
	res, flags int32
}

// uring is an io_uring that has one request under way at most.
type uring struct {
	fd     int
	params uringParams
	sq, cq []byte
	sqes   []byte
}

func isUring(call string) bool { return strings.HasPrefix(call, "io_uring") }

func newUring() (*uring, error) {
	u := &uring{}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&u.params)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("setting up io_uring: %w", errno)
	}
	u.fd = int(fd)
	var err error
	for _, m := range []struct {
		memory *[]byte
		offset int64
		size   uint32
	}{
		{&u.sq, offSQRing, u.params.sq.array + u.params.sqEntries*4},
		{&u.cq, offCQRing, u.params.cq.cqes + u.params.cqEntries*uint32(unsafe.Sizeof(uringCQE{}))},
		{&u.sqes, offSQEs, u.params.sqEntries * uint32(unsafe.Sizeof(uringSQE{}))},
	} {
		*m.memory, err = unix.Mmap(u.fd, m.offset, int(m.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			return nil, fmt.Errorf("mapping io_uring: %w", err)
		}
	}
	return u, nil
}

func word(memory []byte, offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&memory[offset])) }

// submit has the kernel do one thing, and waits for it in the same system call.
func (u *uring) submit(e uringSQE) (int, error) {
	tail := atomic.LoadUint32(word(u.sq, u.params.sq.tail))
	slot := tail & *word(u.sq, u.params.sq.mask)
	*(*uringSQE)(unsafe.Pointer(&u.sqes[uintptr(slot)*unsafe.Sizeof(e)])) = e
	*word(u.sq, u.params.sq.array+4*slot) = slot
	atomic.StoreUint32(word(u.sq, u.params.sq.tail), tail+1) // the kernel reads it with acquire
	toSubmit := uintptr(1)
	for {
		submitted, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), toSubmit, 1, enterGetEvents, 0, 0)
		if errno != 0 && !errors.Is(errno, unix.EINTR) {
			return 0, errno
		}
		if errno == 0 {
			toSubmit -= submitted
		}
		head := atomic.LoadUint32(word(u.cq, u.params.cq.head))
		if head == atomic.LoadUint32(word(u.cq, u.params.cq.tail)) {
			continue
		}
		at := uintptr(u.params.cq.cqes) + uintptr(head&*word(u.cq, u.params.cq.mask))*unsafe.Sizeof(uringCQE{})
		res := (*uringCQE)(unsafe.Pointer(&u.cq[at])).res
		atomic.StoreUint32(word(u.cq, u.params.cq.head), head+1)
		if res < 0 {
			return 0, unix.Errno(-res)
		}
		return int(res), nil
	}
}

// transfer sends b, or receives into it. worker: by a kernel thread, from the start.
func (u *uring) transfer(opcode uint8, fd int, b []byte, worker bool) (int, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&b[0])
	e := uringSQE{opcode: opcode, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(&b[0]))), length: uint32(len(b))}
	if worker {
		e.flags = sqeAsync
	}
	return u.submit(e)
}

// message is transfer with a control buffer, which is cut to what came.
func (u *uring) message(opcode uint8, fd int, b []byte, control *[]byte) (int, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	var room []byte
	if control != nil {
		room = *control
		pin.Pin(&room[0])
	}
	m := newMessage(b, room)
	pin.Pin(&b[0])
	pin.Pin(m.header.Iov)
	header := &m.header
	pin.Pin(header)
	n, err := u.submit(uringSQE{opcode: opcode, fd: int32(fd), addr: uint64(uintptr(unsafe.Pointer(header))), length: 1})
	if control != nil {
		*control = room[:header.Controllen]
	}
	return n, err
}
