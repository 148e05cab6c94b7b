package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Bounds of a load's time.
const (
	DefaultLoadTime = 60 * time.Second
	MaxLoadTime     = time.Hour
	maxFloods       = 256
	maxUDPMbits     = 1000
)

// Background is traffic that runs beside a measurement. Container 1 is left to the measurement: traffic comes from
// the others where there are others.
type Background struct {
	// Floods is a number of flood pings (ping -f of iputils) to the remote host, spread over the containers and
	// pinned to one CPU each in turn, as the MACE paper does (section 4.1).
	Floods int
	TCP    bool // one bulk stream from a container to the remote host
	UDP    bool // small datagrams from a container to the remote host, as fast as they can be sent
	// UDPMbits is a steady stream of datagrams from a container to the remote host, in Mbit/s of payload; 0: none.
	UDPMbits int

	LocalICMP bool // flood ping from container to container
	LocalUDP  bool // small datagrams from container to container
	LocalTCP  bool // one bulk stream from container to container

	// For bounds the load's life, 60 s if it is 0. It holds even if the program that started it is killed.
	For time.Duration
}

// Check says what is wrong with the traffic on a lab of so many containers, as an ErrInvalid; nil if nothing is.
func (b Background) Check(containers int) error {
	switch {
	case b.Floods < 0 || b.Floods > maxFloods:
		return fmt.Errorf("%w: %d flood pings: 0 to %d are possible", ErrInvalid, b.Floods, maxFloods)
	case b.UDPMbits < 0 || b.UDPMbits > maxUDPMbits:
		return fmt.Errorf("%w: a stream of %d Mbit/s: 0 to %d are possible", ErrInvalid, b.UDPMbits, maxUDPMbits)
	case b.For < 0 || b.For > MaxLoadTime:
		return fmt.Errorf("%w: background traffic for %s: up to %s is possible", ErrInvalid, b.For, MaxLoadTime)
	case (b.LocalICMP || b.LocalUDP || b.LocalTCP) && containers < 2:
		return fmt.Errorf("%w: traffic between containers needs a lab with 2 of them or more", ErrInvalid)
	case b.Floods == 0 && !b.TCP && !b.UDP && b.UDPMbits == 0 && !b.LocalICMP && !b.LocalUDP && !b.LocalTCP:
		return fmt.Errorf("%w: no background traffic is asked for: use floods, tcp, udp, local-icmp, local-udp or local-tcp", ErrInvalid)
	}
	return nil
}

// Load is background traffic that is running.
type Load struct {
	lab      *Lab
	bound    time.Duration
	deadline time.Time // one for all, so that the first to end at it is no failure to the next

	starts  chan startRequest // to the keeper
	stop    chan struct{}     // closed by Stop
	done    chan struct{}     // closed when every process has ended and the state file says so
	once    sync.Once
	running sync.WaitGroup

	mu        sync.Mutex
	processes []Process
	failures  []error
}

// StartBackground starts traffic and returns when every process of it runs. It ends by Stop, with ctx, after its time, with the
// lab, or when the calling process dies, whichever is first.
func (l *Lab) StartBackground(ctx context.Context, background Background) (*Load, error) {
	if err := background.Check(l.Containers()); err != nil {
		return nil, err
	}
	load := &Load{lab: l, bound: background.For, starts: make(chan startRequest), stop: make(chan struct{}), done: make(chan struct{})}
	if load.bound == 0 {
		load.bound = DefaultLoadTime
	}
	load.deadline = time.Now().Add(load.bound)
	go load.keeper()
	err := load.startAll(ctx, background)
	if err == nil {
		err = load.record()
	}
	go load.supervise(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting background traffic in lab %q: %w", l.Name(), err), load.Stop())
	}
	return load, nil
}

// Processes returns what was started.
func (ld *Load) Processes() []Process {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	return append([]Process(nil), ld.processes...)
}

// Done is closed when all traffic has ended.
func (ld *Load) Done() <-chan struct{} { return ld.done }

// Stop ends the traffic and waits for its end. It returns what went wrong on the way: processes that
// ended by themselves before their time.
func (ld *Load) Stop() error {
	ld.once.Do(func() { close(ld.stop) })
	<-ld.done
	ld.mu.Lock()
	defer ld.mu.Unlock()
	return errors.Join(ld.failures...)
}

// wait reaps a process and notes if it ended by itself before its time.
func (ld *Load) wait(process Process, cmd *exec.Cmd, stderr *bytes.Buffer) {
	defer ld.running.Done()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	bound := time.NewTimer(time.Until(ld.deadline))
	defer bound.Stop()
	select {
	case err := <-ended:
		if !ld.over() {
			ld.fail(fmt.Errorf("%s in %s ended early (%v) %s", process.Command, process.Host, err, lastLine(stderr.String())))
		}
		return
	case <-bound.C:
	case <-ld.stop:
	}
	_ = cmd.Process.Kill() // os.Process knows whether it has been reaped: never somebody else's pid
	<-ended
}

// over tells whether processes may end.
func (ld *Load) over() bool {
	select {
	case <-ld.stop:
		return true
	default:
		return !time.Now().Before(ld.deadline)
	}
}

func (ld *Load) fail(err error) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.failures = append(ld.failures, err)
}

// supervise ends the load with its context and takes it out of the state file.
func (ld *Load) supervise(ctx context.Context) {
	all := make(chan struct{})
	go func() {
		ld.running.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-ctx.Done():
		ld.once.Do(func() { close(ld.stop) })
		<-all
	}
	err := ld.forget()
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrBusy):
		// The lab is gone or going, and the list with it. That its processes were killed is as it should be.
		ld.mu.Lock()
		ld.failures = nil
		ld.mu.Unlock()
	case err != nil:
		ld.fail(err)
	}
	close(ld.done)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
