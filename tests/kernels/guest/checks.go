package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"

	"tare/doctor"
	"tare/mace"
	"tare/tests/kernels/console"
)

func runChecks() error {
	r, err := newReport()
	if err != nil {
		return err
	}
	for _, step := range []func(*report){checkDoctor, checkRuns, checkBlindness, checkEngine} {
		step(r)
	}
	r.check("nothing is left", nothingLeft)
	r.tell(console.Line{Done: true})
	return r.err
}

// checkDoctor asks the program itself, by its JSON: one check for each path, and one for the rest.
func checkDoctor(r *report) {
	var findings []doctor.Finding
	r.check("doctor", func() error {
		text, err := output(console.Tare, "doctor", "-o", "json")
		if jsonErr := json.Unmarshal([]byte(text), &findings); jsonErr != nil {
			return errors.Join(err, jsonErr)
		}
		for _, f := range findings {
			if f.Verdict == doctor.Fail && !strings.HasPrefix(f.Feature, "path ") {
				return fmt.Errorf("%s: %s", f.Feature, f.Detail)
			}
		}
		return nil
	})
	for _, path := range mace.PathNames() {
		r.check("doctor: path "+path, func() error {
			for _, f := range findings {
				if f.Feature == "path "+path && f.Verdict == doctor.OK {
					return nil
				}
				if f.Feature == "path "+path {
					return errors.New(f.Detail)
				}
			}
			return errors.New("doctor says nothing of it")
		})
	}
}

// checkEngine runs the engine's own tests.
func checkEngine(r *report) {
	names, err := os.ReadFile(console.TestNames)
	if err != nil {
		r.check("engine", func() error { return err })
	}
	for pattern := range strings.FieldsSeq(string(names)) {
		r.check("engine: "+pattern, func() error {
			text, err := output(console.EngineTests, "-test.count=1", "-test.short", "-test.timeout=170s", "-test.run", pattern)
			if err == nil && strings.Contains(text, "no tests to run") {
				return errors.New("there is no such test")
			}
			return err
		})
	}
}

// nothingLeft checks that all programs and namespaces have gone with the processes that made them.
func nothingLeft() error {
	if id, err := ebpf.ProgramGetNextID(0); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("an eBPF program: %d, %w", id, err)
	}
	entries, err := os.ReadDir("/run/netns")
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("network namespaces: %v", entries)
	}
	return err
}
