package load_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"tare/bench/arm"
	"tare/bench/load"
	"tare/bench/load/prober"
	"tare/container/containertest"
)

func TestMain(m *testing.M) {
	prober.RunIfAsked()
	os.Exit(containertest.Main(m))
}

// up makes an arm's link, pinned to two CPUs where there are two.
func up(t *testing.T, name string, change func(*arm.Options)) *arm.Link {
	t.Helper()
	a, err := arm.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(t.Context()); err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	o := arm.Options{ClientCPU: 0, ServerCPU: arm.Unpinned, SoftirqCPU: arm.Unpinned, Port: 21111}
	if change != nil {
		change(&o)
	}
	link, err := a.Up(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %s", name, err)
	}
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Errorf("closing %s: %s", name, err)
		}
	})
	return link
}

// round runs one round of a workload on a link, and fails the test where a check of the round did.
func round(t *testing.T, link *arm.Link, workload string, p load.Params, d time.Duration) load.Sample {
	t.Helper()
	w, err := load.Find(workload)
	if err != nil {
		t.Fatal(err)
	}
	p.Port = 21111
	session, err := w.Start(t.Context(), link, p)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Warm(t.Context()); err != nil {
		t.Fatalf("warming up: %s", err)
	}
	sample, err := session.Round(t.Context(), d)
	// sockperf does not count its first 400 ms, and a busy machine may leave it nothing to count.
	for range 5 {
		if err == nil || !strings.Contains(err.Error(), "No valid observations") {
			break
		}
		sample, err = session.Round(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := sample.Failed(); err != nil {
		t.Errorf("%s over %v: %s", workload, link.Describe, err)
	}
	return sample
}

const short = 200 * time.Millisecond

func TestArms(t *testing.T) {
	for _, name := range []string{"loopback", "loopback-netns", "veth", "bridge", "bridge-nat", "macvlan", "vxlan"} {
		t.Run(name, func(t *testing.T) {
			link := up(t, name, nil)
			for _, workload := range []string{"tcp", "udp", "icmp"} {
				s := round(t, link, workload, load.Params{}, short)
				t.Logf("%s: %d messages, p50 %d ns, %v", workload, s.Messages, s.RTT.ValueAtQuantile(50), s.Host)
				if s.Messages == 0 || !s.Host.Client.Known {
					t.Errorf("%s: %+v", workload, s)
				}
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	link := up(t, "bridge", nil)
	for _, w := range load.All() {
		t.Run(w.Name, func(t *testing.T) {
			if err := w.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := round(t, link, w.Name, load.Params{}, short)
			if s.RTT != nil {
				t.Logf("%d messages, p50 %d ns, %v", s.Messages, s.RTT.ValueAtQuantile(50), s.Host)
			}
			t.Logf("%.4g bytes/s, %.4g requests/s %+v", s.BytesPerSecond, s.RequestsPerSecond, s.Checks)
		})
	}
}
