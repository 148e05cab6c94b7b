// Package subtract runs a measurement tool in a container and takes what the container's network adds out of what the
// tool shows: it brings together the target (container), the engine (mace) and the tool's text (tool).
package subtract

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tare/container"
	"tare/mace"
)

// Options say what a session watches, and how.
type Options struct {
	Target container.Target
	Path   mace.Path
	NICs   []string // names; none: found out
	// RingBytes and Aggregates are as in mace.Options.
	RingBytes  int
	Aggregates bool
	// BlindPID is as in mace.Options, for tests.
	BlindPID int
}

// drainEvery is how often the ring is read when nobody asks. A ring of 8 MiB holds 40,000 records: this keeps up with
// 2 million packets per second.
const drainEvery = 20 * time.Millisecond

// Session watches one target. Close ends it and leaves nothing in the kernel.
type Session struct {
	target container.Target
	nics   []container.NIC
	engine *mace.Engine
	ns     *mace.Namespace
	// Whether the programs see packets arrive at the container's devices, so that their counts can be compared.
	rxCounts bool
	xdp      bool // one of the container's devices has an XDP program, which counts on its own

	auditMu sync.Mutex
	auditor *auditor

	mu        sync.Mutex
	joiner    *mace.Joiner
	onPassage func(*mace.Passage)
	err       error // of the first drain that failed

	stop   context.CancelFunc
	done   chan struct{}
	audits sync.WaitGroup
}

// ErrHostNetwork says that the target shares the host's network, so nothing is added.
var ErrHostNetwork = errors.New("it shares the host's network: nothing is added, so there is nothing to subtract")

// Open attaches the path to the target and begins to hand its passages to onPassage, one at a time.
func Open(ctx context.Context, options Options, onPassage func(*mace.Passage)) (_ *Session, err error) {
	if options.Target.HostNetwork && options.Path.Name != "wire" && options.Path.Name != "syscalls" {
		return nil, fmt.Errorf("%s: %w; --as wire gives the RTT at the NIC", options.Target, ErrHostNetwork)
	}
	s := &Session{target: options.Target, onPassage: onPassage, done: make(chan struct{})}
	if s.nics, err = options.Target.NICs(options.NICs); err != nil {
		return nil, err
	}
	cookie, err := container.NetNSCookie(options.Target.NetNSPath)
	if err != nil {
		return nil, err
	}
	hostCookie, err := container.NetNSCookie(s.nics[0].NetNSPath)
	if err != nil {
		return nil, err
	}
	devices, err := container.Devices(options.Target.NetNSPath)
	if err != nil {
		return nil, err
	}
	engine := mace.Options{Path: options.Path, RingBytes: options.RingBytes, Aggregates: options.Aggregates,
		BlindPID: options.BlindPID}
	for _, device := range devices {
		s.xdp = s.xdp || device.XDP
		engine.NICDelivers = engine.NICDelivers || device.SharesNIC
	}
	engine.IdentityKeys = s.xdp
	for _, nic := range s.nics {
		engine.NICs = append(engine.NICs, mace.Device{NetNSCookie: hostCookie, Index: nic.Index, Name: nic.Name})
	}
	s.rxCounts = !engine.NICDelivers
	if s.engine, err = mace.Open(engine); err != nil {
		return nil, err
	}
	if s.ns, err = s.engine.Activate(cookie); err != nil {
		s.engine.Close()
		return nil, err
	}
	if s.auditor, err = newAuditor(s); err != nil {
		s.engine.Close()
		return nil, err
	}
	s.joiner = s.engine.NewJoiner(func(p *mace.Passage) { s.onPassage(p) })
	ctx, s.stop = context.WithCancel(ctx)
	go s.drainRegularly(ctx)
	s.audits.Go(func() { s.auditRegularly(ctx.Done()) })
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
		s.err = s.ns.Drain(s.joiner.Add)
	}
	return s.err
}

// Finish hands over everything that is left, packets that no program has read included. The counts may still be read.
func (s *Session) Finish() error {
	s.stop()
	<-s.done
	s.audits.Wait()
	err := s.Drain()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joiner.Flush()
	return err
}

// Close detaches from the kernel.
func (s *Session) Close() error {
	s.stop()
	<-s.done
	s.audits.Wait()
	s.auditor.counter.close()
	return s.engine.Close()
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

// Engine is the session's engine, for its costs and counts.
func (s *Session) Engine() *mace.Engine { return s.engine }

// Counters are the target's.
func (s *Session) Counters() (mace.Counters, error) { return s.ns.Counters() }

// Aggregates are the target's.
func (s *Session) Aggregates() (egress, ingress mace.Aggregate, err error) { return s.ns.Aggregates() }
