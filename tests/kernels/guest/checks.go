package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"tare/tests/kernels/line"
)

func check() {
	port, err := os.OpenFile(line.Port, os.O_WRONLY, 0)
	if err != nil {
		fmt.Println("guest:", err)
		os.Exit(1)
	}
	r := report{json.NewEncoder(port)}
	r.doctor()
	r.engineTests(os.Getenv("tests"))
	r.out.Encode(line.Line{Done: true})
}

// doctor: one check for each path, and one for all the rest.
func (r report) doctor() {
	var findings []struct{ Feature, Verdict, Detail, Remedy string }
	_ = r.check("doctor", func() error {
		out, err := output(time.Minute, line.Tare, "doctor", "-o", "json")
		if err != nil && !ended(err) {
			return err
		}
		if len(out) == 0 {
			return err
		}
		return json.Unmarshal(out, &findings)
	})
	for _, f := range findings {
		_ = r.check("doctor: "+f.Feature, func() error {
			if f.Verdict == "fail" {
				return fmt.Errorf("%s", f.Detail)
			}
			return nil
		})
	}
}

func (r report) engineTests(pattern string) {
	if pattern == "" {
		pattern = "."
	}
	list, err := output(time.Minute, line.EngineTests, "-test.list", pattern)
	if err != nil {
		_ = r.check("engine", func() error { return err })
		return
	}
	for name := range strings.FieldsSeq(string(list)) {
		if !strings.HasPrefix(name, "Test") {
			continue
		}
		_ = r.check(name, func() error {
			_, err := output(3*time.Minute, line.EngineTests, "-test.count=1", "-test.run", "^"+name+"$")
			return err
		})
	}
}
