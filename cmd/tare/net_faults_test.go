package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitFor waits until something is so.
func (n testNet) waitFor(what string, so func() bool) {
	n.Helper()
	for range 1000 {
		if so() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	n.Fatalf("waited 20 s for %s", what)
}

// kill ends a process where it stands, and waits until it is no more.
func (n testNet) kill(pid int) {
	n.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		n.Fatal(err)
	}
	n.waitFor("the end of a killed process", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(status), ") Z ")
	})
}

// refuses runs tare net and expects exit code 1 and one line that says these things.
func (n testNet) refuses(says []string, args ...string) {
	n.Helper()
	output, err := n.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() == 0 || strings.Count(string(output), "\n") != 1 {
		n.Errorf("tare net %s: %v, want a failure and one line:\n%s", strings.Join(args, " "), err, output)
	}
	for _, s := range says {
		if !strings.Contains(string(output), s) {
			n.Errorf("tare net %s: want %q in\n%s", strings.Join(args, " "), s, output)
		}
	}
}

// TestNetFaults: what is refused, by command and by library, and containers that end badly.
func TestNetFaults(t *testing.T) {
	n := testNet{t, freshName("f"), dockNetPrograms(t)}
	t.Cleanup(func() { _ = n.command("down").Run() })

	t.Run("NICs", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		for _, kind := range []string{"af_xdp", "af_packet"} {
			n.refuses([]string{"there is no network interface", "no-such-nic"}, "up", "--nic", kind+":no-such-nic")
		}
		n.refuses([]string{"no such PCI device", "0000:ff:1f.7"}, "up", "--nic", "pci:0000:ff:1f.7")
		n.refuses([]string{"there is an interface lo already"}, "up", "--nic", "tap:lo")
		n.refuses([]string{"carrier-pigeon"}, "up", "--nic", "carrier-pigeon:1")
		o := newOutside(t, "nic-faults", 9000, false)
		n.refuses([]string{"XDP", "ip link set nic-faults mtu", "af_packet"}, "up", "--nic", "af_xdp:"+o.nic)
		if _, err := os.Stat("/run/tare/net/" + n.name); err == nil {
			t.Error("a net that did not start left its directory")
		}
	})
	n.run("up")
	n.run("add", "a", "--ip", "10.50.0.2/24", "--ip6", "fd50::2/64")
	n.run("add", "b", "--ip", "10.50.0.3/24")

	t.Run("addresses and names", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.refuses([]string{"10.50.0.2 is pipe a's"}, "add", "c", "--ip", "10.50.0.2/16")
		n.refuses([]string{"fd50::2 is pipe a's"}, "add", "c", "--ip", "10.50.0.9/24", "--ip6", "fd50::2/64")
		n.refuses([]string{"a"}, "add", "a", "--ip", "10.50.0.8/24")
		n.refuses([]string{"c"}, "rm", "c")
		n.run("add", "c", "--ip", "10.50.0.9/24") // of what was refused nothing remains
		n.run("rm", "c")
	})
	t.Run("permission", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		nobody := n.command("list")
		nobody.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		// A copy: the test binary may lie where only root comes.
		if tare, err := exec.LookPath("tare"); err == nil {
			if nobody.Path, err = copyProgram(tare, n.build); err != nil {
				t.Fatal(err)
			}
		}
		if output, err := nobody.CombinedOutput(); err == nil || !strings.Contains(string(output), "root") {
			t.Errorf("tare net list by nobody: %v\n%s", err, output)
		}
		// The library, by a user that is not the pipe's.
		echo := exec.Command(filepath.Join(n.build, "docknet-echo"), "7")
		echo.Env = []string{"DOCKNET_PIPE=/run/tare/net/" + n.name + "/pipes/a"}
		echo.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if output, err := echo.CombinedOutput(); err == nil || !strings.Contains(string(output), "Permission denied") {
			t.Errorf("docknet-echo by nobody: %v\n%s", err, output)
		}
	})
	t.Run("second user of a pipe", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.serve("a", "docknet-echo", "7")
		n.refuses([]string{"another process has attached to this pipe"}, n.program("a", "docknet-echo", "8")...)
	})
	t.Run("killed in the middle of a frame", func(t *testing.T) {
		n := testNet{t, n.name, n.build}
		n.waitAttached("a", false)
		n.serve("b", "docknet-echo", "7")
		for range 5 {
			half := n.command(n.peer("a", "half")...)
			half.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			said, err := half.StdoutPipe()
			if err == nil {
				err = half.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(said).ReadString('\n'); line != "attached\n" {
				t.Errorf("the peer says %q, %v", line, err)
			}
			_ = syscall.Kill(-half.Process.Pid, syscall.SIGKILL)
			_ = half.Wait()
			n.waitAttached("a", false)
		}
		n.run(n.program("a", "docknet-check", "echo", "10.50.0.3", "7", "1000000")...) // the pipe is as good as new
	})
}

func copyProgram(from, dir string) (string, error) {
	text, err := os.ReadFile(from)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, filepath.Base(from))
	return to, os.WriteFile(to, text, 0o755)
}
