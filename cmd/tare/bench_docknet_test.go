package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tare/bench/docknet"
)

func TestBenchDockNetArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"now"}, `tare bench docknet takes no argument, and got "now"`},
		{[]string{"-o", "xml"}, "-o xml: use text or json"},
		{[]string{"--rounds", "0"}, "--rounds 0: 1 to 1000 are possible"},
		{[]string{"--arms", "bridge,veth"}, `no arm is named "veth"`},
		{[]string{"--arms", "loopback"}, "bridge and docknet must be among them"},
	} {
		_, stderr := tare(t, 2, append([]string{"bench", "docknet"}, c.args...)...)
		if !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: %q, want one line with %q", c.args, stderr, c.want)
		}
	}
}

// Without programs there is the remedy, and nothing is left.
func TestBenchDockNetNotBuilt(t *testing.T) {
	daemon := filepath.Join(t.TempDir(), "dockdaemon")
	_, stderr := tare(t, 1, "bench", "docknet", "--daemon", daemon)
	if !strings.Contains(stderr, "docknet-bench is not built, or not found") || !strings.Contains(stderr, "build it with: make docknet") {
		t.Errorf("%q", stderr)
	}
	checkBenchDockNetLeftNothing(t, t.TempDir())
}

// checkBenchDockNetLeftNothing looks for what a benchmark makes, its temporary files in tmp.
func checkBenchDockNetLeftNothing(t *testing.T, tmp string) {
	t.Helper()
	if _, err := os.Stat("/run/tare/net/tare-bench"); err == nil {
		t.Error("the net is still there")
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "tare-bench-docknet-*")); len(left) > 0 {
		t.Errorf("left behind: %s", left)
	}
}

// benchDockNet prepares a small real run with its temporary files in tmp, which every user may enter.
func benchDockNet(t *testing.T, tmp string, args ...string) *process {
	t.Helper()
	for _, dir := range []string{tmp, filepath.Dir(tmp)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := newProcess(append([]string{"bench", "docknet", "--quick", "--arms", "bridge,docknet"}, args...)...)
	p.Env = append(os.Environ(), "TARE_DOCKDAEMON="+filepath.Join(dockNetPrograms(t), "dockdaemon"), "TMPDIR="+tmp)
	return p
}

// All is measured, and fits together. How fast it was is not judged: other work may be done on this machine.
func TestBenchDockNet(t *testing.T) {
	tmp := t.TempDir()
	p := benchDockNet(t, tmp, "--rounds", "1", "-o", "json")
	p.start(t)
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &p.stderr)
	}
	checkBenchDockNetLeftNothing(t, tmp)
	var r docknet.Result
	if err := json.Unmarshal([]byte(p.stdout.String()), &r); err != nil {
		t.Fatalf("%v\n%s", err, &p.stdout)
	}
	if r.Rounds != 1 || len(r.Rows) != 6 || len(r.OneCoreRows) != 6 || len(r.Connections) != 2 || len(r.Targets) != 9 {
		t.Fatalf("%s", &p.stdout)
	}
	for _, row := range append(r.Rows, r.OneCoreRows...) {
		switch {
		case row.OnewayUs.P50 == nil || *row.OnewayUs.P50 <= 0 || *row.OnewayUs.P99 < *row.OnewayUs.P50:
			t.Errorf("one-way of %s, %d bytes", row.Arm, row.Size)
		case row.Goodput == nil || *row.Goodput <= 0 || row.RatioToBridge == nil:
			t.Errorf("goodput of %s, %d bytes", row.Arm, row.Size)
		case row.Arm == docknet.Bridge && *row.RatioToBridge != 1:
			t.Errorf("the bridge's ratio to itself is %g", *row.RatioToBridge)
		case (row.Requests != nil) != (row.Placement == docknet.TwoCores && row.Size == 64):
			t.Errorf("requests of %s, %d bytes, %s", row.Arm, row.Size, row.Placement)
		}
	}
	// A daemon that spun would take a whole core; what the host does in its name is little.
	if r.Idle.DaemonPercent > 20 || r.Idle.ContainerPercent > 20 {
		t.Errorf("idle: %+v", r.Idle)
	}
}

func TestBenchDockNetInterrupted(t *testing.T) {
	tmp := t.TempDir()
	p := benchDockNet(t, tmp, "--rounds", "1000")
	p.start(t)
	waitUntil(t, "a client measures through DockNet", func() bool {
		return exec.Command("pgrep", "--full", tmp+".*docknet-bench client .*-t docknet").Run() == nil
	})
	p.signal(t, syscall.SIGINT, 1)
	if stderr := p.stderr.String(); !strings.Contains(stderr, "interrupted") {
		t.Errorf("%q", stderr)
	}
	checkBenchDockNetLeftNothing(t, tmp)
	if exec.Command("pgrep", "--full", tmp).Run() == nil {
		t.Error("programs still run")
	}
}
