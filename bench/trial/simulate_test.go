package trial

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tare/bench/report/reporttest"
	"tare/bench/verdict"
)

// synthetic is a recording whose truth is known: round trips that drift, with bursts, and copies that are the same but for
// noise of their own.
func synthetic(rounds, perRun int, ownNoiseUs float64) *Recording {
	random := rand.New(rand.NewPCG(11, 12))
	r := &Recording{Rounds: perRun}
	drift := 30.0
	for range rounds {
		drift += 0.3 * random.NormFloat64()
		burst := 0.0
		if random.IntN(10) == 0 {
			burst = 5 * random.ExpFloat64()
		}
		value := func() float64 {
			v := drift + ownNoiseUs*random.NormFloat64()
			if random.IntN(3) == 0 {
				v += burst
			}
			return v
		}
		r.Baseline, r.Again, r.Same = append(r.Baseline, value()), append(r.Again, value()), append(r.Same, value())
	}
	return r
}

var margin = verdict.Margin{Share: 0.02}

// The targets that the method must meet: identical arms are called different in at most 5 of 100 runs, and a delay of 1 us
// is found in at least 95 of 100. 500 runs tell that better than 100 would.
func TestSimulateSynthetic(t *testing.T) {
	r := synthetic(600, 14, 0.3)
	same := Simulate(r, Simulation{Runs: 500, Margin: margin, Seed: 1})
	if same.Different() > 25 || same.Outside > 0 || same.Runs != 500 {
		t.Errorf("of %d identical arms %d are called different, and %d equivalent outside of the margin", same.Runs, same.Different(), same.Outside)
	}
	if same.Holding < 470 {
		t.Errorf("%d of 500 intervals of 95%% hold the truth", same.Holding)
	}
	delayed := Simulate(r, Simulation{Runs: 500, DelayUs: 1, Margin: margin, Seed: 2})
	if delayed.Slower < 475 || delayed.Faster > 0 {
		t.Errorf("of %d delays of 1 us %d are found, %d the wrong way", delayed.Runs, delayed.Slower, delayed.Faster)
	}
	looking := Simulate(r, Simulation{Runs: 500, Margin: margin, Looks: 5, Seed: 3})
	if looking.Different() > 25 {
		t.Errorf("with five looks, of %d identical arms %d are called different", looking.Runs, looking.Different())
	}
}

// Without a share of the level for each look, looking until something shows would find differences where there are none:
// this is what LookLevel is for, so the simulation must be able to show it.
func TestSimulateSeesTooManyDifferences(t *testing.T) {
	r := synthetic(600, 14, 0.3)
	for i := range r.Same {
		r.Same[i] += 0.8 // the copies are not the same: a benchmark that said so here would be right
	}
	if wrong := Simulate(r, Simulation{Runs: 200, Seed: 4}); wrong.Different() < 150 {
		t.Errorf("a difference of 0.8 us is seen in %d of 200", wrong.Different())
	}
}

func TestRecord(t *testing.T) {
	r := reporttest.New(1, 9, reporttest.Arm{Name: SameArm, RTTUs: 20})
	r.Experiments[0].Rounds[4].Runs[1].Failed = "units"
	recording, err := Record(r)
	if err != nil {
		t.Fatal(err)
	}
	recording.Rounds = 6
	if len(recording.Baseline) != 8 || recording.RoundMS != 1000 || !strings.Contains(recording.About, "Testium") {
		t.Errorf("%+v", recording)
	}
	var text strings.Builder
	if err := recording.Write(&text); err != nil {
		t.Fatal(err)
	}
	again, err := Decode([]byte(text.String()))
	if err != nil || len(again.Same) != 8 || fmt.Sprintf("%.2f", again.Same[7]) != fmt.Sprintf("%.2f", recording.Same[7]) {
		t.Errorf("%v %+v", err, again)
	}
	if _, err := Record(reporttest.New(1, 3)); err == nil {
		t.Error("a report without a third copy was recorded")
	}
	for _, bad := range []string{"", "{}", `{"rounds":9,"baseline_p50_us":[1],"again_p50_us":[1],"same_p50_us":[1]}`} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%q was read as a recording", bad)
		}
	}
}

func TestRoundsOf(t *testing.T) {
	if got := RoundsOf(false); got != 14 {
		t.Errorf("%d rounds by default", got)
	}
	if got := RoundsOf(true); got != 12 {
		t.Errorf("%d rounds with --quick", got)
	}
}

func TestResultCounts(t *testing.T) {
	measured := reporttest.New(1, 8, reporttest.Arm{Name: SameArm, RTTUs: 20}, reporttest.Arm{Name: DelayedArm, RTTUs: 21})
	result := Result{DelayUs: 1, Margin: margin, Arm: reporttest.Baseline}
	result.add(measured, 1)
	result.add(reporttest.New(2, 8, reporttest.Arm{Name: SameArm, RTTUs: 20}, reporttest.Arm{Name: DelayedArm, RTTUs: 21}), 2)
	if result.Same.Equivalent != 2 || result.Delayed.Slower != 2 || result.Delayed.Holding < 1 || len(result.Runs) != 2 || result.Runs[0].Rounds != 8 {
		t.Errorf("%+v", result)
	}
	if width := result.Same.HalfWidth(); width <= 0 || width > 0.01 {
		t.Errorf("half width %v", width)
	}
	var text strings.Builder
	if err := result.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"called different in 0 of 2", "found slower in 2 of 2", "not inside the margin: 0"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}
