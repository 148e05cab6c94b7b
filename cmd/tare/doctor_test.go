package main

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/doctor"
)

func TestDoctorScripts(t *testing.T) {
	runScripts(t, "doctor", map[string]func(*testscript.TestScript, bool, []string){"findings": findings})
}

// findings is the script command `findings FAILED`: standard output is doctor's JSON, so many checks have failed, and
// there is a remedy wherever one is needed.
func findings(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: findings FAILED")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var all []doctor.Finding
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	failed := 0
	features := map[string]bool{}
	for _, f := range all {
		switch {
		case f.Feature == "" || f.Detail == "" || features[f.Feature]:
			ts.Fatalf("a finding without a name of its own, or without detail: %+v", f)
		case f.Verdict != doctor.OK && f.Remedy == "":
			ts.Fatalf("no remedy: %+v", f)
		}
		features[f.Feature] = true
		switch f.Verdict {
		case doctor.OK, doctor.Warn, doctor.None:
		case doctor.Fail:
			failed++
		default:
			ts.Fatalf("what is %q?", f.Verdict)
		}
	}
	if failed != want {
		ts.Fatalf("%d checks have failed, want %d", failed, want)
	}
}
