package mace_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// The programs must know of every packet whether the socket that got it takes its time from the kernel's stamp.
func TestKernelStamps(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range []string{"bare-metal", "wire"} {
		engine := open(t, l, path)
		for _, protocol := range []string{"raw", "ping", "udp", "tcp"} {
			for _, stamp := range slices.Sorted(maps.Keys(macetest.Stamps)) {
				run(t, path+"/"+protocol+"/"+stamp, func(t *testing.T) {
					w := activate(t, engine, l, "c1")
					c := macetest.Client{Protocol: protocol, Remote: remote(l, false, server.Port), Requests: 10, Stamp: stamp}
					result := exchange(t, l, "c1", c)
					w.finish()
					w.stamped(c, result, macetest.Stamped[stamp])
				})
			}
		}
		engine.Close()
	}
}

// complete begins the attempt anew unless all packets were seen.
func (w *watch) complete() {
	w.t.Helper()
	if w.missing.total() > 0 {
		w.abandon()
	}
}

// stamped checks what is said of the answers' sockets against what those were told.
func (w *watch) stamped(c macetest.Client, result macetest.Result, want bool) {
	w.t.Helper()
	w.complete() // one by one, answers are compared with what the program got
	var answers []*mace.Passage
	for i := range w.passages {
		if p := &w.passages[i]; p.Direction == mace.Ingress && answer(c, p) {
			answers = append(answers, p)
		}
	}
	if len(answers) != c.Requests {
		w.t.Fatalf("%d answers to %d requests", len(answers), c.Requests)
	}
	for i, p := range answers {
		if !p.Delivered || p.KernelStamp != want {
			w.t.Fatalf("answer %d: delivered %t, with the kernel's stamp %t; want %t", i, p.Delivered, p.KernelStamp, want)
		}
		if p.Status == mace.Ambiguous && want && c.Protocol == "tcp" {
			// TCP leaves the time at which a segment is to depart where the stamp will be, and between devices of one
			// host it stays there: the stamp is made only when the segment has passed all that the engine sees.
			continue
		}
		if p.Status != mace.Matched {
			w.t.Fatalf("answer %d is %s", i, p.Status)
		}
		// The clocks' difference is measured to some 20 ns, and SO_TIMESTAMP cuts off to whole microseconds.
		stamp := result.Replies[i].StampNS
		if stamp == 0 == want {
			w.t.Fatalf("the program was given the stamp %d", stamp)
		}
		if off := p.InnerNS - (stamp - realMinusMonotonic()); want && (off < -1000 || off > 2000) {
			w.t.Fatalf("answer %d ends %d ns after the time that the program was given", i, off)
		}
	}
}

// realMinusMonotonic is the distance of the clocks that stamps and programs use.
func realMinusMonotonic() int64 {
	best, distance := int64(1<<62), int64(0)
	for range 32 {
		var before, real, after unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
		_ = unix.ClockGettime(unix.CLOCK_REALTIME, &real)
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
		if width := after.Nano() - before.Nano(); width < best {
			best, distance = width, real.Nano()-before.Nano()-width/2
		}
	}
	return distance
}

// The socket's state counts, not how it came about.
func TestStampsOfSocketsFromElsewhere(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	engine := open(t, l, "wire")
	for _, protocol := range []string{"raw", "udp"} {
		c := macetest.Client{Protocol: protocol, Remote: remote(l, false, server.Port), Requests: 10, Stamp: "SO_TIMESTAMP"}

		run(t, protocol+"/opened before activation", func(t *testing.T) {
			p := client(t, l, "c1", c)
			w := activate(t, engine, l, "c1")
			w.stamped(c, func() macetest.Result { r := finish(t, p, c); w.finish(); return r }(), true)
		})

		run(t, protocol+"/handed over by another process", func(t *testing.T) {
			w := activate(t, engine, l, "c1")
			passed := c
			passed.Inherited = true
			socket := connected(t, l, passed)
			w.stamped(passed, func() macetest.Result {
				r := finish(t, client(t, l, "c1", passed, socket), passed)
				w.finish()
				return r
			}(), true)
		})

		// A call by io_uring has the ring as its argument, not the socket. Where the socket is not known, neither is
		// where its time ends.
		run(t, protocol+"/io_uring", func(t *testing.T) {
			w := activate(t, engine, l, "c1")
			ring := c
			ring.Receive = "io_uring recvmsg"
			exchange(t, l, "c1", ring)
			w.finish()
			for i := range w.passages {
				if p := &w.passages[i]; p.Direction == mace.Ingress && answer(ring, p) && p.Status == mace.Matched && !p.KernelStamp {
					t.Fatalf("passes for one without the kernel's stamp: %+v", *p)
				}
			}
		})
	}
}

// connected opens a client's socket in c1, in this process.
func connected(t *testing.T, l *lab.Lab, c macetest.Client) *os.File {
	t.Helper()
	var fd int
	err := l.Do("c1", func() (err error) {
		if c.Protocol == "raw" {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		} else {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		if err := macetest.SetStamp(fd, c.Stamp); err != nil {
			return err
		}
		return unix.Connect(fd, &unix.SockaddrInet4{Addr: c.Remote.Addr().As4(), Port: int(c.Remote.Port())})
	})
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { file.Close() })
	return file
}
