package hops

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// clock knows how far CLOCK_REALTIME, in which the kernel stamps packets, is ahead of CLOCK_MONOTONIC, in which
// programs measure.
type clock struct {
	shared *ebpf.Variable // real_minus_mono_ns in the programs
	ahead  atomic.Int64
}

func newClock(shared *ebpf.Variable) (*clock, error) {
	c := &clock{shared: shared}
	return c, c.update()
}

// update measures the difference by the tightest of a few readings, which is good for some 20 ns.
func (c *clock) update() error {
	best, ahead := int64(1<<62), int64(0)
	for range 16 {
		var real unix.Timespec
		before := monotonicNS()
		unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		if width := monotonicNS() - before; width < best {
			best, ahead = width, real.Nano()-before-width/2
		}
	}
	// A change below the reading's own error would only make stamps jitter.
	if old := c.ahead.Load(); ahead-old < 200 && old-ahead < 200 {
		return nil
	}
	c.ahead.Store(ahead)
	if err := c.shared.Set(ahead); err != nil {
		return fmt.Errorf("telling eBPF programs the clocks' difference: %w", err)
	}
	return nil
}

func (c *clock) monotonic(realNS uint64) int64 { return int64(realNS) - c.ahead.Load() }

func (c *clock) wall(monotonicNS int64) time.Time { return time.Unix(0, monotonicNS+c.ahead.Load()) }

func monotonicNS() int64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// stampHolder keeps the kernel stamping received packets, which it does only while some socket asks for it.
type stampHolder struct{ fd int }

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
