package trial

import (
	"os"
	"path/filepath"
	"testing"

	"tare/bench/verdict"
)

// Recordings are made by `tare bench trial --record`; each says in itself on what machine, and how busy it was.
var recordings = []struct {
	file string
	// finds is whether a delay of 1 us must be found in 95 of 100 runs: on a machine that is quiet enough for it.
	finds bool
}{
	{"busy-quick.json", false},
}

// What the method promises, on rounds that a real machine gave: identical arms are called different in at most 5 of 100
// runs, with --until-decided too; "equivalent" is said only of an interval inside the margin; and a known delay is found.
func TestRecordedRounds(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(recordings) {
		t.Fatalf("%d recordings in testdata, and %d in the table above (%v)", len(files), len(recordings), err)
	}
	for _, tt := range recordings {
		t.Run(tt.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", tt.file))
			if err != nil {
				t.Fatal(err)
			}
			r, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, margin := range []verdict.Margin{{Share: 0.02}, {Amount: 0.5}, {}} {
				same := Simulate(r, Simulation{Runs: 400, Margin: margin, Seed: 1})
				looking := Simulate(r, Simulation{Runs: 400, Margin: margin, Looks: 5, Seed: 2})
				t.Logf("margin %s: of 400 identical arms %d were called different, %d with five looks; half width %.2f%%", margin, same.Different(), looking.Different(), 100*same.HalfWidth())
				if same.Different() > 20 || looking.Different() > 20 {
					t.Errorf("margin %s: of 400 identical arms %d are called different, with five looks %d", margin, same.Different(), looking.Different())
				}
				if same.Outside+looking.Outside > 0 {
					t.Errorf("margin %s: %d equivalent outside of it", margin, same.Outside+looking.Outside)
				}
			}
			delayed := Simulate(r, Simulation{Runs: 400, DelayUs: 1, Margin: margin, Seed: 3})
			t.Logf("of 400 delays of 1 us %d are found, %d intervals hold it", delayed.Slower, delayed.Holding)
			if tt.finds && delayed.Slower < 380 || delayed.Faster > 20 || delayed.Outside > 0 {
				t.Errorf("%+v", delayed)
			}
		})
	}
}
