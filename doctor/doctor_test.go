package doctor_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tare/container"
	"tare/doctor"
)

// TestExamine needs root: then nothing that tare needs is missing on a machine that runs its tests.
func TestExamine(t *testing.T) {
	findings := doctor.Examine(t.Context())
	features := map[string]bool{}
	for _, f := range findings {
		if features[f.Feature] {
			t.Errorf("%s is told twice", f.Feature)
		}
		features[f.Feature] = true
		if f.Verdict == doctor.Fail {
			t.Errorf("%+v", f)
		}
		checkFinding(t, f)
	}
	for _, feature := range []string{"kernel", "privileges", "kernel types (BTF)", "path bare-metal", "path wire", "docker", "podman"} {
		if !features[feature] {
			t.Errorf("nothing about %s", feature)
		}
	}
}

func checkFinding(t *testing.T, f doctor.Finding) {
	t.Helper()
	if f.Detail == "" || strings.Contains(f.Detail+f.Remedy, "\n") {
		t.Errorf("%s: a finding is one line of detail: %+v", f.Feature, f)
	}
	if f.Verdict != doctor.OK && f.Remedy == "" {
		t.Errorf("%s is %s, and nothing is said about what to do", f.Feature, f.Verdict)
	}
}

// TestExamineInterrupted: a runtime that does not answer in time is not waited for, and the rest is told.
func TestExamineInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range doctor.Examine(ctx) {
		checkFinding(t, f)
	}
}

func TestExamineTarget(t *testing.T) {
	target, err := container.FromPID(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	findings := doctor.ExamineTarget(target)
	for _, f := range findings {
		checkFinding(t, f)
	}
	if f := findings[0]; f.Verdict != doctor.Warn || f.Feature != target.String() {
		t.Errorf("a target that shares the host's network: %+v", f)
	}
	gone := target
	gone.NetNSPath, gone.HostNetwork = "/proc/self/ns/no-such", false
	findings = doctor.ExamineTarget(gone)
	for _, f := range findings {
		checkFinding(t, f)
	}
	if f := findings[len(findings)-1]; f.Verdict != doctor.Fail {
		t.Errorf("a target that is gone: %+v", f)
	}
}

func TestFindingJSON(t *testing.T) {
	for want, finding := range map[string]doctor.Finding{
		`{"feature":"a","verdict":"ok","detail":"b"}`:                {Feature: "a", Verdict: doctor.OK, Detail: "b"},
		`{"feature":"a","verdict":"fail","detail":"b","remedy":"c"}`: {Feature: "a", Verdict: doctor.Fail, Detail: "b", Remedy: "c"},
	} {
		if got, err := json.Marshal(finding); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
