package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tare/bench/report"
	"tare/bench/verdict"
	"tare/stats"
)

// runRounds runs all arms in interleaved rounds.
func (e *experiment) runRounds() error {
	if err := e.calibrate(); err != nil {
		return err
	}
	order := stats.NewOrder(len(e.entries), e.Seed)
	e.began = time.Now()
	for n := range e.rounds {
		if n > 0 && n%restartEvery == 0 {
			if err := e.restart(); err != nil {
				return err
			}
		}
		if err := e.round(n, order.Next()); err != nil {
			return err
		}
		if e.UntilDecided && slices.Contains(e.looks, n+1) && e.decided() {
			return nil
		}
	}
	return nil
}

// round runs each arm once. What was measured before an error is kept.
func (e *experiment) round(n int, order []int) error {
	var round report.Round
	defer func() {
		if len(round.Runs) > 0 {
			e.report.Rounds = append(e.report.Rounds, round)
		}
	}()
	for position, i := range order {
		x := e.entries[i]
		if x.failed {
			continue
		}
		done := (float64(n) + float64(position)/float64(len(order))) / float64(e.rounds)
		e.progress(fmt.Sprintf("round %d of %d: %s", n+1, e.rounds, x.Name()), done, time.Duration((1-done)*float64(e.rounds)*float64(e.cost)))
		run, err := e.run(x, e.Round)
		if err != nil {
			if run, err = e.missed(i, n, err); err != nil {
				return err
			}
		} else {
			x.misses = 0
		}
		round.Runs = append(round.Runs, run)
	}
	return context.Cause(e.ctx)
}

// missed makes a run that does not count of one that gave no sample, as tools at times do on a busy machine, and starts the
// arm's workload anew. Where that cannot be done, or it happens again and again, the arm has failed.
func (e *experiment) missed(i, round int, err error) (report.Run, error) {
	x := e.entries[i]
	run := report.Run{Arm: x.Name(), StartSeconds: time.Since(e.began).Seconds(), Failed: err.Error()}
	x.misses++
	if e.ctx.Err() == nil && x.misses < maxMisses {
		again := x.restart(e.ctx, e.workload, e.params)
		if again == nil {
			return run, nil
		}
		err = fmt.Errorf("%w; and then: %w", err, again)
	}
	return run, e.fail(i, fmt.Errorf("in round %d: %w", round+1, err))
}

// calibrate runs each arm once without keeping it, to warm it up and to learn how long a round takes; from that comes the
// number of rounds, before anything is known of what they measure.
func (e *experiment) calibrate() error {
	began := time.Now()
	for i, x := range e.entries {
		if x.failed {
			continue
		}
		e.progress("warming up "+x.Name(), 0, e.left())
		if _, err := e.runPatiently(x, e.Round); err != nil {
			if err := e.fail(i, err); err != nil {
				return err
			}
		}
	}
	beganRestart := time.Now()
	if err := e.restart(); err != nil {
		return err
	}
	e.cost = beganRestart.Sub(began) + time.Since(beganRestart)/restartEvery
	e.rounds = e.Rounds
	if e.rounds == 0 {
		e.rounds = int(e.left() / max(e.cost, time.Millisecond))
		e.rounds = min(max(e.rounds-e.rounds%2, MinRounds), MaxRounds) // in twos: there and back
	}
	if e.UntilDecided {
		e.looks = looks(max(e.rounds, minLookRounds))
		e.rounds = e.looks[len(e.looks)-1]
	}
	return nil
}

// looks doubles from the first one.
func looks(first int) (after []int) {
	for i := range MaxLooks {
		after = append(after, min(first<<i, MaxRounds))
	}
	return after
}

// left is this experiment's share of the time that is left.
func (e *experiment) left() time.Duration {
	return max(0, (e.Budget-time.Since(e.runner.began))/time.Duration(e.total-e.runner.done))
}

// decided is whether every arm has a verdict.
func (e *experiment) decided() bool {
	looked := report.Report{Method: e.runner.report.Method, Seed: e.Seed, Experiments: []report.Experiment{*e.report}}
	looked.Analyse()
	for i, result := range looked.Experiments[0].Results {
		switch {
		case e.entries[i].failed, result.Arm == e.report.Baseline, result.Arm == e.report.Again:
		case result.Verdict == verdict.Inconclusive || result.Verdict == "":
			return false
		}
	}
	return true
}

// restart starts every arm's workload anew.
func (e *experiment) restart() error {
	for i, x := range e.entries {
		if x.failed {
			continue
		}
		if err := x.restart(e.ctx, e.workload, e.params); err != nil {
			if err := e.fail(i, err); err != nil {
				return err
			}
		}
	}
	return nil
}
