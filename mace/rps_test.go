package mace_test

import (
	"strconv"
	"testing"
	"time"

	"tare/lab"
	"tare/mace"
)

// With RPS a packet may be handled on top of any process, PID 1 too, where some kernels run no eBPF program. What is
// missing then must be known by the devices' own counts, in each direction and at either end.
func TestBlindness(t *testing.T) {
	const pings = 5000
	l := up(t, lab.Options{RPS: true})
	tap := tapNIC(t, l)
	for _, path := range []string{"inner-dev", "max-dev"} {
		for _, blind := range []bool{false, true} {
			name := path + map[bool]string{false: "/of this kernel, if at all", true: "/of all kernels"}[blind]
			t.Run(name, func(t *testing.T) {
				w := activate(t, open(t, l, path, roomy, func(o *mace.Options) {
					if blind {
						o.BlindPID = blindWhile(t, time.Millisecond)
					}
				}), l, "c1")
				command(t, l, "c1", "ping", "-q", "-f", "-c", strconv.Itoa(pings), "-W", "2", l.RemoteAddr4().String())
				w.settle() // compares: nothing was seen that is not there
				w.joiner.Flush()
				w.account()
				tap.confirm(w)
				if blind && w.missing.total() == 0 {
					t.Errorf("programs that do nothing half of the time have seen all packets: %+v", w.there)
				}
				// Every answer is matched, or missing from the records and known to be missing, or is one whose start is.
				tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return p.EchoReply() })
				if answers := tally[mace.Matched] + tally[mace.Unstarted]; answers+int(w.missing.containerRx) < pings {
					t.Errorf("%d pings: %d answers, and unseen are %+v", pings, answers, w.missing)
				}
				if tally[mace.Unstarted] > int(w.missing.nicRx) {
					t.Errorf("%d answers without a start, and at the NIC only %d went unseen", tally[mace.Unstarted], w.missing.nicRx)
				}
				t.Logf("unseen: %+v of %+v, %d without a start", w.missing, w.there, tally[mace.Unstarted])
			})
		}
	}
}
