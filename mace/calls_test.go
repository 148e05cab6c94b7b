package mace_test

import (
	"maps"
	"slices"
	"testing"

	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// syscallPaths begin and end at system calls.
var syscallPaths = []string{"syscalls", "wire"}

func TestEveryWayToSend(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range syscallPaths {
		engine := open(t, l, path)
		for _, protocol := range []string{"udp", "tcp", "raw"} {
			for _, call := range slices.Sorted(maps.Keys(macetest.Senders)) {
				run(t, path+"/"+protocol+"/"+call, func(t *testing.T) {
					w := activate(t, engine, l, "c1")
					c := macetest.Client{Protocol: protocol, Remote: remote(l, false, server.Port), Requests: 10, Send: call}
					exchange(t, l, "c1", c)
					w.finish()
					want := mace.Matched
					if call == "io_uring send by a worker" {
						want = mace.NoSyscall // which is so: no thread is in a call while it is sent
					}
					tally := w.tally(mace.Egress, func(p *mace.Passage) bool { return question(c, p) })
					if !near(tally[want], c.Requests, w.missing.out()) || len(tally) > 1 {
						t.Errorf("%d requests, %+v unseen, want them %s, and they are %v", c.Requests, w.missing, want, tally)
					}
				})
			}
		}
		engine.Close()
	}
}

func TestEveryWayToReceive(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range syscallPaths {
		engine := open(t, l, path)
		for _, protocol := range []string{"udp", "tcp", "raw"} {
			for _, call := range slices.Sorted(maps.Keys(macetest.Receivers)) {
				run(t, path+"/"+protocol+"/"+call, func(t *testing.T) {
					w := activate(t, engine, l, "c1")
					c := macetest.Client{Protocol: protocol, Remote: remote(l, false, server.Port), Requests: 10, Receive: call}
					result := exchange(t, l, "c1", c)
					w.finish()
					w.answered(c, result)
				})
			}
		}
		engine.Close()
	}
}

// What is already there is read without waiting, many packets by one call.
func TestBatches(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	engine := open(t, l, "syscalls")
	for _, tt := range []struct {
		name           string
		protocol       string
		batch          int
		matched, spare int // answers
	}{
		{"udp", "udp", 8, 8, 0},
		{"raw", "raw", 8, 8, 0},
		{"as many as are followed", "raw", 16, 16, 0},
	} {
		run(t, tt.name, func(t *testing.T) {
			w := activate(t, engine, l, "c1")
			c := macetest.Client{Protocol: tt.protocol, Remote: remote(l, false, server.Port), Requests: tt.batch * 5,
				Batch: tt.batch, Send: "sendmmsg", Receive: "recvmmsg"}
			result := exchange(t, l, "c1", c)
			w.finish()
			if tt.protocol == "udp" {
				// Which request an answer is to is not known, but its way is.
				tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return answer(c, p) })
				forgive(c, mace.Ingress, tally)
				if !near(tally[mace.Matched], c.Requests, w.missing.in()) {
					t.Errorf("%d requests, %+v unseen, and their answers are %v", c.Requests, w.missing, tally)
				}
				return
			}
			w.answered(c, result)
			if w.counts.PendingOverflow != 0 {
				t.Errorf("%d packets were too many for their call", w.counts.PendingOverflow)
			}
		})
	}
}

// A packet that is read twice has passed once.
func TestPeek(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range []string{"bare-metal", "syscalls", "wire"} {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 10, Peek: true}
			result := exchange(t, l, "c1", c)
			w.finish()
			w.answered(c, result)
			w.aggregatesAgree()
		})
	}
}

// A program may read when it likes. Until then the packet is in the container, and the records and the aggregates
// must agree on how long.
func TestLateReader(t *testing.T) {
	l := up(t, lab.Options{})
	server := echo(t, l, lab.Remote)
	for _, path := range []string{"syscalls", "wire", "bare-metal"} {
		run(t, path, func(t *testing.T) {
			w := activate(t, open(t, l, path), l, "c1")
			w.patience = 2 * macetest.LateBy
			c := macetest.Client{Protocol: "raw", Remote: remote(l, false, server.Port), Requests: 1, Late: true}
			result := exchange(t, l, "c1", c)
			w.finish()
			w.answered(c, result)
			w.aggregatesAgree()
		})
	}
}
