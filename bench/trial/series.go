package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"tare/bench"
	"tare/bench/environment"
	"tare/bench/report"
	"tare/bench/verdict"
)

// SeriesOptions bound a series of real benchmarks.
type SeriesOptions struct {
	Runs   int
	For    time.Duration // no run begins after so long; 0: all do
	Arm    string        // one that can delay
	Delay  time.Duration // of the delayed copy
	Margin verdict.Margin
	Quick  bool
	Seed   uint64
	Done   func(n int, result *Result) // after each run; may be nil
	Bench  bench.Options               // what else each run is to have
}

// Result is what a series found.
type Result struct {
	Schema      string                  `json:"schema"`
	Command     string                  `json:"command"`
	Started     time.Time               `json:"started"`
	Seconds     float64                 `json:"seconds"`
	Partial     string                  `json:"partial,omitempty"`
	Quick       bool                    `json:"quick"`
	Arm         string                  `json:"arm"`
	DelayUs     float64                 `json:"delay_us"`
	Margin      verdict.Margin          `json:"margin"`
	Environment environment.Environment `json:"environment"`
	Same        Tally                   `json:"same"`
	Delayed     Tally                   `json:"delayed"`
	Runs        []SeriesRun             `json:"runs"`
}

// SeriesRun is what one benchmark said.
type SeriesRun struct {
	Seed      uint64             `json:"seed"`
	Rounds    int                `json:"rounds"`
	BaseUs    float64            `json:"baseline_p50_us"`
	Same      verdict.Comparison `json:"same"`
	Delayed   verdict.Comparison `json:"delayed"`
	Flagged   int                `json:"flagged_runs"`
	NotCounts int                `json:"failed_runs"`
}

// SeriesSchema names the format of a result.
const SeriesSchema = "tare-bench-trial/1"

// Series makes benchmarks of four copies of one network, one of which delays every request by a known time, and counts
// what they say of the copy that is the same and of the one that is not. What was measured up to an error is returned
// with it.
func Series(ctx context.Context, o SeriesOptions) (*Result, error) {
	began := time.Now()
	result := &Result{
		Schema: SeriesSchema, Command: o.Bench.Command, Started: began.UTC().Truncate(time.Second), Quick: o.Quick, Arm: o.Arm,
		DelayUs: float64(o.Delay) / 1e3, Margin: o.Margin,
	}
	random := rand.New(rand.NewPCG(o.Seed, 5))
	for n := range o.Runs {
		if o.For > 0 && time.Since(began) > o.For {
			result.Partial = fmt.Sprintf("ended after %s, with %d of %d runs", o.For, n, o.Runs)
			break
		}
		options := o.Bench
		if o.Quick {
			options.Quick()
		}
		options.Seed, options.Margin = random.Uint64N(1<<32-1)+1, o.Margin
		options.Arms = []bench.ArmSpec{{Name: o.Arm}, {Name: o.Arm, As: SameArm}, {Name: o.Arm, As: DelayedArm, Delay: o.Delay}}
		measured, err := bench.Run(ctx, options)
		result.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
		if err == nil && measured.Partial != "" {
			err = errors.New(measured.Partial)
		}
		if err != nil {
			result.Partial = fmt.Sprintf("run %d of %d failed: %s", n+1, o.Runs, err)
			return result, err
		}
		result.add(measured, options.Seed)
		if o.Done != nil {
			o.Done(n+1, result)
		}
	}
	return result, nil
}

// RecordRounds measures rounds of three copies of one network, for Simulate. Rounds are as long as a benchmark's, and a run
// made of them has as many as its own.
func RecordRounds(ctx context.Context, o SeriesOptions, rounds int) (*Recording, error) {
	options := o.Bench
	if o.Quick {
		options.Quick()
	}
	options.Seed, options.Margin, options.Rounds = o.Seed, o.Margin, rounds
	options.Arms = []bench.ArmSpec{{Name: o.Arm}, {Name: o.Arm, As: SameArm}}
	measured, err := bench.Run(ctx, options)
	if err == nil && measured.Partial != "" {
		err = errors.New(measured.Partial)
	}
	if err != nil {
		return nil, err
	}
	recording, err := Record(measured)
	if err != nil {
		return nil, err
	}
	recording.Rounds = RoundsOf(o.Quick)
	return recording, nil
}

// RoundsOf is about how many rounds of four arms a benchmark has time for, in twos.
func RoundsOf(quick bool) int {
	const arms, overhead = 4, 50 * time.Millisecond // of starting a client, and every other time a server
	budget, round := bench.DefaultBudget, bench.DefaultRound
	if quick {
		budget, round = bench.QuickBudget, bench.QuickRound
	}
	return int(budget/(arms*(round+overhead))) / 2 * 2
}

func (r *Result) add(measured *report.Report, seed uint64) {
	r.Environment = measured.Environment
	e := &measured.Experiments[0]
	run := SeriesRun{Seed: seed, Rounds: len(e.Rounds)}
	for _, result := range e.Results {
		run.Flagged += result.Flagged
		run.NotCounts += result.Failed
		switch c := result.Comparison(); {
		case len(result.Statistics) == 0:
		case result.Arm == e.Baseline:
			run.BaseUs = result.Statistics[0].Value.Estimate
		case result.Arm == SameArm:
			run.Same = *c
		case result.Arm == DelayedArm:
			run.Delayed = *c
		}
	}
	r.Same.count(run.Same, 0, run.BaseUs, r.Margin)
	r.Delayed.count(run.Delayed, r.DelayUs, run.BaseUs, r.Margin)
	r.Runs = append(r.Runs, run)
}

// WriteJSON writes all of it.
func (r *Result) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// WriteText says what a person wants to know of it.
func (r *Result) WriteText(out io.Writer) error {
	var text string
	line := func(format string, args ...any) { text += fmt.Sprintf(format+"\n", args...) }
	if r.Partial != "" {
		line("PARTIAL: %s", r.Partial)
	}
	line("%d benchmarks of %s, %.0f s; the delayed copy holds every request up by %.2f us; margin %s", r.Same.Runs, r.Arm, r.Seconds, r.DelayUs, r.Margin)
	line("Linux %s, %s, %s; clock %s", r.Environment.Kernel, r.Environment.CPU, r.Environment.Virtualisation, r.Environment.ClockSource)
	line("")
	line("  the same network:  called different in %d of %d, equivalent in %d, inconclusive in %d; the interval held 0 in %d", r.Same.Different(), r.Same.Runs, r.Same.Equivalent, r.Same.Inconclusive, r.Same.Holding)
	line("  with the delay:    found slower in %d of %d, equivalent in %d, faster in %d; the interval held %.2f us in %d", r.Delayed.Slower, r.Delayed.Runs, r.Delayed.Equivalent, r.Delayed.Faster, r.DelayUs, r.Delayed.Holding)
	line("  \"equivalent\" with an interval that is not inside the margin: %d", r.Same.Outside+r.Delayed.Outside)
	if r.Same.Runs > 0 {
		line("  half of the interval's width, median over runs: %.2f%% of a round trip", 100*r.Same.HalfWidth())
	}
	_, err := io.WriteString(out, text)
	return err
}
