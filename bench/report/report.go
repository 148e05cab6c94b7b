// Package report is a benchmark's one file: what was measured, round by round with whole distributions, where, with which
// tools and by which rules. What a report says about arms is worked out anew from its rounds whenever it is read, so that
// no verdict has to be taken on trust.
//
// report.schema.json describes the file, for other programs too; a file that does not fit it is not read.
package report

import (
	"time"

	"tare/bench/environment"
	"tare/bench/load"
	"tare/bench/verdict"
)

// Schema names the format. Its number changes when a field changes its meaning or goes; new fields may come.
const Schema = "tare-bench/1"

// Report is one file.
type Report struct {
	Schema      string `json:"schema"`
	ContentHash string `json:"content_hash"` // see Hash
	TareVersion string `json:"tare_version"`
	Command     string `json:"command"`
	// Partial says why this is not all that was asked for; empty where it is.
	Partial     string                  `json:"partial,omitempty"`
	Started     time.Time               `json:"started"`
	Seconds     float64                 `json:"seconds"`
	Seed        uint64                  `json:"seed"` // of the order of arms, and of resampling
	Method      Method                  `json:"method"`
	Environment environment.Environment `json:"environment"`
	LeftOut     []LeftOut               `json:"left_out"`
	Experiments []Experiment            `json:"experiments"`
}

// Method is what was fixed before the first round.
type Method struct {
	RoundSeconds float64        `json:"round_seconds"` // one arm's share of one round
	Level        float64        `json:"level"`         // of intervals
	Looks        int            `json:"looks"`         // how often the verdicts could have ended it
	Margin       verdict.Margin `json:"margin"`        // an amount is in us, or in the unit of rates
	FlagRules    []FlagRule     `json:"flag_rules"`
	Preset       string         `json:"preset,omitempty"`
}

// LeftOut is an arm or a workload that cannot run on this machine.
type LeftOut struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Styles of experiments.
const (
	Interleaved = "interleaved" // rounds of all arms in shuffled order
	// SingleRun is one long run per arm in fixed order, as published benchmarks do it: it allows no interval and no verdict.
	SingleRun = "single-run"
)

// Experiment is one workload at one placement, over all arms, in interleaved rounds.
type Experiment struct {
	Style     string    `json:"style"`
	Workload  string    `json:"workload"`
	Unit      load.Unit `json:"unit"`
	SizeBytes int       `json:"size_bytes,omitempty"`
	Rate      int       `json:"rate_per_second,omitempty"` // 0: each message as soon as the last was answered
	Tools     []string  `json:"tools"`
	Placement Placement `json:"placement"`
	Baseline  string    `json:"baseline"`
	// Again is the second copy of the baseline, whose difference from the first is noise.
	Again  string  `json:"again,omitempty"`
	Arms   []Arm   `json:"arms"`
	Rounds []Round `json:"rounds"`
	// Attributions are there when packets were followed.
	Attributions []Attribution `json:"attributions,omitempty"`
	// Results are for other programs; tare works them out anew.
	Results []Result `json:"results"`
}

// Placement is where things run.
type Placement struct {
	Name       string `json:"name"`        // same-core, cross-core, or unpinned
	ClientCPU  int    `json:"client_cpu"`  // -1: anywhere
	ServerCPU  int    `json:"server_cpu"`  // -1: anywhere
	SoftirqCPU int    `json:"softirq_cpu"` // -1: the sender's
}

// Arm is one of the networks compared.
type Arm struct {
	Name     string            `json:"name"`
	Summary  string            `json:"summary"`
	Describe map[string]string `json:"describe"`
	Failed   string            `json:"failed,omitempty"` // why it has no further rounds
}

// Round is one run of every arm, in the order in which they ran.
type Round struct {
	Runs []Run `json:"runs"`
}

// Run is what one arm measured in one round.
type Run struct {
	Arm          string  `json:"arm"`
	StartSeconds float64 `json:"start_seconds"` // since the experiment's first round
	WallSeconds  float64 `json:"wall_seconds"`  // from the first message to the last reply
	Messages     uint64  `json:"messages"`
	Lost         uint64  `json:"lost,omitempty"`
	Retransmits  uint64  `json:"retransmits,omitempty"`
	// RTT has every message's full round trip in ns: an HdrHistogram, V2, compressed, in base64.
	RTT               Histogram    `json:"rtt_ns,omitempty"`
	BytesPerSecond    float64      `json:"bytes_per_second,omitempty"`
	RequestsPerSecond float64      `json:"requests_per_second,omitempty"`
	Checks            []load.Check `json:"checks"`
	Host              load.Host    `json:"host"`
	Flags             []string     `json:"flags,omitempty"`  // the rules that it broke: it is doubtful
	Failed            string       `json:"failed,omitempty"` // a check that it failed: it does not count
}
