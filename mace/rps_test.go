package mace_test

import (
	"strconv"
	"testing"

	"tare/lab"
	"tare/mace"
)

// With RPS a packet may be handled on top of PID 1, where some kernels run no eBPF program. What is missing then must
// be known: by the devices' own counts.
func TestRPS(t *testing.T) {
	const pings = 10000
	l := up(t, lab.Options{RPS: true})
	tap := tapNIC(t, l)
	for _, path := range []string{"inner-dev", "max-dev"} {
		t.Run(path, func(t *testing.T) {
			w := activate(t, open(t, l, path, roomy), l, "c1")
			w.inexactTx, w.inexactRx = "RPS", "RPS"
			command(t, l, "c1", "ping", "-q", "-f", "-c", strconv.Itoa(pings), "-W", "2", l.RemoteAddr4().String())
			w.finish()
			tap.confirm(w)
			c := w.counts
			if c.DeviceTx > w.deviceTx || c.DeviceRx > w.deviceRx {
				t.Errorf("more was seen than there was: %d of %d out, %d of %d in", c.DeviceTx, w.deviceTx, c.DeviceRx, w.deviceRx)
			}
			// Sent by ping, thus never on top of another process.
			if c.DeviceTx != w.deviceTx {
				t.Errorf("%d of %d packets out were seen", c.DeviceTx, w.deviceTx)
			}
			// Every answer is matched, or missing from the records and known to be missing, or is one whose start is.
			missing := w.deviceRx - c.DeviceRx
			tally := w.tally(mace.Ingress, func(p *mace.Passage) bool { return p.EchoReply() })
			answers := uint64(tally[mace.Matched] + tally[mace.Unstarted])
			if answers+missing < pings {
				t.Errorf("%d pings: %d answers and %d known to be missing", pings, answers, missing)
			}
			t.Logf("missing: %d of %d in, %d without a start", missing, w.deviceRx, tally[mace.Unstarted])
		})
	}
}
