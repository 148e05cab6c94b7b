package docknet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"tare/docknet/dockctl"
)

// idleTime is how long idle processes are watched.
const idleTime = 2 * time.Second

// Idle is the share of one CPU that processes with nothing to do take.
type Idle struct {
	DaemonPercent    float64 `json:"daemon_cpu_percent"`
	ContainerPercent float64 `json:"container_cpu_percent"` // a server whose pipe is attached
}

// measureIdle watches daemon and a server before anybody has asked it for anything.
func (r *runner) measureIdle(ctx context.Context) error {
	n, err := dockctl.Open(netName)
	if err != nil {
		return err
	}
	client, err := n.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	info, err := client.Info()
	if err != nil {
		return err
	}
	pipes, err := client.Pipes()
	if err != nil {
		return err
	}
	container := 0
	for _, p := range pipes {
		if p.Name == "server-"+string(TwoCores) {
			container = p.PID
		}
	}
	r.progress("watching idle processes", 0.01)
	var before, after [2]time.Duration
	began := time.Now()
	for i, pid := range []int{info.PID, container} {
		if before[i], err = cpuTime(pid); err != nil {
			return err
		}
	}
	select {
	case <-time.After(idleTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for i, pid := range []int{info.PID, container} {
		if after[i], err = cpuTime(pid); err != nil {
			return err
		}
	}
	passed := time.Since(began)
	percent := func(i int) float64 { return 100 * float64(after[i]-before[i]) / float64(passed) }
	r.idle = Idle{DaemonPercent: percent(0), ContainerPercent: percent(1)}
	return nil
}

// cpuTime is what all threads of a process have run. The first number of schedstat is in nanoseconds, where the ticks of
// stat are 10 ms: 0.5% of the time that is watched.
func cpuTime(pid int) (total time.Duration, err error) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if len(files) == 0 {
		return 0, fmt.Errorf("reading the CPU time of process %d: it is gone, or this kernel has no schedstat", pid)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
		}
		total += time.Duration(ns)
	}
	return total, nil
}
