package container_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/container"
	"tare/container/containertest"
)

// helperVariable turns this test binary into a process that runs a tool in a container until it is killed.
const helperVariable = "TARE_TEST_RUN_SLEEP_IN"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVariable); name != "" {
		runSleepIn(name)
	}
	os.Exit(containertest.Main(m))
}

func eachRuntime(t *testing.T, test func(t *testing.T, runtime *containertest.Runtime)) {
	for _, start := range []func(testing.TB) *containertest.Runtime{containertest.StartDocker, containertest.StartPodman} {
		runtime := start(t)
		t.Run(runtime.Name, func(t *testing.T) { test(t, runtime) })
	}
}

func find(t *testing.T, name string) container.Target {
	t.Helper()
	target, err := container.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestFindRealContainer(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		id := runtime.RunContainer(t, "web")
		for _, name := range []string{"web", id, id[:12], runtime.Name + ":web"} {
			target := find(t, name)
			if target.ID != id || target.Name != "web" || string(target.Runtime) != runtime.Name || target.HostNetwork {
				t.Errorf("Find(%q) = %+v, want web, %s of %s, not on the host's network", name, target, id, runtime.Name)
			}
		}
		target := find(t, "web")
		cookie, err := container.NetNSCookie(target.NetNSPath)
		if err != nil {
			t.Fatal(err)
		}
		own, err := container.NetNSCookie("/proc/self/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		if cookie == 0 || cookie == own {
			t.Errorf("the container's cookie is %d, the host's %d: want two different numbers", cookie, own)
		}
		if fromPID, err := container.FromPID(target.PID); err != nil || fromPID.HostNetwork {
			t.Errorf("FromPID(%d) = %+v, %v", target.PID, fromPID, err)
		}
	})
}

func TestFindHostNetwork(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "onhost", "--network=host")
		if target := find(t, "onhost"); !target.HostNetwork {
			t.Errorf("Find = %+v, want HostNetwork", target)
		}
	})
}

func TestFindJoinedNetwork(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "first")
		runtime.RunContainer(t, "second", "--network=container:first")
		first, _ := container.NetNSCookie(find(t, "first").NetNSPath)
		second, _ := container.NetNSCookie(find(t, "second").NetNSPath)
		if first != second || first == 0 {
			t.Errorf("cookies %d and %d, want the same", first, second)
		}
	})
}

func TestFindInBothRuntimes(t *testing.T) {
	docker, podman := containertest.StartDocker(t), containertest.StartPodman(t)
	want := map[string]string{"docker:twin": docker.RunContainer(t, "twin"), "podman:twin": podman.RunContainer(t, "twin")}
	if _, err := container.Find(t.Context(), "twin"); !errors.Is(err, container.ErrAmbiguous) {
		t.Errorf("Find(twin) = %v, want ErrAmbiguous", err)
	}
	for name, id := range want {
		if target := find(t, name); target.ID != id {
			t.Errorf("Find(%q) = %s, want %s", name, target.ID, id)
		}
	}
}

func TestFindStoppedOrMissing(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "still")
		target := find(t, "still")
		gone, err := target.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-gone:
			t.Fatal("Watch says that a running container is gone")
		case <-time.After(50 * time.Millisecond):
		}
		runtime.Output(t, "kill", "still")
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Fatal("Watch does not notice the container's end")
		}
		if target.Alive() {
			t.Error("Alive says that a killed container lives")
		}
		waitUntil(t, "the runtime calls it stopped", func() bool {
			_, err = container.Find(t.Context(), "still")
			return errors.Is(err, container.ErrNotRunning)
		})
		if _, err := container.Find(t.Context(), "nosuch"); !errors.Is(err, container.ErrNotFound) {
			t.Errorf("Find(nosuch) = %v, want ErrNotFound", err)
		}
	})
}

func TestCommandPingsThroughNAT(t *testing.T) {
	remote := containertest.StartRemote(t)
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "pinger")
		byName := find(t, "pinger")
		byPID, err := container.FromPID(byName.PID)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []container.Target{byName, byPID} {
			run := target.Command(t.Context(), []string{"ping", "-c", "1", remote.Addr}, container.Options{})
			var output strings.Builder
			run.Cmd.Stdout, run.Cmd.Stderr = &output, &output
			if err := run.Run(); err != nil || !strings.Contains(output.String(), " 0% packet loss") {
				t.Errorf("ping in %s: %v\n%s", target, err, &output)
			}
		}
	})
}

func TestCommandInNamedNamespace(t *testing.T) {
	remote := containertest.StartRemote(t)
	target, err := container.FromNetNS(remote.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	run := target.Command(t.Context(), []string{"ip", "-4", "-oneline", "address", "show", "dev", "eth0"}, container.Options{})
	var output strings.Builder
	run.Cmd.Stdout = &output
	if err := run.Run(); err != nil || !strings.Contains(output.String(), remote.Addr) {
		t.Errorf("in %s: %v, %q, want the address %s", target, err, &output, remote.Addr)
	}
}

func TestExitCodes(t *testing.T) {
	targets := map[string]container.Target{}
	for _, runtime := range []*containertest.Runtime{containertest.StartDocker(t), containertest.StartPodman(t)} {
		runtime.RunContainer(t, "codes")
		targets[runtime.Name] = find(t, runtime.Name+":codes")
	}
	var err error
	if targets["pid"], err = container.FromPID(targets["docker"].PID); err != nil {
		t.Fatal(err)
	}
	for name, target := range targets {
		for _, test := range []struct {
			argv []string
			want int
		}{
			{[]string{"true"}, 0},
			{[]string{"sh", "-c", "exit 42"}, 42},
			{[]string{"sh", "-c", "kill -9 $$"}, 137},
			{[]string{"no-such-tool"}, 127},
			{[]string{"/no/such/tool"}, 127},
			{[]string{"/etc/passwd"}, 126},
		} {
			got := container.ExitCode(target.Command(t.Context(), test.argv, container.Options{}).Run())
			if name == "docker" && test.want == 127 && got == 126 {
				continue // Docker 20.10; later ones have 127
			}
			if got != test.want {
				t.Errorf("%s: %q exits with %d, want %d", name, test.argv, got, test.want)
			}
		}
	}
}

func TestStandardInput(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "reader")
		run := find(t, "reader").Command(t.Context(), []string{"cat"}, container.Options{Stdin: true})
		var output strings.Builder
		run.Cmd.Stdin, run.Cmd.Stdout = strings.NewReader("through\n"), &output
		if err := run.Run(); err != nil || output.String() != "through\n" {
			t.Errorf("cat: %v, %q", err, &output)
		}
	})
}

