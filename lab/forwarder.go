package lab

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// forwarder is a cable: what enters at one end comes out at the other one, a known time later.
type forwarder struct {
	fds    [2]int // each gives and takes packets with a struct virtio_net_hdr before them; reads do not block
	delay  time.Duration
	spins  bool // never sleeps
	began  time.Time
	frames [][]byte // of all
	free   []int    // frames in none's use; the last one used is the next to be used, for it is in the CPU's cache
	queue  []held   // a ring: what is on the way, both ways, in the order in which it came and will go
	first  int
	length int
}

// held is a frame on its way.
type held struct {
	frame, size int
	to          int // the end at which it comes out
	due         time.Duration
}

const (
	// What a cable holds at most. What more comes waits in the device's queue, and beyond that is lost.
	forwarderFrames = 1024
	// The largest packet that TSO makes, with the Ethernet header, a VLAN tag and a struct virtio_net_hdr.
	forwarderFrameBytes = 1<<16 + 18 + 10
	// Within the last part of its delay, a frame is waited for by looking at the clock: reading takes about a
	// microsecond, sleeping and waking up some fifty.
	forwarderReadAhead  = 3 * time.Microsecond
	forwarderSleepAhead = 150 * time.Microsecond
)

// forwarderEnd is where a forwarder takes packets from, and leaves them.
type forwarderEnd struct {
	host, device string
	attach       func(device string) (fd int, err error)
}

// forwarderEnds tells what a forwarder joins. Of the NIC's cable it is both devices. A container's has a veth as ever,
// and by this is told to be a container's: the forwarder is between the veth's end in Host and the port of the bridge.
func forwarderEnds(d Delay) [2]forwarderEnd {
	if cable := d.cable(); cable != NIC {
		return [2]forwarderEnd{{Host, cable, attachPacketSocket}, {Host, portOf(cable), attachTap}}
	}
	return [2]forwarderEnd{{Host, NIC, attachTap}, {Remote, RemoteDevice, attachTap}}
}

// portOf names the port of the bridge that a forwarder joins with a container's veth.
func portOf(veth string) string { return "port" + strings.TrimPrefix(veth, "veth") }

// prepareForwarder attaches to both ends of the cable.
func prepareForwarder(name string, d Delay) (work func() error, err error) {
	f := &forwarder{delay: d.Time, spins: d.CPU != nil, began: time.Now()}
	for i, end := range forwarderEnds(d) {
		err := inNetNS(netnsPath(netnsName(name, end.host)), func() (err error) {
			f.fds[i], err = end.attach(end.device)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("in %s: %w", end.host, err)
		}
	}
	f.frames = make([][]byte, forwarderFrames)
	f.queue = make([]held, forwarderFrames)
	for i := range f.frames {
		f.frames[i] = make([]byte, forwarderFrameBytes)
		f.free = append(f.free, i)
	}
	return func() error {
		runtime.LockOSThread()
		if !f.spins {
			// It sleeps most of the time; when it wakes up it must not stand in line behind others. Where that is not
			// allowed, it is late on a busy machine.
			_ = becomeRealtime()
			return f.run()
		}
		// Never realtime, not even if its parent is: it would keep its CPU from everybody for good.
		if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0); err != nil {
			return err
		}
		if err := pinThread(*d.CPU); err != nil {
			return err
		}
		return f.run()
	}, nil
}

// pinThread ties the calling thread to a CPU.
func pinThread(cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pinning to CPU %d: %w", cpu, err)
	}
	return nil
}

func (f *forwarder) now() time.Duration { return time.Since(f.began) }

// run carries frames until the devices are gone.
func (f *forwarder) run() error {
	for {
		f.deliver()
		came := false
		for from := range f.fds {
			got, err := f.receive(from)
			if errors.Is(err, unix.EBADFD) {
				return nil // the device is deleted
			}
			if err != nil {
				return err
			}
			came = came || got
		}
		if !came && !f.spins {
			f.sleep()
		}
	}
}

// receive takes a frame from one end, if there is one.
func (f *forwarder) receive(from int) (bool, error) {
	if len(f.free) == 0 {
		return false, nil
	}
	frame := f.free[len(f.free)-1]
	n, err := unix.Read(f.fds[from], f.frames[frame])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.EIO), errors.Is(err, unix.ENETDOWN):
		return false, nil // the last two: it is down
	case err != nil:
		return false, err
	}
	f.free = f.free[:len(f.free)-1]
	f.queue[(f.first+f.length)%len(f.queue)] = held{frame: frame, size: n, to: 1 - from, due: f.now() + f.delay}
	f.length++
	return true, nil
}

// deliver hands out what is due, and waits for what is due in a moment.
func (f *forwarder) deliver() {
	for f.length > 0 {
		h := f.queue[f.first]
		if h.due-f.now() > forwarderReadAhead {
			return
		}
		for f.now() < h.due {
		}
		// The write does all that the kernel does to receive a packet. One that it does not want is lost, as on a cable.
		_, _ = unix.Write(f.fds[h.to], f.frames[h.frame][:h.size])
		f.free = append(f.free, h.frame)
		f.first = (f.first + 1) % len(f.queue)
		f.length--
	}
}

// sleep waits until something comes, or until shortly before something is due.
func (f *forwarder) sleep() {
	var timeout *unix.Timespec // nil: for ever
	if f.length > 0 {
		left := f.queue[f.first].due - f.now() - forwarderSleepAhead
		if left <= 0 {
			return
		}
		until := unix.NsecToTimespec(int64(left))
		timeout = &until
	}
	ends := []unix.PollFd{{Fd: int32(f.fds[0]), Events: unix.POLLIN}, {Fd: int32(f.fds[1]), Events: unix.POLLIN}}
	if len(f.free) == 0 {
		ends = nil
	}
	_, _ = unix.Ppoll(ends, timeout, nil)
}
