package report

import (
	"fmt"
	"slices"

	"tare/bench/load"
)

// Bounds on what a report may hold, so that reading a hostile one ends.
const (
	maxExperiments = 500
	maxArms        = 64
	maxRounds      = 2000
	maxRuns        = 100_000
)

// check is what a schema cannot say.
func (r *Report) check() error {
	if len(r.Experiments) > maxExperiments {
		return fmt.Errorf("%d experiments: up to %d are possible", len(r.Experiments), maxExperiments)
	}
	runs := 0
	for _, e := range r.Experiments {
		for _, round := range e.Rounds {
			runs += len(round.Runs)
		}
	}
	if runs > maxRuns {
		return fmt.Errorf("%d runs: up to %d are possible", runs, maxRuns)
	}
	for i := range r.Experiments {
		if err := r.Experiments[i].check(); err != nil {
			return fmt.Errorf("experiment %d: %w", i+1, err)
		}
	}
	return nil
}

func (e *Experiment) check() error {
	if len(e.Arms) > maxArms || len(e.Rounds) > maxRounds {
		return fmt.Errorf("%d arms and %d rounds: up to %d and %d are possible", len(e.Arms), len(e.Rounds), maxArms, maxRounds)
	}
	var names []string
	for _, arm := range e.Arms {
		if slices.Contains(names, arm.Name) {
			return fmt.Errorf("the arm %q is there twice", arm.Name)
		}
		names = append(names, arm.Name)
	}
	if !slices.Contains(names, e.Baseline) {
		return fmt.Errorf("its baseline %q is none of its arms", e.Baseline)
	}
	if e.Again != "" && (e.Again == e.Baseline || !slices.Contains(names, e.Again)) {
		return fmt.Errorf("its second baseline %q is none of its other arms", e.Again)
	}
	for i, round := range e.Rounds {
		var seen []string
		for _, run := range round.Runs {
			if !slices.Contains(names, run.Arm) || slices.Contains(seen, run.Arm) {
				return fmt.Errorf("round %d has a run of %q, which is no arm, or was there already", i+1, run.Arm)
			}
			seen = append(seen, run.Arm)
			if run.Failed == "" && run.RTT == "" && e.Unit != load.BytesPerSecond {
				return fmt.Errorf("round %d of %q has no histogram", i+1, run.Arm)
			}
		}
	}
	return nil
}
