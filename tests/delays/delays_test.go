// Package delays proves the correction with delays that are known: a delay between the container and the NIC must
// appear in what is subtracted and not in what remains; with a delay beyond it is the other way round.
package delays

import (
	"fmt"
	"math"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == clientName {
		os.Exit(clientMain(os.Args[2:]))
	}
	removeStaleLabs()
	if err := goFirst(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// tolerance is how far medians of the same quantity may be apart in two labs, in us: a tenth of the shortest delay. Where
// everything is slow, in an emulated machine, it is two round trips without a delay.
func tolerance(before trip) float64 { return max(200, 2*before.gross) }

// leastShare is the part of all round trips, one in so many, that must be delayed as they should be.
const leastShare = 5

func TestKnownDelays(t *testing.T) {
	references := &references{t: t, beds: map[string]*bed{}, measured: map[string]trips{}}
	for _, s := range append(scenarios, netemScenarios(t)...) {
		t.Run(s.name(), func(t *testing.T) { s.prove(t, references) })
	}
}

func (s scenario) prove(t *testing.T, references *references) {
	with := newBed(t, s.delay, s.xdp)
	results, err := s.compare(t, references, with)
	// Twice, since a lab can be disturbed; what the correction makes of it is judged once.
	if err != nil {
		t.Logf("measuring again: %v", err)
		references.forget(s)
		results, err = s.compare(t, references, with)
	}
	if err != nil {
		t.Fatalf("the environment, not the correction: %v", err)
	}
	for _, r := range results {
		t.Run(r.probe, func(t *testing.T) { s.judge(t, r) })
	}
}

// result is what was found with one probe: medians without the delay, and with it.
type result struct {
	probe        string
	before, with trip
	delayed, all int // round trips with the delay: with is the median of the delayed ones
}

// compare measures with the delay and without. It fails if the delay is not what it was made to be: then nothing is
// proven, neither for nor against the correction.
func (s scenario) compare(t *testing.T, references *references, with *bed) ([]result, error) {
	var without, delayed trips
	var err error
	measure := func() {
		if without, err = references.of(t, s); err == nil {
			delayed, err = with.measure(t, s)
		}
	}
	if s.awayFromBusy {
		keepOff(t, measure)
	} else {
		measure()
	}
	if err != nil {
		return nil, err
	}
	var results []result
	for _, p := range probes {
		if without[p.name] == nil {
			continue
		}
		r := result{probe: p.name, before: median(without[p.name]), all: len(delayed[p.name])}
		least, most := s.growth(r.before)
		// What is delayed by less or by more met something else as well: a busy CPU, for one. This is told by the gross
		// RTT, which knows nothing of what the correction makes of it.
		var late []trip
		for _, one := range delayed[p.name] {
			if grown := one.gross - r.before.gross; grown >= least && grown <= most {
				late = append(late, one)
			}
		}
		if r.delayed = len(late); r.delayed < r.all/leastShare {
			return nil, fmt.Errorf("%s: %s delays %d of %d round trips by %.0f to %.0f us, at least %d expected: without %s, with %s", p.name,
				s.delay, r.delayed, r.all, least, most, r.all/leastShare, r.before, median(delayed[p.name]))
		}
		r.with = median(late)
		results = append(results, r)
	}
	return results, nil
}

// judge looks at what was subtracted and at what remained: one has to grow as the RTT was bound to grow, the other one
// not at all.
func (s scenario) judge(t *testing.T, r result) {
	t.Logf("without: %s; with, %d of %d delayed: %s", r.before, r.delayed, r.all, r.with)
	added, corrected := r.with.added-r.before.added, r.with.corrected-r.before.corrected
	grows, stays := added, corrected
	if s.where == outside {
		grows, stays = corrected, added
	}
	least, most := s.growth(r.before)
	if off := tolerance(r.before); grows < least-off || grows > most+off || math.Abs(stays) > off {
		t.Errorf("what is subtracted grows by %.0f us and what remains by %.0f us; with a delay %s, of %.0f to %.0f us, they should by %s", added,
			corrected, s.where, least, most, map[string]string{inside: "all and nothing", outside: "nothing and all"}[s.where])
	}
}

// references are labs without the delays, and what was measured there, for all scenarios that share them.
type references struct {
	t        *testing.T
	beds     map[string]*bed
	measured map[string]trips
}

func (r *references) key(s scenario) string {
	return fmt.Sprintln(s.without, s.xdp, s.as, s.pace, s.printed)
}

func (r *references) of(t *testing.T, s scenario) (trips, error) {
	if found, ok := r.measured[r.key(s)]; ok {
		return found, nil
	}
	kind := fmt.Sprintln(s.without, s.xdp)
	if r.beds[kind] == nil {
		r.beds[kind] = newBed(r.t, s.without, s.xdp)
	}
	found, err := r.beds[kind].measure(t, s)
	if err == nil {
		r.measured[r.key(s)] = found
	}
	return found, err
}

func (r *references) forget(s scenario) { delete(r.measured, r.key(s)) }
