package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/arm"
	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/verdict"
)

// world is a machine of pretended networks: what is measured on them is chosen, and all that is left up is counted.
type world struct {
	mu       sync.Mutex
	rttUs    map[string]float64 // by arm
	open     int                // links and sessions
	ran      []string           // arms, in the order of their runs
	starts   int
	atRun    func(arm string, run int) error // what goes wrong in a run; counted per arm
	runs     map[string]int
	cannot   map[string]error
	badCheck map[string]bool
}

func newWorld(rttUs map[string]float64) *world {
	return &world{rttUs: rttUs, runs: map[string]int{}, cannot: map[string]error{}, badCheck: map[string]bool{}}
}

func (w *world) arms() (arms []arm.Arm) {
	for _, name := range []string{"loopback", "bridge", "docker-bridge"} {
		arms = append(arms, arm.Arm{
			Name: name, Summary: "pretended " + name,
			Check: func(context.Context) error { return w.cannot[name] },
			Up: func(_ context.Context, o arm.Options) (*arm.Link, error) {
				w.add(1)
				closed := false
				return &arm.Link{Describe: map[string]string{"arm": name}, Close: func() error {
					if !closed {
						w.add(-1)
					}
					closed = true
					return nil
				}}, nil
			},
		})
	}
	return arms
}

func (w *world) add(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
}

func (w *world) workloads() []load.Workload {
	return []load.Workload{{
		Name: "pretend", Unit: load.RTT, Tools: []string{"ping"}, MinSize: 1, MaxSize: 100, DefaultSize: 14,
		Check: func(context.Context) error { return w.cannot["pretend"] },
		Start: func(_ context.Context, link *arm.Link, _ load.Params) (load.Session, error) {
			w.add(1)
			w.starts++
			return &session{w, link.Describe["arm"]}, nil
		},
	}}
}

const messages = 500

type session struct {
	*world
	arm string
}

func (s *session) Warm(ctx context.Context) error { return ctx.Err() }

func (s *session) Close() error { s.add(-1); return nil }

func (s *session) Round(ctx context.Context, d time.Duration) (load.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[s.arm]++
	s.ran = append(s.ran, s.arm)
	if s.atRun != nil {
		if err := s.atRun(s.arm, s.runs[s.arm]); err != nil {
			return load.Sample{}, err
		}
	}
	if ctx.Err() != nil {
		return load.Sample{}, ctx.Err()
	}
	random := rand.New(rand.NewPCG(uint64(len(s.ran)), 3))
	h := hdrhistogram.New(1, 1e6, 3) // a small one: up to 1 ms
	for range messages {
		_ = h.RecordValue(int64(1e3 * (s.rttUs[s.arm] + random.NormFloat64())))
	}
	sample := load.Sample{RTT: h, Messages: messages, Wall: time.Duration(h.Mean() * messages), Host: load.Host{CPUs: []int{0}}}
	sample.Checks = []load.Check{{Name: "latency x messages = wall time", OK: !s.badCheck[s.arm]}}
	return sample, nil
}

// options keep the lock out of the way of benchmarks on this machine.
func (w *world) options(t *testing.T) Options {
	before := LockPath
	LockPath = filepath.Join(t.TempDir(), "tare", "bench.lock")
	t.Cleanup(func() { LockPath = before })
	return Options{
		Rounds: 8, Round: time.Millisecond, Margin: verdict.Margin{Share: 0.02}, Seed: 7, Placements: []string{"unpinned"},
		KnownArms: w.arms(), KnownWorkloads: w.workloads(),
	}
}

func mustRun(t *testing.T, w *world, o Options) *report.Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if w.open != 0 {
		t.Errorf("%d links and sessions were left open", w.open)
	}
	return r
}

func TestRun(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 20})
	w.cannot["docker-bridge"] = errors.New("Docker is not installed")
	r := mustRun(t, w, w.options(t))
	if r.Partial != "" || len(r.Experiments) != 1 || len(r.LeftOut) != 1 || r.LeftOut[0].Reason != "Docker is not installed" {
		t.Errorf("partial %q, left out %v", r.Partial, r.LeftOut)
	}
	e := r.Experiments[0]
	if len(e.Rounds) != 8 || e.Baseline != "loopback" || e.Again != "loopback-again" || e.SizeBytes != 14 || e.Workload != "pretend" {
		t.Errorf("%d rounds, %+v", len(e.Rounds), e.Placement)
	}
	if bridge := e.Results[1]; bridge.Arm != "bridge" || bridge.Verdict != verdict.Slower {
		t.Errorf("%+v", bridge)
	}
	// There and back: each second round is the one before, backwards.
	for i := 0; i < len(e.Rounds); i += 2 {
		there, back := armsOf(e.Rounds[i]), armsOf(e.Rounds[i+1])
		slices.Reverse(back)
		if len(there) != 3 || !slices.Equal(there, back) {
			t.Errorf("rounds %d and %d: %v and %v", i+1, i+2, there, back)
		}
	}
	if want := 3 * (1 + 1 + 3); w.starts != want { // at first, after the calibration, and before rounds 3, 5, and 7
		t.Errorf("%d starts of the workload, want %d", w.starts, want)
	}
	if text, err := r.Encode(); err != nil {
		t.Error(err)
	} else if _, err := report.Decode(text); err != nil {
		t.Errorf("what was measured is no valid report: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(LockPath)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock was left behind: %v", err)
	}
	// The same seed gives the same order.
	again := newWorld(w.rttUs)
	again.cannot = w.cannot
	mustRun(t, again, again.options(t))
	if !slices.Equal(w.ran, again.ran) {
		t.Errorf("from the same seed came\n%v and\n%v", w.ran, again.ran)
	}
}

