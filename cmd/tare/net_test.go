package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tare/docknet/dockctl"
)

func TestNetScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/net",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			tare, err := exec.LookPath("tare")
			env.Setenv("TARE", tare)
			return err
		},
	})
}

// testNet is a net of its own, with what was built for it.
type testNet struct {
	*testing.T
	name  string
	build string
}

// dockNetPrograms puts what "make docknet" has built into a directory that a pipe's user may enter. TARE_DOCKNET_BUILD names
// another build directory.
func dockNetPrograms(t *testing.T) string {
	t.Helper()
	build := os.Getenv("TARE_DOCKNET_BUILD")
	if build == "" {
		build = "../../docknet/build"
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"daemon/dockdaemon", "daemon/tests/docknet-peer", "apps/docknet-bench", "apps/docknet-echo", "tests/docknet-check"} {
		text, err := os.ReadFile(filepath.Join(build, program))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(program)), text, 0o755)
		}
		if err != nil {
			t.Fatalf("DockNet is not built: %v: run make docknet, or set TARE_DOCKNET_BUILD to its build directory", err)
		}
	}
	return dir
}

// command prepares tare net.
func (n testNet) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tare", append([]string{"net", args[0], "--name", n.name}, args[1:]...)...)
	cmd.Env = append(os.Environ(), "TARE_DOCKDAEMON="+filepath.Join(n.build, "dockdaemon"))
	return cmd
}

