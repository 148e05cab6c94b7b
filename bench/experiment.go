package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/bench/load"
	"tare/bench/report"
)

// experiment is one workload at one placement, while it is measured.
type experiment struct {
	*runner
	planned
	report  *report.Experiment
	entries []*entry
	began   time.Time // of the first round

	// What calibration decides.
	rounds int           // to be made at most
	looks  []int         // after how many rounds the verdicts may end it
	cost   time.Duration // of one round, of all arms
}

// experiment measures one of the plan, and puts it into the report when it has a round.
func (r *runner) experiment(p planned) error {
	e := &experiment{runner: r, planned: p, report: &report.Experiment{
		Style: report.Interleaved, Workload: p.workload.Name, Unit: p.workload.Unit, SizeBytes: p.params.Size, Rate: p.params.Rate,
		Tools: p.workload.Tools, Placement: p.placement, Baseline: r.arms[0].Name(),
	}}
	again := r.arms[0]
	again.As = again.Name() + "-again"
	for i, chosen := range append(slices.Clone(r.arms), again) {
		if p.singleRun && chosen.As == again.As {
			continue // published benchmarks have none
		}
		e.entries = append(e.entries, &entry{chosenArm: chosen, port: uint16(firstPort + i)})
		e.report.Arms = append(e.report.Arms, report.Arm{Name: chosen.Name(), Summary: chosen.Summary})
	}
	defer e.close()
	err := e.open()
	if err == nil && p.singleRun {
		err = e.runSingle()
	} else if err == nil {
		e.report.Again = again.As
		if err = e.runRounds(); err == nil {
			err = e.explain()
		}
	}
	if len(e.report.Rounds) > 0 {
		r.report.Experiments = append(r.report.Experiments, *e.report)
	}
	return err
}

// open brings all arms up. Arms that fail are said to have; without the baseline, or without any other, there is nothing.
func (e *experiment) open() error {
	for i, x := range e.entries {
		e.progress(fmt.Sprintf("setting up %s", x.Name()), 0, e.left())
		if err := x.up(e.ctx, e.workload, e.params, e.placement); err != nil {
			if err := e.fail(i, err); err != nil {
				return err
			}
			continue
		}
		e.report.Arms[i].Describe = x.link.Describe
	}
	return nil
}

// fail takes an arm out. It returns an error where nothing is left to compare, or the user has interrupted.
func (e *experiment) fail(i int, err error) error {
	if e.ctx.Err() != nil {
		return context.Cause(e.ctx)
	}
	x := e.entries[i]
	x.failed = true
	err = errors.Join(err, x.close())
	e.report.Arms[i].Failed = err.Error()
	alive := 0
	for _, other := range e.entries[1:] {
		if !other.failed && other.label() != e.entries[0].label()+"-again" {
			alive++
		}
	}
	if i == 0 || alive == 0 {
		return fmt.Errorf("the arm %s: %w", x.Name(), err)
	}
	if e.runner.report.Partial == "" {
		e.runner.report.Partial = fmt.Sprintf("the arm %s failed: %s", x.Name(), err)
	}
	return nil
}

// runSingle runs each arm once, in the order in which they were named.
func (e *experiment) runSingle() error {
	e.report.Style = report.SingleRun
	e.began = time.Now()
	var round report.Round
	defer func() {
		if len(round.Runs) > 0 {
			e.report.Rounds = append(e.report.Rounds, round)
		}
	}()
	for i, x := range e.entries {
		if x.failed {
			continue
		}
		e.progress("one long run of "+x.Name(), float64(i)/float64(len(e.entries)), time.Duration(len(e.entries)-i)*singleRun)
		run, err := e.runPatiently(x, singleRun)
		if err == nil {
			round.Runs = append(round.Runs, run)
		} else if err = e.fail(i, err); err != nil {
			return err
		}
	}
	return nil
}

// runPatiently tries again where one run more or less does not matter.
func (e *experiment) runPatiently(x *entry, d time.Duration) (report.Run, error) {
	for try := 1; ; try++ {
		run, err := e.run(x, d)
		if err == nil || try == maxMisses || e.ctx.Err() != nil {
			return run, err
		}
		if again := x.restart(e.ctx, e.workload, e.params); again != nil {
			return run, fmt.Errorf("%w; and then: %w", err, again)
		}
	}
}

// run is one arm's share of a round.
func (e *experiment) run(x *entry, d time.Duration) (report.Run, error) {
	start := time.Now()
	sample, err := x.session.Round(e.ctx, d)
	if err != nil {
		return report.Run{}, err
	}
	run, err := toRun(sample, x.Name(), pinned(e.placement))
	run.StartSeconds = max(0, start.Sub(e.began).Seconds())
	return run, err
}

func (e *experiment) close() {
	for i, x := range e.entries {
		if err := x.close(); err != nil && e.report.Arms[i].Failed == "" {
			e.report.Arms[i].Failed = "taking it down: " + err.Error()
		}
	}
}

// progress tells where all experiments together are.
func (e *experiment) progress(doing string, share float64, left time.Duration) {
	if e.total > 1 {
		doing = fmt.Sprintf("%s %s, %s", e.workload.Name, e.placement.Name, doing)
	}
	later := time.Duration(0)
	if n := e.total - e.runner.done - 1; n > 0 {
		later = max(0, e.Budget-time.Since(e.runner.began)-left)
	}
	e.Progress(Progress{Doing: doing, Done: (float64(e.runner.done) + share) / float64(e.total), Left: left + later})
}

// toRun is a sample as the report has it.
func toRun(s load.Sample, arm string, pinned bool) (report.Run, error) {
	run := report.Run{
		Arm: arm, WallSeconds: s.Wall.Seconds(), Messages: s.Messages, Lost: s.Lost, Retransmits: s.Retransmits,
		BytesPerSecond: number(s.BytesPerSecond), RequestsPerSecond: number(s.RequestsPerSecond), Host: s.Host,
	}
	for _, check := range s.Checks {
		check.Got, check.Want = number(check.Got), number(check.Want)
		run.Checks = append(run.Checks, check)
	}
	if err := s.Failed(); err != nil {
		run.Failed = err.Error()
	}
	run.Flags = report.Flag(s.Host, s.Wall.Seconds(), pinned)
	var err error
	if s.RTT != nil {
		run.RTT, err = report.EncodeHistogram(s.RTT)
	}
	return run, err
}
