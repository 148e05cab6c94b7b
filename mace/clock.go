package mace

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// clock knows how far CLOCK_REALTIME, in which the kernel stamps packets, is ahead of CLOCK_MONOTONIC, in which eBPF
// programs measure. NTP slews both alike, so only a clock that is set changes the difference.
type clock struct {
	shared *ebpf.Variable // real_minus_mono_ns in the programs
	ahead  atomic.Int64
}

func newClock(shared *ebpf.Variable) (*clock, error) {
	c := &clock{shared: shared}
	return c, c.update()
}

// update measures the difference anew. The middle one of three readings that lie closest together is off by some
// 20 ns at most, unless the thread is interrupted each time.
func (c *clock) update() error {
	best := int64(1 << 62)
	var ahead int64
	for range 16 {
		var before, real, after unix.Timespec
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
		unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
		width := after.Nano() - before.Nano()
		if width < best {
			best = width
			ahead = real.Nano() - before.Nano() - width/2
		}
	}
	// A change below the reading's own error would only make the programs' differences jitter.
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

// wall turns a monotonic time into the time of day.
func (c *clock) wall(monotonicNS uint64) time.Time {
	return time.Unix(0, int64(monotonicNS)+c.ahead.Load())
}
