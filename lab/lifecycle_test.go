package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary starts itself to be killed; childRole in the environment says what for.
const (
	childRole = "TARE_LAB_TEST_CHILD"
	childLab  = "TARE_LAB_TEST_NAME"
	childStep = "TARE_LAB_TEST_STEP"
)

func childMain(role string) {
	name := os.Getenv(childLab)
	var err error
	switch role {
	case "up":
		step, _ := strconv.Atoi(os.Getenv(childStep))
		_, err = Up(&killingContext{Context: context.Background(), left: step}, Options{Name: name, Containers: 4, Network: NetworkVXLAN, RPS: true})
	case "up-delays":
		step, _ := strconv.Atoi(os.Getenv(childStep))
		_, err = Up(&killingContext{Context: context.Background(), left: step}, Options{Name: name, Delays: []Delay{
			{At: "c1", By: DelayByForwarder}, {At: "nic", By: DelayByBusyCPU, Time: time.Millisecond}, {At: "remote", By: DelayByTBF, Time: time.Millisecond}}})
	case "load":
		var l *Lab
		if l, err = Open(name); err == nil {
			_, err = l.StartBackground(context.Background(), Background{Floods: 2, TCP: true, LocalUDP: true, For: time.Minute})
		}
		fmt.Println("started")
		if err == nil {
			select {}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// killingContext kills its process when it is asked for its error often enough. Up asks before every step.
type killingContext struct {
	context.Context
	left int
}

func (c *killingContext) Err() error {
	if c.left--; c.left == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return nil
}

func child(role, name string, step int) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childRole+"="+role, childLab+"="+name, childStep+"="+strconv.Itoa(step))
	return cmd
}

func TestKilledWhileMaking(t *testing.T) {
	name := testLabName()
	t.Cleanup(func() {
		_, _ = Down(name)
		checkNothingLeft(t, name)
	})
	kills := 0
	for step := 1; ; step++ {
		cmd := child("up", name, step)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if err == nil {
			break // it has fewer steps than that: Up also repaired what the one before left
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: %v: %s", step, err, stderr.String())
		}
		kills++
		if _, err := Open(name); !errors.Is(err, ErrIncomplete) {
			t.Fatalf("killed at step %d: Open says %v, want ErrIncomplete", step, err)
		}
		if step%2 == 0 { // every other time the next Up has to clean up
			if _, err := Down(name); err != nil {
				t.Fatalf("killed at step %d: %v", step, err)
			}
			checkNothingLeft(t, name)
		}
	}
	if kills < 10 {
		t.Errorf("killed at %d steps, want 10 or more", kills)
	}
	l, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	run(t, l, "c4", "ping", "-c1", "-W5", l.RemoteAddr4().String())
}

func TestDownOfNothing(t *testing.T) {
	name := testLabName()
	if _, err := Down(name); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, err := Open(name); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	checkNothingLeft(t, name)
}

func TestDownWithoutItsState(t *testing.T) {
	for _, damage := range []string{"removed", "garbled"} {
		t.Run(damage, func(t *testing.T) {
			l := up(t, Options{})
			var err error
			if damage == "removed" {
				err = os.Remove(statePath(l.Name()))
			} else {
				err = os.WriteFile(statePath(l.Name()), []byte("{"), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			removed, err := Down(l.Name())
			if err != nil || len(removed.Namespaces) != 3 {
				t.Errorf("removed %v, %v; want 3 namespaces", removed.Namespaces, err)
			}
			checkNothingLeft(t, l.Name())
		})
	}
}

// A file that somebody edited must not lead to other processes and namespaces.
func TestDownHarmsNoOthers(t *testing.T) {
	bystander := exec.Command("sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = bystander.Process.Kill()
		_ = bystander.Wait()
	}()
	other, l := up(t, Options{}), up(t, Options{})
	st, err := readState(l.Name())
	if err != nil {
		t.Fatal(err)
	}
	ticks, _, err := startTicks(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	// The pid of the bystander, from when it was somebody else's.
	st.Processes = append(st.Processes, Process{PID: bystander.Process.Pid, StartTicks: ticks - 1, BootID: bootID(), Host: "c1", Command: "ping"})
	st.Namespaces = append(st.Namespaces, other.NetNSName(Host))
	if err := writeState(st); err != nil {
		t.Fatal(err)
	}
	removed, err := Down(l.Name())
	if err != nil || len(removed.Killed) != 0 {
		t.Errorf("killed %v, %v; want none", removed.Killed, err)
	}
	if !(Process{PID: bystander.Process.Pid, StartTicks: ticks, BootID: bootID()}).Running() {
		t.Error("the bystander is dead")
	}
	if _, err := Open(other.Name()); err != nil {
		t.Error(err)
	}
}

func TestDownReportsLingeringProcesses(t *testing.T) {
	l := up(t, Options{})
	shell := l.Command(context.Background(), "c1", "sh", "-c", "echo ready; exec sleep 60")
	stdout, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
	}()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	nsFile := fmt.Sprintf("/proc/%d/ns/net", shell.Process.Pid)
	removed, err := Down(l.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint([]int{shell.Process.Pid}); fmt.Sprint(removed.Lingering) != want {
		t.Errorf("lingering processes %v, want %s", removed.Lingering, want)
	}
	// Its namespace has no devices any more.
	err = inNetNSWithSysfs(nsFile, func() error {
		devices, err := os.ReadDir("/sys/class/net")
		if err == nil && (len(devices) != 1 || devices[0].Name() != "lo") {
			err = fmt.Errorf("devices that remain: %v", devices)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestConcurrentUps(t *testing.T) {
	name := testLabName()
	t.Cleanup(func() {
		if _, err := Down(name); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, name)
	})
	// The first one stands still in the middle while the others try.
	reached, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := Up(&waitingContext{Context: context.Background(), reached: reached, goOn: goOn}, Options{Name: name})
		first <- err
	}()
	<-reached
	if _, err := Up(context.Background(), Options{Name: name}); !errors.Is(err, ErrBusy) {
		t.Errorf("second Up: %v, want ErrBusy", err)
	}
	if _, err := Down(name); !errors.Is(err, ErrBusy) {
		t.Errorf("Down: %v, want ErrBusy", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Fatalf("first Up: %v", err)
	}
	if _, err := Up(context.Background(), Options{Name: name}); !errors.Is(err, ErrExists) {
		t.Errorf("third Up: %v, want ErrExists", err)
	}
}

type waitingContext struct {
	context.Context
	reached, goOn chan struct{}
	asked         bool
}

func (c *waitingContext) Err() error {
	if !c.asked {
		c.asked = true
		close(c.reached)
		<-c.goOn
	}
	return nil
}

func TestUpCancelled(t *testing.T) {
	name := testLabName()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Up(ctx, Options{Name: name}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	checkNothingLeft(t, name)
}

func TestCommand(t *testing.T) {
	l := up(t, Options{})
	ctx := context.Background()
	if out := run(t, l, "c1", "ip", "-o", "addr", "show", "eth0"); !strings.Contains(out, "10.77.0.2/24") {
		t.Errorf("c1 shows %s", out)
	}
	var exit *exec.ExitError
	if err := l.Command(ctx, "c1", "sh", "-c", "exit 7").Run(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("got %v, want exit code 7", err)
	}
	if err := l.Command(ctx, "c2", "true").Run(); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown host: %v, want ErrInvalid", err)
	}
	if err := l.Command(ctx, "c1").Run(); err == nil {
		t.Error("no command at all runs, want an error")
	}
	cmd := exec.Command("ip", "-o", "addr", "show", "eth0")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := l.Start(Remote, cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "10.78.0.2/24") {
		t.Errorf("remote shows %s, %v", out.String(), err)
	}
}

// A test that fails inside Do leaves by Goexit; Do must come back, and this process must stay where it was.
func TestDoComesBack(t *testing.T) {
	l := up(t, Options{})
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Do("c1", func() error { runtime.Goexit(); return nil }) }()
	select {
	case err := <-done:
		if err == nil {
			t.Error("no error, want one")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Do does not return")
	}
	for range 50 {
		if err := l.Do("c1", func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if after, _ := os.Readlink("/proc/self/ns/net"); after != before {
		t.Errorf("the process is in %s now, was in %s", after, before)
	}
}

func TestOpenMissesANamespace(t *testing.T) {
	l := up(t, Options{})
	if err := deleteNetNS(l.NetNSName(Remote)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(l.Name()); !errors.Is(err, ErrIncomplete) {
		t.Errorf("got %v, want ErrIncomplete", err)
	}
}