func armsOf(round report.Round) (names []string) {
	for _, run := range round.Runs {
		names = append(names, run.Arm)
	}
	return names
}

func TestRunWithAFailingArm(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	w.atRun = func(arm string, run int) error {
		if arm == "docker-bridge" && run >= 4 {
			return errors.New("the container died")
		}
		return nil
	}
	r := mustRun(t, w, w.options(t))
	e := r.Experiments[0]
	if !strings.Contains(r.Partial, "docker-bridge failed: in round 5: the container died") || !strings.Contains(e.Arms[2].Failed, "died") {
		t.Errorf("partial %q, failed %q", r.Partial, e.Arms[2].Failed)
	}
	if e.Results[1].Verdict != verdict.Slower || e.Results[2].Runs != 2 || e.Results[2].Failed != 3 || e.Results[0].Runs != 8 {
		t.Errorf("bridge %+v, docker %d runs", e.Results[1], e.Results[2].Runs)
	}
}

func TestRunWithAFailingBaseline(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	w.atRun = func(arm string, run int) error {
		if arm == "loopback" && run >= 9 { // of both copies together: from round 4 on
			return errors.New("port taken")
		}
		return nil
	}
	r := mustRun(t, w, w.options(t))
	if !strings.Contains(r.Partial, "loopback") || !strings.Contains(r.Partial, "port taken") {
		t.Errorf("partial %q", r.Partial)
	}
	w = newWorld(w.rttUs)
	w.atRun = func(arm string, run int) error { return errors.New("port taken") }
	if _, err := Run(t.Context(), w.options(t)); err == nil || !strings.Contains(err.Error(), "port taken") || w.open != 0 {
		t.Errorf("%v, %d left open", err, w.open)
	}
}

// One run without a sample, as a tool on a busy machine may end, costs that run and no more.
func TestRunMissesOneRun(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	w.atRun = func(arm string, run int) error {
		if arm == "bridge" && (run == 4 || run == 7) {
			return errors.New("no valid observations")
		}
		return nil
	}
	r := mustRun(t, w, w.options(t))
	bridge := r.Experiments[0].Results[1]
	if r.Partial != "" || bridge.Runs != 6 || bridge.Failed != 2 || bridge.Verdict != verdict.Slower {
		t.Errorf("partial %q, %+v", r.Partial, bridge)
	}
}

func TestRunInterrupted(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	ctx, cancel := context.WithCancel(t.Context())
	w.atRun = func(arm string, run int) error {
		if arm == "bridge" && run == 5 {
			cancel()
		}
		return nil
	}
	r, err := Run(ctx, w.options(t))
	if err != nil || w.open != 0 {
		t.Fatalf("%v, %d left open", err, w.open)
	}
	if !strings.HasPrefix(r.Partial, "interrupted in experiment 1 of 1") || r.Experiments[0].Arms[1].Failed != "" {
		t.Errorf("partial %q, bridge failed %q", r.Partial, r.Experiments[0].Arms[1].Failed)
	}
	if n := len(r.Experiments[0].Rounds); n < 3 || n > 4 {
		t.Errorf("%d rounds", n)
	}
	if text, err := r.Encode(); err != nil {
		t.Error(err)
	} else if _, err := report.Decode(text); err != nil {
		t.Errorf("the partial report cannot be read: %v", err)
	}
	// Interrupted before the first round, there is no report.
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, w.options(t)); err == nil || w.open != 0 {
		t.Errorf("%v, %d left open", err, w.open)
	}
}

func TestRunFailsChecks(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	w.badCheck["bridge"] = true
	r := mustRun(t, w, w.options(t))
	bridge := r.Experiments[0].Results[1]
	if bridge.Failed != 8 || bridge.Runs != 0 || bridge.Verdict != "" {
		t.Errorf("%+v", bridge)
	}
}

