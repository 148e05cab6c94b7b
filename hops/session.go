// Package hops shows where a container's packets spend their time: between which two points of the kernel, on which
// device, and how much of it the tracer itself takes.
//
// A Session follows the packets of one container by eBPF programs on the kernel's tracepoints and hands over a Trace
// for each. A Waterfall adds traces up. The hops of a trace lie end to end, so what they add up to between the ends of
// an event path (mace.Path) is exactly what is subtracted from a round-trip time for that path.
package hops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"tare/container"
	"tare/mace"
)

// Options say what a session follows.
type Options struct {
	Target container.Target
	NICs   []string  // names; none: found out
	Path   mace.Path // whose interval is marked in the waterfall
	// RingBytes is the size of the kernel's ring, a power of two; 0 means 8 MiB, some 20,000 packets.
	RingBytes int
}

// ErrHostNetwork says that the target shares the host's network.
var ErrHostNetwork = errors.New("it shares the host's network: there is nothing between it and the NIC to look into")

// drainEvery is how often the ring is read.
const drainEvery = 20 * time.Millisecond

// Session follows the packets of one target. Close ends it and leaves nothing in the kernel.
type Session struct {
	target  container.Target
	path    mace.Path
	nics    []container.NIC
	devices *devices
	objects *ebpf.Collection
	links   []link.Link
	clock   *clock
	stamps  *stampHolder
	reader  *ringbuf.Reader
	sharing bool // the container's device shares the NIC: its received packets are known once they are read
	// What the devices have counted, read while the programs are attached: so those see no less.
	began, ended     deviceCounts
	opened, finished time.Time

	mu     sync.Mutex
	raw    ringbuf.Record
	joiner *joiner
	err    error

	stop context.CancelFunc
	done chan struct{}
}

// Open begins to follow the target's packets and hands a trace of each to onTrace, one at a time. A trace is valid
// during the call only.
func Open(ctx context.Context, options Options, onTrace func(*Trace)) (_ *Session, err error) {
	if options.Target.HostNetwork {
		return nil, fmt.Errorf("%s: %w", options.Target, ErrHostNetwork)
	}
	if options.RingBytes == 0 {
		options.RingBytes = 8 << 20
	}
	s := &Session{target: options.Target, path: options.Path, done: make(chan struct{})}
	if s.nics, err = s.target.NICs(options.NICs); err != nil {
		return nil, err
	}
	hostPath := s.nics[0].NetNSPath
	cookies := [2]uint64{}
	for i, path := range []string{s.target.NetNSPath, hostPath} {
		if cookies[i], err = container.NetNSCookie(path); err != nil {
			return nil, err
		}
	}
	if cookies[0] == cookies[1] {
		return nil, fmt.Errorf("%s: %w", options.Target, ErrHostNetwork)
	}
	s.devices = newDevices(s.target.NetNSPath, hostPath, s.nics)
	if err := s.devices.read(); err != nil {
		return nil, err
	}
	s.sharing = s.devices.shareNIC()
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.objects, err = load(cookies, s.nics, s.sharing, options.RingBytes); err != nil {
		return nil, err
	}
	if s.clock, err = newClock(s.objects.Variables["real_minus_mono_ns"]); err != nil {
		return nil, err
	}
	if s.stamps, err = holdStamps(); err != nil {
		return nil, err
	}
	if s.reader, err = ringbuf.NewReader(s.objects.Maps["results"]); err != nil {
		return nil, fmt.Errorf("reading the kernel's ring: %w", err)
	}
	s.joiner = newJoiner(s.devices, s.clock, s.path, onTrace)
	if s.links, err = attach(s.objects); err != nil {
		return nil, err
	}
	// Programs are attached one after the other: what is under way meanwhile has not passed all of them.
	s.joiner.sinceNS, s.opened = monotonicNS(), time.Now()
	if s.began, err = s.countDevices(); err != nil {
		return nil, err
	}
	ctx, s.stop = context.WithCancel(ctx)
	go s.drainRegularly(ctx)
	return s, nil
}

func (s *Session) drainRegularly(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Drain()
		}
	}
}

// Drain hands over what has been seen up to now.
func (s *Session) Drain() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = s.drain()
	}
	return s.err
}

func (s *Session) drain() error {
	if err := s.clock.update(); err != nil {
		return err
	}
	s.reader.SetDeadline(time.Unix(1, 0)) // what is there, without waiting for more
	for {
		err := s.reader.ReadInto(&s.raw)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.joiner.expire(monotonicNS())
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading traces: %w", err)
		}
		switch size := uintptr(len(s.raw.RawSample)); {
		case size >= unsafe.Sizeof(bpfHopsTrace{}):
			s.joiner.trace((*bpfHopsTrace)(unsafe.Pointer(&s.raw.RawSample[0])))
		case size >= unsafe.Sizeof(bpfHopsDelivery{}):
			s.joiner.delivery((*bpfHopsDelivery)(unsafe.Pointer(&s.raw.RawSample[0])))
		default:
			return fmt.Errorf("reading traces: one of %d bytes", size)
		}
	}
}

// Finish stops following and hands over all that is left: packets that no program has read, and those that left the
// container and went elsewhere. Account tells the counts then.
func (s *Session) Finish() error {
	if s.links == nil {
		return nil // it is finished
	}
	s.stop()
	<-s.done
	ended, countErr := s.countDevices()
	s.ended, s.finished = ended, time.Now()
	// In the same way they go: see sinceNS.
	s.joiner.untilNS = monotonicNS()
	s.detach()
	err := errors.Join(s.Drain(), countErr)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joiner.flush()
	if err != nil {
		return err
	}
	return s.unfinished()
}

// unfinished hands over the traces that are still under way.
func (s *Session) unfinished() error {
	var cursor ebpf.MapBatchCursor
	keys, slots := make([]uint32, 1024), make([]bpfTraceSlot, 1024)
	for {
		n, err := s.objects.Maps["egress_traces"].BatchLookup(&cursor, keys, slots, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("reading traces under way: %w", err)
		}
		for i := range slots[:n] {
			if slots[i].Slot.Key != 0 {
				slots[i].Trace.Status = statusUnfinished
				s.joiner.trace(&slots[i].Trace)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// Close detaches from the kernel. It may be called more than once.
func (s *Session) Close() error {
	s.stop()
	<-s.done
	s.release()
	return nil
}

func (s *Session) detach() {
	// Each detachment waits until no CPU runs the program: all together wait no longer than one.
	var wait sync.WaitGroup
	for _, l := range s.links {
		wait.Go(func() { l.Close() })
	}
	wait.Wait()
	s.links = nil
}

func (s *Session) release() {
	s.detach()
	if s.reader != nil {
		s.reader.Close()
	}
	if s.stamps != nil {
		s.stamps.release()
		s.stamps = nil
	}
	if s.objects != nil {
		s.objects.Close()
	}
}

// NICNames lists the outer devices.
func (s *Session) NICNames() []string {
	var names []string
	for _, nic := range s.nics {
		names = append(names, nic.Name)
	}
	return names
}

// MissingNIC returns the name of an outer device that has disappeared, or "".
func (s *Session) MissingNIC() string {
	for _, nic := range s.nics {
		if !nic.Exists() {
			return nic.Name
		}
	}
	return ""
}
