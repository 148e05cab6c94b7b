package lab

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"
)

var everyKind = Background{Floods: 3, TCP: true, UDP: true, LocalICMP: true, LocalUDP: true, LocalTCP: true}

// waitEnded fails the test if one of the processes does not end.
func waitEnded(t *testing.T, processes []Process) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for _, process := range processes {
		for process.Running() {
			if time.Now().After(deadline) {
				t.Fatalf("process %d (%s) does not end", process.PID, process.Command)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func recorded(t *testing.T, l *Lab) []Process {
	t.Helper()
	st, err := readState(l.Name())
	if err != nil {
		t.Fatal(err)
	}
	return st.Processes
}

func TestLoadFlowsAndStops(t *testing.T) {
	l := up(t, Options{Containers: 3})
	before := nicBytes(t, l)
	load, err := l.StartBackground(context.Background(), everyKind)
	if err != nil {
		t.Fatal(err)
	}
	processes := load.Processes()
	// Four pings, and a sender and a receiver for each of four streams.
	if len(processes) != 12 || len(recorded(t, l)) != 12 {
		t.Errorf("%d processes, %d of them recorded; want 12", len(processes), len(recorded(t, l)))
	}
	for _, process := range processes {
		if process.Host == Container(1) {
			t.Errorf("%s runs in c1, which is for the measurement", process.Command)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); nicBytes(t, l)-before < 1<<20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("less than a megabyte leaves by the NIC")
		}
	}
	if err := load.Stop(); err != nil {
		t.Error(err)
	}
	if err := load.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	waitEnded(t, processes)
	if left := recorded(t, l); len(left) != 0 {
		t.Errorf("still recorded: %v", left)
	}
}

func TestLoadEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*testing.T, *Lab, context.CancelFunc)
		life time.Duration
	}{
		{"after its time", func(*testing.T, *Lab, context.CancelFunc) {}, time.Second},
		{"with its context", func(_ *testing.T, _ *Lab, cancel context.CancelFunc) { cancel() }, time.Minute},
		{"with the lab", func(t *testing.T, l *Lab, _ context.CancelFunc) {
			removed, err := Down(l.Name())
			if err != nil || len(removed.Killed) == 0 || len(removed.Lingering) != 0 {
				t.Errorf("removed %+v, %v", removed, err)
			}
		}, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := up(t, Options{Containers: 2})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			background := everyKind
			background.For = tt.life
			load, err := l.StartBackground(ctx, background)
			if err != nil {
				t.Fatal(err)
			}
			tt.end(t, l, cancel)
			select {
			case <-load.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("the load does not end")
			}
			if err := load.Stop(); err != nil {
				t.Error(err)
			}
			waitEnded(t, load.Processes())
		})
	}
}

func TestLoadDiesWithItsParent(t *testing.T) {
	l := up(t, Options{Containers: 3})
	parent := child("load", l.Name(), 0)
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	processes := recorded(t, l)
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if err != nil || line != "started\n" || len(processes) != 6 {
		t.Fatalf("the child says %q (%v) with %d processes, want 6", line, err, len(processes))
	}
	waitEnded(t, processes)
	// What it left in the file hinders nobody.
	load, err := l.StartBackground(context.Background(), Background{Floods: 1})
	if err != nil {
		t.Fatal(err)
	}
	if left := recorded(t, l); len(left) != 1 {
		t.Errorf("%d processes recorded, want 1", len(left))
	}
	if err := load.Stop(); err != nil {
		t.Error(err)
	}
}

func TestFloodsArePinnedInTurn(t *testing.T) {
	cpus, err := allowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	l := up(t, Options{Containers: 2})
	load, err := l.StartBackground(context.Background(), Background{Floods: len(cpus) + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer load.Stop()
	for i, process := range load.Processes() {
		if !strings.HasPrefix(process.Command, "ping -f") {
			t.Errorf("flood %d is %q", i, process.Command)
		}
		got, err := affinityOf(process.PID)
		if err != nil {
			t.Fatal(err)
		}
		if want := cpus[i%len(cpus)]; len(got) != 1 || got[0] != want {
			t.Errorf("flood %d may run on CPUs %v, want %d alone", i, got, want)
		}
	}
}