func TestTerminal(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "terminal")
		run := find(t, "terminal").Command(t.Context(), []string{"sh", "-c", "test -t 1 && echo yes"}, container.Options{TTY: true})
		var output strings.Builder
		run.Cmd.Stdout = &output
		if err := run.Run(); err != nil || strings.TrimSpace(output.String()) != "yes" {
			t.Errorf("is the output a terminal: %v, %q", err, &output)
		}
	})
}

// eachTarget runs a test in a Docker container, a podman container and by process ID.
func eachTarget(t *testing.T, test func(t *testing.T, target container.Target)) {
	eachRuntime(t, func(t *testing.T, runtime *containertest.Runtime) {
		runtime.RunContainer(t, "each")
		test(t, find(t, "each"))
	})
	t.Run("pid", func(t *testing.T) {
		containertest.StartDocker(t).RunContainer(t, "each")
		target, err := container.FromPID(find(t, "each").PID)
		if err != nil {
			t.Fatal(err)
		}
		test(t, target)
	})
}

func TestSignalReachesTool(t *testing.T) {
	eachTarget(t, func(t *testing.T, target container.Target) {
		run := target.Command(t.Context(), []string{"ping", "-i", "0.2", "127.0.0.1"}, container.Options{})
		output, err := run.Cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		pid, err := run.PID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) != "ping\n" {
			t.Errorf("process %d is %q, want ping", pid, name)
		}
		lines := bufio.NewScanner(output)
		for lines.Scan() && !strings.Contains(lines.Text(), "icmp_seq=2") {
		}
		if err := run.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		summary := ""
		for lines.Scan() {
			summary += lines.Text() + "\n"
		}
		if err := run.Wait(); err != nil {
			t.Errorf("ping after SIGINT: %s", err)
		}
		if !strings.Contains(summary, "packets transmitted") {
			t.Errorf("SIGINT did not make ping print its summary: %q", summary)
		}
		if err := run.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("Signal after the end = %v, want ErrProcessDone", err)
		}
	})
}

// stubborn ignores polite signals and has a child that does so, too.
var stubborn = []string{"sh", "-c", `trap "" INT TERM; sh -c 'while true; do sleep 77777; done' & while true; do sleep 77777; done`}

func TestCancelLeavesNothing(t *testing.T) {
	for name, argv := range map[string][]string{"polite": {"sleep", "77777"}, "stubborn": stubborn} {
		t.Run(name, func(t *testing.T) {
			eachTarget(t, func(t *testing.T, target container.Target) {
				ctx, cancel := context.WithCancel(t.Context())
				run := target.Command(ctx, argv, container.Options{})
				if err := run.Start(); err != nil {
					t.Fatal(err)
				}
				if _, err := run.PID(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
				if err := run.Wait(); err == nil {
					t.Error("Wait returned nil for a cancelled command")
				}
				if pids := sleepers(); len(pids) > 0 {
					t.Errorf("still running: %v", pids)
				}
			})
		})
	}
}

func TestCancelAtOnceLeavesNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, target container.Target) {
		for delay := range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			run := target.Command(ctx, []string{"sleep", "77777"}, container.Options{})
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(delay*30) * time.Millisecond)
			cancel()
			if err := run.Wait(); err == nil {
				t.Error("Wait returned nil for a cancelled command")
			}
			if pids := sleepers(); len(pids) > 0 {
				t.Errorf("still running: %v", pids)
			}
		}
	})
}

func TestDeathLeavesNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, target container.Target) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		helper := exec.Command(self)
		helper.Env = append(os.Environ(), helperVariable+"="+target.String())
		helper.Stderr = os.Stderr
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, "the tool runs", func() bool { return len(sleepers()) > 0 })
		if err := helper.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = helper.Wait()
		waitUntil(t, "the tool is gone", func() bool { return len(sleepers()) == 0 })
	})
}

func runSleepIn(name string) {
	var target container.Target
	var pid int
	_, err := fmt.Sscanf(name, "process %d", &pid)
	if err == nil {
		target, err = container.FromPID(pid)
	} else {
		target, err = container.Find(context.Background(), name)
	}
	if err == nil {
		err = target.Command(context.Background(), []string{"sleep", "77777"}, container.Options{}).Run()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// sleepers lists the tools of these tests that run: those that sleep for their very own time.
func sleepers() []int {
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path)
		if strings.HasSuffix(string(line), "sleep\x0077777\x00") && !strings.Contains(string(line), "exec\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, pid)
		}
	}
	return found
}

func waitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for range 2000 {
		if condition() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited 20 s until %s", what)
}
