package lab

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// residents lists the processes that work for a lab, known to its state or not.
func residents(t *testing.T, name string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		text, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if bytes.HasPrefix(text, []byte(residentArgv0+"\x00"+name+"\x00")) {
			found = append(found, entry.Name())
		}
	}
	return found
}

func waitNoResidents(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(residents(t, name)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("processes %v of lab %s do not end", residents(t, name), name)
		}
	}
}

func TestDelaysKilledWhileMaking(t *testing.T) {
	name := testLabName()
	t.Cleanup(func() {
		_, _ = Down(name)
		checkNothingLeft(t, name)
	})
	kills := 0
	for step := 1; ; step++ {
		cmd := child("up-delays", name, step)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if err == nil {
			break
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: %v: %s", step, err, stderr.String())
		}
		kills++
		if step%2 == 0 {
			if _, err := Down(name); err != nil {
				t.Fatalf("killed at step %d: %v", step, err)
			}
			checkNothingLeft(t, name)
			waitNoResidents(t, name)
		}
	}
	if kills < 10 {
		t.Errorf("killed at %d steps, want 10 or more", kills)
	}
	if n := len(residents(t, name)); n != 2 {
		t.Errorf("%d processes, want those of the last Up: 2", n)
	}
	if _, err := Down(name); err != nil {
		t.Fatal(err)
	}
	waitNoResidents(t, name)
}

// What Down cannot know of ends by itself.
func TestResidentsEndWithTheState(t *testing.T) {
	l := up(t, Options{Delays: []Delay{{At: "nic", By: DelayByForwarder}, {At: "veth1", By: DelayByBusyCPU, Time: time.Millisecond}}})
	if n := len(residents(t, l.Name())); n != 2 {
		t.Fatalf("%d processes, want 2", n)
	}
	if err := os.Remove(statePath(l.Name())); err != nil {
		t.Fatal(err)
	}
	waitNoResidents(t, l.Name())
}

// One process per CPU keeps it busy: the one that is named, or the last.
func TestBusyCPU(t *testing.T) {
	cpus, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	l := up(t, Options{Delays: []Delay{{At: "nic", By: DelayByBusyCPU, Time: time.Millisecond}}})
	process := recorded(t, l)[0]
	// Its only thread that is tied to a CPU is the busy one.
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(process.PID) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	tied := 0
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if allowed, err := affinityOf(tid); err == nil && len(allowed) == 1 && allowed[0] == cpus[len(cpus)-1] {
			tied++
		}
	}
	if want := 1; tied < want || runtime.NumCPU() > 1 && tied != want {
		t.Errorf("%d threads of %d are tied to CPU %d, want 1", tied, len(tasks), cpus[len(cpus)-1])
	}
}
