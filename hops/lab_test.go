package hops_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"tare/container"
	"tare/hops"
	"tare/lab"
	"tare/mace"
	"tare/mace/macetest"
)

// These tests need root, and fail without it.
func TestMain(m *testing.M) {
	macetest.Main()
	removeStaleLabs()
	os.Exit(m.Run())
}

// Labs carry the pid of their test, so that the next run removes what a killed one left.
const labPattern = "hops-test-%d-%d"

var labs int

func removeStaleLabs() {
	names, _ := lab.List()
	for _, name := range names {
		var pid, n int
		if _, err := fmt.Sscanf(name, labPattern, &pid, &n); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); errors.Is(err, os.ErrNotExist) {
			_, _ = lab.Down(name)
		}
	}
}

// up makes a lab that ends with the test.
func up(t *testing.T, options lab.Options) *lab.Lab {
	t.Helper()
	labs++
	options.Name = fmt.Sprintf(labPattern, os.Getpid(), labs)
	l, err := lab.Up(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob("/run/netns/tare-" + l.Name() + "-*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return l
}

// watched is a session on a lab's first container, with all that it tells.
type watched struct {
	t         *testing.T
	l         *lab.Lab
	session   *hops.Session
	waterfall *hops.Waterfall

	mu     sync.Mutex
	traces []hops.Trace
}

func path(t *testing.T, name string) mace.Path {
	t.Helper()
	p, err := mace.ParsePath(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func target(t *testing.T, l *lab.Lab) container.Target {
	t.Helper()
	found, err := container.FromNetNS(l.NetNSPath(lab.Container(1)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// watch begins to follow the packets of the lab's first container.
func watch(t *testing.T, l *lab.Lab, pathName string) *watched {
	t.Helper()
	w := &watched{t: t, l: l, waterfall: hops.NewWaterfall(path(t, pathName))}
	var err error
	w.session, err = hops.Open(context.Background(), hops.Options{Target: target(t, l), Path: path(t, pathName)}, func(trace *hops.Trace) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waterfall.Add(trace)
		kept := *trace
		kept.Points = slices.Clone(trace.Points)
		w.traces = append(w.traces, kept)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.session.Close() })
	return w
}

// finish ends it and checks what must be true of any traffic.
func (w *watched) finish() *hops.Report {
	w.t.Helper()
	if err := w.session.Finish(); err != nil {
		w.t.Fatal(err)
	}
	r, err := w.session.Report(w.waterfall, "")
	if err != nil {
		w.t.Fatal(err)
	}
	exact(w.t, r)
	for i := range w.traces {
		w.sane(&w.traces[i])
	}
	if r.Account.RingDropped > 0 {
		w.t.Errorf("%d traces lost", r.Account.RingDropped)
	}
	return r
}

// exact checks that hops add up to the correction, to the ns.
func exact(t *testing.T, r *hops.Report) {
	t.Helper()
	for name, s := range map[string]hops.Summary{"egress": r.Egress, "ingress": r.Ingress} {
		sum, means := int64(0), 0.0
		for _, h := range s.Hops {
			sum += h.InsideSumNS
			means += h.InsideMeanNS
		}
		if sum != s.CorrectionSumNS {
			t.Errorf("%s: hops add up to %d ns, and the correction of %d packets is %d", name, sum, s.Packets, s.CorrectionSumNS)
		}
		if off := means - s.Correction.MeanNS; off > 0.01 || off < -0.01 {
			t.Errorf("%s: mean hops add up to %f ns, and the mean correction is %f", name, means, s.Correction.MeanNS)
		}
	}
}

// sane checks one trace: its hops lie end to end, and between the path's ends add up to the correction.
func (w *watched) sane(t *hops.Trace) {
	w.t.Helper()
	if t.Incomplete != "" {
		return
	}
	sum := int64(0)
	for i := t.From + 1; i <= t.To; i++ {
		sum += t.Points[i].TimeNS - t.Points[i-1].TimeNS
	}
	if sum != t.CorrectionNS() {
		w.t.Errorf("hops of a packet add up to %d ns, and its correction is %d", sum, t.CorrectionNS())
	}
	for i := 1; i < len(t.Points); i++ {
		// A stamp comes from another clock, and is good for a few dozen ns.
		slack := int64(0)
		if t.Points[i].Event == hops.Stamp || t.Points[i-1].Event == hops.Stamp {
			slack = 1000
		}
		if t.Points[i].TimeNS < t.Points[i-1].TimeNS-slack {
			w.t.Errorf("%s is %d ns before %s", t.Points[i], t.Points[i-1].TimeNS-t.Points[i].TimeNS, t.Points[i-1])
		}
	}
}

// missing is how many packets of the container the kernel has kept from the programs, in each direction.
func missing(a hops.Account) (tx, rx int) {
	return max(0, int(a.CountedTx)-int(a.DeviceTx)), max(0, int(a.CountedRx)-int(a.DeviceRx))
}

// complete counts the complete traces of a protocol in a direction, and those that a program has read.
func (w *watched) complete(direction hops.Direction, protocol string) (all, read int) {
	for i := range w.traces {
		t := &w.traces[i]
		if t.Direction == direction && shown(&t.Packet) == protocol && t.Incomplete == "" {
			all++
			if t.Read {
				read++
			}
		}
	}
	return all, read
}

// shown is a packet's protocol, and whether it is of IPv6.
func shown(p *mace.Packet) string {
	name := p.ProtocolName()
	if p.Src.Is6() && name != "icmp6" {
		name += "6"
	}
	return name
}

// names lists the hops of the packets' commonest way, with the devices that they lead to.
func names(s hops.Summary) (list []string) {
	for _, h := range s.Hops {
		if h.Packets*2 > s.Packets {
			name := h.Name
			if name == "" {
				name = h.From + " → " + h.To
			}
			list = append(list, name+" "+h.Device)
		}
	}
	return list
}

func remote(l *lab.Lab, v6 bool, port uint16) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(l.RemoteAddr6(), port)
	}
	return netip.AddrPortFrom(l.RemoteAddr4(), port)
}

func echo(t *testing.T, l *lab.Lab) *macetest.Echo {
	t.Helper()
	server, err := macetest.StartEcho(l, lab.Remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// exchange runs a client in the first container from beginning to end.
func exchange(t *testing.T, l *lab.Lab, c macetest.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := macetest.Start(ctx, l, lab.Container(1), c)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Replies) != c.Requests {
		t.Fatalf("%d of %d requests were answered: the lab's network is broken", len(result.Replies), c.Requests)
	}
}

// command runs a command in the lab's host.
func command(t *testing.T, l *lab.Lab, host string, argv ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if out, err := l.Command(ctx, host, argv...).CombinedOutput(); err != nil {
		t.Fatalf("%v in %s: %v\n%s", argv, host, err, out)
	}
}
