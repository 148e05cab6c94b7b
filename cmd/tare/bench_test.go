package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/bench"
	"tare/bench/report"
	"tare/bench/report/reporttest"
	"tare/container/containertest"
)

// saveReports makes the reports that scripts find in $REPORTS.
func saveReports(dir string) error {
	arm := reporttest.Arm{Name: "bridge", RTTUs: 28}
	made := map[string]*report.Report{
		"old": reporttest.New(1, 12, arm), "new": reporttest.New(2, 12, reporttest.Arm{Name: "bridge", RTTUs: 21}),
		"large": reporttest.New(3, 6, arm), "tool": reporttest.New(4, 6, arm),
	}
	made["new"].Environment.Kernel = "6.14.0-test"
	made["large"].Experiments[0].SizeBytes = 1024
	made["tool"].Environment.Tools[0].Version = "sockperf, version 3.10"
	for name, r := range made {
		if err := r.Save(filepath.Join(dir, name+report.Suffix)); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "old"+report.Suffix))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "truncated.json"), text[:len(text)/2], 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "changed.json"), bytes.Replace(text, []byte("Testium"), []byte("Bestium"), 1), 0o644)
}

// Needs root, for the networks of run.txtar.
func TestBenchScripts(t *testing.T) {
	reports := t.TempDir()
	if err := saveReports(reports); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/bench",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("REPORTS", reports)
			return nil
		},
	})
}

// benchLeftovers is what a benchmark could leave on this host.
func benchLeftovers(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/run/netns/tare*", "/run/tare/*", "/tmp/tare-*"} {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	devices, err := exec.Command("ip", "-brief", "link").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(devices)) {
		found = append(found, strings.Fields(line)[0])
	}
	return found
}

// An interrupt gives what there is, marked so, and leaves nothing behind; a second benchmark is refused meanwhile.
func TestBenchInterruptedAndLocked(t *testing.T) {
	before := benchLeftovers(t)
	path := filepath.Join(t.TempDir(), "part.tare.json")
	p := newProcess("bench", "--arms", "loopback,veth", "--rounds", "1000", "--round", "50ms", "--save", path)
	p.start(t)
	waitUntil(t, "the benchmark holds its lock", func() bool {
		text, err := os.ReadFile(bench.LockPath)
		return err == nil && strings.TrimSpace(string(text)) == fmt.Sprint(p.Process.Pid)
	})
	_, stderr := tare(t, 1, "bench", "--arms", "loopback,veth", "--rounds", "1")
	if want := fmt.Sprintf("process %d holds", p.Process.Pid); !strings.Contains(stderr, want) {
		t.Errorf("a second benchmark says %q, want %q", stderr, want)
	}
	// Each run is a process of its own. Some 15 set everything up; an interrupt before the first round has nothing to report.
	seen := map[int]bool{}
	waitUntil(t, "some rounds are done", func() bool {
		for _, child := range children(p.Process.Pid) {
			seen[child] = true
		}
		return len(seen) >= 40
	})
	p.signal(t, syscall.SIGINT, exitPartial)
	if out := p.stdout.String(); !strings.HasPrefix(out, "PARTIAL REPORT: interrupted in experiment 1 of 1, after ") {
		t.Errorf("%s", out)
	}
	r, err := report.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if r.Partial == "" || len(r.Experiments) != 1 || len(r.Experiments[0].Rounds) < 2 {
		t.Errorf("partial %q, %d experiments", r.Partial, len(r.Experiments))
	}
	for _, thing := range benchLeftovers(t) {
		// What others make meanwhile has their process IDs in its name.
		if !slices.Contains(before, thing) && (!strings.Contains(thing, "/") || strings.Contains(thing, fmt.Sprint(p.Process.Pid))) {
			t.Errorf("left behind: %s", thing)
		}
	}
	if text, err := os.ReadFile(bench.LockPath); err == nil && strings.TrimSpace(string(text)) == fmt.Sprint(p.Process.Pid) {
		t.Error("left behind: its lock")
	}
}

// By default Docker's network takes part where there is Docker. That container dying costs its arm, and no more.
func TestBenchDocker(t *testing.T) {
	docker := containertest.StartDocker(t)
	stdout, _ := tare(t, 0, "bench", "--rounds", "2", "--round", "50ms", "--placement", "unpinned")
	for _, arm := range []string{"loopback", "bridge", "docker-bridge", "loopback-again"} {
		if !strings.Contains(stdout, "\n  "+arm+" ") {
			t.Errorf("no %s in\n%s", arm, stdout)
		}
	}
	p := newProcess("bench", "--arms", "loopback,veth,docker-bridge", "--rounds", "16", "--round", "50ms")
	p.start(t)
	waitUntil(t, "its container runs", func() bool { return docker.Output(t, "ps", "--quiet") != "" })
	container := strings.Fields(docker.Output(t, "ps", "--quiet"))[0]
	seen := map[int]bool{}
	waitUntil(t, "some rounds are done", func() bool {
		for _, child := range children(p.Process.Pid) {
			seen[child] = true
		}
		return len(seen) >= 28
	})
	docker.Output(t, "kill", container)
	if code := p.wait(t); code != exitPartial {
		t.Errorf("exit code %d", code)
	}
	if out := p.stdout.String(); !strings.Contains(out, "PARTIAL REPORT: the arm docker-bridge failed") || !strings.Contains(out, "\n16 rounds of 0.05 s") {
		t.Errorf("%s", out)
	}
	if left := docker.Output(t, "ps", "--all", "--quiet"); left != "" {
		t.Errorf("containers left: %s", left)
	}
}

// A disk that is full loses the file, and not the result.
func TestBenchSaveOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	o := benchOptions{output: "text", save: filepath.Join(dir, "x.tare.json")}
	if err := o.checkSave(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := o.finish(reporttest.New(1, 6, reporttest.Arm{Name: "bridge", RTTUs: 28}), &out)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(out.String(), "bridge: slower") || strings.Contains(out.String(), "saved as") {
		t.Errorf("%v\n%s", err, &out)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("%d files left", len(entries))
	}
}
