package prober

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// maxLost ends a round in which nothing comes back: a datagram here and there may be lost, not one after the other.
const maxLost = 10

// client is a connected socket and what it found out.
type client struct {
	options
	fd       int
	message  []byte
	reply    []byte
	sequence uint64
	sent     int64     // when the present message was, in ns since began
	began    time.Time // of the process's clock: time.Since reads only the monotonic one
}

// probe is one round.
func probe(o options) (*Result, error) {
	c := &client{options: o, message: make([]byte, o.size), reply: make([]byte, o.size), began: time.Now()}
	var sa unix.Sockaddr
	var err error
	if c.fd, sa, err = openSocket(o); err != nil {
		return nil, err
	}
	if o.udp {
		timeout := unix.NsecToTimeval(datagramPatience.Nanoseconds())
		err = unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	} else {
		err = errors.Join(unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
			// Without this a peer that has vanished is noticed after a quarter of an hour.
			unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(streamPatience.Milliseconds())))
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the socket: %w", err)
	}
	if err := unix.Connect(c.fd, sa); err != nil {
		return nil, fmt.Errorf("connecting to %s port %d: %w", o.addr, o.port, err)
	}
	// A timer may otherwise be 50 us late on purpose, to save wake-ups.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("asking for exact timers: %w", err)
	}
	if o.warmup > 0 {
		if err := c.loop(o.warmup, &Result{Histogram: newHistogram()}); err != nil {
			return nil, err
		}
	}
	before := readUsage()
	result := &Result{Histogram: newHistogram()}
	if err := c.loop(o.duration, result); err != nil {
		return nil, err
	}
	result.Usage = readUsage().since(before)
	return result, nil
}

// loop probes for d. The next message leaves when it is due or, where the last one was slow or no rate is set, when the
// last one is back.
func (c *client) loop(d time.Duration, result *Result) error {
	start := c.now()
	end := start + d.Nanoseconds()
	interval := int64(0)
	if c.rate > 0 {
		interval = int64(time.Second) / int64(c.rate)
	}
	due, last, lost := start, start, 0
	for {
		if interval > 0 {
			if c.now() > due {
				result.Late++
			}
			c.sleepUntil(min(due, end))
			due += interval
		}
		c.sequence++
		binary.LittleEndian.PutUint64(c.message, c.sequence)
		c.sent = c.now()
		if c.sent >= end {
			break
		}
		err := c.exchange()
		last = c.now()
		if errors.Is(err, errTimeout) {
			result.Lost++
			if lost++; lost < maxLost && c.udp {
				continue
			}
			return fmt.Errorf("no reply from %s port %d: %d messages in a row without one", c.addr, c.port, lost)
		}
		if err != nil {
			return fmt.Errorf("exchanging messages with %s port %d: %w", c.addr, c.port, err)
		}
		lost = 0
		result.Messages++
		result.SumNS += last - c.sent
		if err := result.Histogram.RecordValue(last - c.sent); err != nil {
			return err
		}
	}
	result.WallNS = last - start
	return nil
}

// exchange sends the message and waits for its echo. Late echoes of messages given up before are skipped.
func (c *client) exchange() error {
	if err := writeFull(c.fd, c.message); err != nil {
		return err
	}
	for {
		if c.udp {
			n, err := readSome(c.fd, c.reply, c.isOver)
			if err != nil {
				return err
			}
			if n != len(c.reply) {
				return fmt.Errorf("a reply of %d bytes to a message of %d", n, len(c.message))
			}
		} else if err := readFull(c.fd, c.reply); err != nil {
			return err
		}
		got := binary.LittleEndian.Uint64(c.reply)
		if got == c.sequence {
			return nil
		}
		if !c.udp || got > c.sequence {
			return fmt.Errorf("reply %d to message %d: this is no echo server", got, c.sequence)
		}
	}
}

// isOver reports whether the present message was given its time.
func (c *client) isOver() bool { return c.now()-c.sent > datagramPatience.Nanoseconds() }

func (c *client) now() int64 { return int64(time.Since(c.began)) }

// sleepUntil sleeps in the kernel, and not in Go's scheduler, which would wake another thread up.
func (c *client) sleepUntil(due int64) {
	for {
		wait := due - c.now()
		if wait <= 0 {
			return
		}
		duration := unix.NsecToTimespec(wait)
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&duration)), 0, 0)
	}
}

// newHistogram is load's: 1 ns to 100 s in three digits.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(100*time.Second), 3)
}