func TestRunUntilDecided(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 25, "docker-bridge": 30})
	o := w.options(t)
	o.UntilDecided = true
	r := mustRun(t, w, o)
	if n := len(r.Experiments[0].Rounds); n != 8 {
		t.Errorf("clear differences took %d rounds", n)
	}
	if r.Method.Looks != MaxLooks || r.Method.Level <= verdict.DefaultLevel {
		t.Errorf("%+v", r.Method)
	}
	// Without a margin, equal arms stay undecided, and that must end.
	w = newWorld(map[string]float64{"loopback": 20, "bridge": 20, "docker-bridge": 30})
	o = w.options(t)
	o.UntilDecided, o.Margin = true, verdict.Margin{}
	r = mustRun(t, w, o)
	if n := len(r.Experiments[0].Rounds); n != 8<<(MaxLooks-1) && r.Experiments[0].Results[1].Verdict == verdict.Inconclusive {
		t.Errorf("undecided after %d rounds", n)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*world, *Options)
		says   string
	}{
		{"an unknown arm", func(_ *world, o *Options) { o.Arms = []ArmSpec{{Name: "loopback"}, {Name: "ether"}} }, `no arm is named "ether"`},
		{"an arm that was asked for and is not there", func(w *world, o *Options) {
			o.Arms = []ArmSpec{{Name: "loopback"}, {Name: "docker-bridge"}}
			w.cannot["docker-bridge"] = errors.New("Docker is not installed")
		}, "the arm docker-bridge cannot run here: Docker is not installed"},
		{"nothing to compare", func(w *world, o *Options) {
			w.cannot["docker-bridge"], w.cannot["bridge"] = errors.New("no Docker"), errors.New("no root")
		}, "no arm besides loopback can run here; bridge: no root; docker-bridge: no Docker"},
		{"an unknown workload", func(_ *world, o *Options) { o.Workloads = []Workload{{Name: "telepathy"}} }, `no workload is named "telepathy"`},
		{"no tool", func(w *world, o *Options) { w.cannot["pretend"] = errors.New("sockperf is missing") }, "sockperf is missing"},
		{"a size out of bounds", func(_ *world, o *Options) { o.Workloads = []Workload{{Name: "pretend", Size: 101}} }, "1 to 100 are possible"},
		{"a rate for who takes none", func(_ *world, o *Options) { o.Workloads = []Workload{{Name: "pretend", Rate: 5}} }, "takes no rate"},
		{"an unknown placement", func(_ *world, o *Options) { o.Placements = []string{"elsewhere"} }, `placement "elsewhere"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
			o := w.options(t)
			tt.change(w, &o)
			_, err := Run(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			if w.open != 0 {
				t.Errorf("%d left open", w.open)
			}
		})
	}
}

func TestPlacement(t *testing.T) {
	if p, err := placement("cross-core", []int{0, 1, 2, 5}); err != nil || p.ClientCPU != 2 || p.ServerCPU != 5 || p.SoftirqCPU != -1 {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := placement("same-core", []int{3}); err != nil || p.ClientCPU != 3 || p.ServerCPU != 3 {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := placement("cross-core", []int{3}); err == nil || !strings.Contains(err.Error(), "same-core") {
		t.Errorf("%v", err)
	}
}

func TestSingleRunComesFirst(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	o := w.options(t)
	o.SingleRun = true
	r := mustRun(t, w, o)
	if len(r.Experiments) != 2 || r.Experiments[0].Style != report.SingleRun || r.Experiments[1].Style != report.Interleaved {
		t.Fatalf("%d experiments", len(r.Experiments))
	}
	if order := armsOf(r.Experiments[0].Rounds[0]); !slices.Equal(order, []string{"loopback", "bridge", "docker-bridge"}) {
		t.Errorf("%v", order)
	}
}

// traced counts what an Explainer is asked.
type traced struct{ calls map[string]int }

func (t *traced) Trace(_ context.Context, arm string, link *arm.Link, during func() error) error {
	if link == nil {
		return errors.New("no link")
	}
	t.calls[arm]++
	return during()
}

func (t *traced) Attribution(arm string) (report.Attribution, bool) {
	return report.Attribution{RoundTripUs: 20, Packets: t.calls[arm]}, t.calls[arm] > 0
}

// Traced rounds are rounds of their own: a tracer's cost is in nothing that is compared.
func TestRunExplains(t *testing.T) {
	w := newWorld(map[string]float64{"loopback": 20, "bridge": 22, "docker-bridge": 23})
	o := w.options(t)
	tracer := &traced{map[string]int{}}
	o.Explain = tracer
	e := mustRun(t, w, o).Experiments[0]
	if len(e.Rounds) != 8 || len(e.Attributions) != 3 || e.Attributions[1].Arm != "bridge" || e.Attributions[1].Packets != explainRounds {
		t.Errorf("%d rounds, %+v", len(e.Rounds), e.Attributions)
	}
}