func (n testNet) run(args ...string) string {
	n.Helper()
	output, err := n.command(args...).CombinedOutput()
	if err != nil {
		n.Fatalf("tare net %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// peer are the arguments that run the test's bare container on a pipe; see docknet/daemon/tests/peer.c.
func (n testNet) peer(pipe string, args ...string) []string {
	return append([]string{"exec", pipe, "--", filepath.Join(n.build, "docknet-peer"),
		"/run/tare/net/pipe"}, args...)
}

func (n testNet) bench(pipe string, args ...string) []string {
	return append([]string{"exec", pipe, "--", filepath.Join(n.build, "docknet-bench")}, args...)
}

// start runs a command in the background, until the test ends.
func (n testNet) start(args ...string) {
	n.Helper()
	cmd := n.command(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // process 1 of its namespace, too, and so all in it
		_ = cmd.Wait()
	})
}

func (n testNet) stats() dockctl.Stats {
	n.Helper()
	var stats dockctl.Stats
	if err := json.Unmarshal([]byte(n.run("stats", "-o", "json")), &stats); err != nil {
		n.Fatal(err)
	}
	return stats
}

func (n testNet) pipe(name string) dockctl.Pipe {
	n.Helper()
	for _, p := range n.stats().Pipes {
		if p.Name == name {
			return p
		}
	}
	n.Fatalf("no pipe %s", name)
	return dockctl.Pipe{}
}

// waitAttached waits until a pipe has a container, or has none.
func (n testNet) waitAttached(name string, want bool) {
	n.Helper()
	for range 500 {
		if n.pipe(name).Attached == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	n.Fatalf("pipe %s: attached is not %v after 10 s", name, want)
}

func (n testNet) daemonPID() int {
	n.Helper()
	text, err := os.ReadFile(filepath.Join("/run/tare/net", n.name, "lock"))
	if err != nil {
		n.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		n.Fatal(err)
	}
	return pid
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestNet takes one net through its life: packets with their contents, what is refused, containers that
// die and that write garbage, a daemon that is killed under a connection, and nothing left at the end.
func TestNet(t *testing.T) {
	n := testNet{t, fmt.Sprintf("t%d", os.Getpid()), dockNetPrograms(t)}
	t.Cleanup(func() { _ = n.command("down").Run() })
	n.run("up")
	n.run("add", "a", "--ip", "10.50.0.2/24", "--ip6", "fd50::2/64")
	n.run("add", "b", "--ip", "10.50.0.3/24")

	output, err := n.command("add", "c", "--ip", "10.50.0.3/24").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "address 10.50.0.3 is pipe b's") {
		t.Errorf("an address twice: %v, %s", err, output)
	}
	output, err = n.command("up").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "is up already") {
		t.Errorf("up twice: %v, %s", err, output)
	}

	t.Run("privileges", func(t *testing.T) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.daemonPID()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(status), "CapPrm:\t0000000000000000") || strings.Contains(string(status), "Uid:\t0\t") {
			t.Errorf("the daemon kept privileges:\n%s", status)
		}
		seen := n.run("exec", "a", "--", "sh", "-c", "id -u; echo $DOCKNET_PIPE; ls /run/tare/net; cat /sys/class/net/*/ifindex | wc -l; grep CapEff /proc/self/status")
		if strings.HasPrefix(seen, "0\n") || !strings.Contains(seen, "/run/tare/net/pipe\npipe\n") || !strings.Contains(seen, "CapEff:\t0000000000000000") {
			t.Errorf("what a command sees:\n%s", seen)
		}
	})
	t.Run("packets", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.start(n.peer("b", "echo")...)
		n.waitAttached("b", true)
		for _, size := range []string{"29", "64", "1500", "65535"} {
			n.run(n.peer("a", "ping", "10.50.0.3", "300", size)...) // fails if a byte differs
		}
		n.run(n.peer("a", "spoof", "10.50.0.3", "10.50.0.99", "700")...)
		if got := n.pipe("a").Stats.Dropped["spoofed"]; got != 700 {
			t.Errorf("%d spoofed packets counted, 700 sent", got)
		}
		if got := n.pipe("b").Stats.RxFrames; got != 1200 {
			t.Errorf("b received %d packets, 1200 were for it", got)
		}
	})
	t.Run("cycles", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.waitAttached("b", false)
		cycles := "200"
		if more := os.Getenv("TARE_NET_CYCLES"); more != "" {
			cycles = more // 10000 shows that nothing leaks
		}
		n.run(n.peer("a", "cycle", "10")...)
		n.waitAttached("a", false)
		before, pid := openFiles(t, n.daemonPID()), n.daemonPID()
		n.run(n.peer("a", "cycle", cycles)...)
		n.waitAttached("a", false)
		after := openFiles(t, pid)
		for i := 0; after > before && i < 500; i++ { // connections of clients that have gone, the last one's pipe
			time.Sleep(10 * time.Millisecond)
			after = openFiles(t, pid)
		}
		if after > before {
			t.Errorf("the daemon has %d files open, %d before %s attachments", after, before, cycles)
		}
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(maps), "/memfd:a ") {
			t.Error("a region of a dead container is still mapped")
		}
	})
	t.Run("garbage", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		pid := n.daemonPID()
		n.run(n.peer("a", "garbage", "7", "100")...)
		n.start(n.peer("b", "echo")...)
		n.waitAttached("b", true)
		n.run(n.peer("a", "ping", "10.50.0.3", "100", "1000")...)
		if n.daemonPID() != pid || n.pipe("a").Stats.BadDescs == 0 {
			t.Errorf("daemon %d, was %d; bad descriptors counted: %d", n.daemonPID(), pid, n.pipe("a").Stats.BadDescs)
		}
	})
	t.Run("restart", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.waitAttached("b", false)
		n.start(n.bench("b", "server")...)
		n.waitAttached("b", true)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		client := n.command(n.bench("a", "client", "-m", "p", "-d", "3", "10.50.0.3")...)
		result := make(chan error, 1)
		var said []byte
		go func() {
			var err error
			said, err = client.CombinedOutput()
			result <- err
		}()
		n.waitAttached("a", true)
		time.Sleep(300 * time.Millisecond)
		if err := syscall.Kill(n.daemonPID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		if up := n.run("up"); !strings.Contains(up, "offered again: 2") {
			t.Errorf("up after a kill: %s", up)
		}
		select {
		case err := <-result:
			if err != nil {
				t.Errorf("the connection did not survive the daemon: %v\n%s", err, said)
			}
		case <-ctx.Done():
			_ = client.Process.Kill()
			t.Error("the connection hangs since the daemon's restart")
		}
		// Each attempt to come back raises it, and there may have been some before the new daemon listened.
		if got := n.pipe("b").Epoch; got < 2 {
			t.Errorf("epoch of b is %d after a restart", got)
		}
	})

	pid := n.daemonPID()
	n.run("down")
	if _, err := os.Stat("/run/tare/net"); !os.IsNotExist(err) {
		t.Errorf("/run/tare/net is still there: %v", err)
	}
	for range 500 { // its death is certain, its parent's notice of it a matter of time
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil || !strings.HasPrefix(string(name), "dockdaemon") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("dockdaemon %d still runs", pid)
}
