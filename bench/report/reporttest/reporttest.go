// Package reporttest makes reports for tests, out of distributions that the test chooses.
package reporttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/environment"
	"tare/bench/load"
	"tare/bench/report"
	"tare/bench/verdict"
)

// Arm is an arm and its typical round trip in us.
type Arm struct {
	Name  string
	RTTUs float64
}

// Baseline and Again are the first two arms of every report.
const (
	Baseline = "loopback"
	Again    = "loopback-again"
)

// BaselineUs is the baseline's typical round trip.
const BaselineUs = 20

// New makes a report of a baseline, its second copy, and these arms, which differs with its seed and with nothing else.
func New(seed uint64, rounds int, arms ...Arm) *report.Report {
	random := rand.New(rand.NewPCG(seed, 1))
	arms = append([]Arm{{Baseline, BaselineUs}, {Again, BaselineUs}}, arms...)
	e := report.Experiment{
		Style: report.Interleaved, Workload: "sockperf-tcp", Unit: load.RTT, SizeBytes: 14, Tools: []string{"sockperf"},
		Placement: report.Placement{Name: "cross-core", ClientCPU: 0, ServerCPU: 1, SoftirqCPU: -1},
		Baseline:  Baseline, Again: Again,
	}
	for _, a := range arms {
		e.Arms = append(e.Arms, report.Arm{Name: a.Name, Summary: "the arm " + a.Name, Describe: map[string]string{"device": "lo"}})
	}
	for i := range rounds {
		var round report.Round
		for k, a := range arms {
			round.Runs = append(round.Runs, Run(random, a.Name, float64(i*len(arms)+k), a.RTTUs))
		}
		e.Rounds = append(e.Rounds, round)
	}
	r := &report.Report{
		TareVersion: "test", Command: "tare bench", Seconds: float64(rounds * len(arms)), Seed: seed,
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Method: report.Method{
			RoundSeconds: 1, Level: verdict.DefaultLevel, Looks: 1, Margin: verdict.Margin{Share: 0.02}, FlagRules: report.FlagRules,
		},
		Environment: environment.Environment{
			Kernel: "6.1.0-test", KernelVersion: "#1 SMP", KernelConfig: environment.Unknown, CPU: "Testium 9000", CPUs: 2,
			Governor: environment.Unknown, ClockSource: "tsc", Virtualisation: "guest", LoadAverage: "0.00", Architecture: "amd64",
			Tools: []environment.Tool{{Name: "sockperf", Path: "/usr/bin/sockperf", Version: "sockperf, version 3.7", SHA256: fmt.Sprintf("%064x", 7)}},
		},
		LeftOut:     []report.LeftOut{{Name: "docker", Reason: "Docker is not installed"}},
		Experiments: []report.Experiment{e},
	}
	r.Analyse()
	return r
}

// Messages is how many each run has.
const Messages = 12000

// Run makes a run of skewed round trips whose median is about typicalUs.
func Run(random *rand.Rand, arm string, start, typicalUs float64) report.Run {
	h := hdrhistogram.New(1, int64(100*time.Second), 3)
	drift := 0.02 * random.NormFloat64() // us, of this run
	for range Messages {
		_ = h.RecordValue(int64(1e3 * (typicalUs + drift - 0.69 + random.ExpFloat64())))
	}
	encoded, err := report.EncodeHistogram(h)
	if err != nil {
		panic(err)
	}
	return report.Run{
		Arm: arm, StartSeconds: start, WallSeconds: h.Mean() * Messages / 1e9, Messages: Messages, RTT: encoded,
		Checks: []load.Check{{Name: "latency x messages = wall time", OK: true, Got: 1, Want: 1, Unit: "s"}},
		Host:   load.Host{Client: load.Usage{Known: true}, Server: load.Usage{Known: true}, CPUs: []int{0, 1}},
	}
}
