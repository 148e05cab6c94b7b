package docknet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Placement says where everything of an arm runs: client, server, and the daemons between them.
type Placement string

const (
	TwoCores Placement = "two-cores" // client and server on a core each, daemons on either, as the scheduler likes
	OneCore  Placement = "one-core"  // all on the same
)

// Placements are all of them.
var Placements = []Placement{TwoCores, OneCore}

// twoCPUs are those that everything runs on.
func twoCPUs() (cpus [2]int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return cpus, fmt.Errorf("finding two CPUs: %w", err)
	}
	found := 0
	for cpu := 0; cpu < len(set)*64 && found < 2; cpu++ {
		if set.IsSet(cpu) {
			cpus[found] = cpu
			found++
		}
	}
	if found < 2 {
		return cpus, errors.New("the benchmark needs two CPUs, and this process may use one only: see taskset -p $$")
	}
	return cpus, nil
}

// client, server and daemons are the CPUs of each.
func (p Placement) client(cpus [2]int) int { return cpus[0] }

func (p Placement) server(cpus [2]int) int {
	if p == OneCore {
		return cpus[0]
	}
	return cpus[1]
}

func (p Placement) daemons(cpus [2]int) []int {
	if p == OneCore {
		return cpus[:1]
	}
	return cpus[:]
}

// pin binds all threads of a process.
func pin(pid int, cpus []int) error {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		return fmt.Errorf("pinning process %d: it is gone", pid)
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pinning thread %d of process %d: %w", tid, pid, err)
		}
	}
	return nil
}

// children are the processes that this one has started and not yet waited for.
func children() (pids map[int]bool) {
	pids = map[int]bool{}
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids[pid] = true
			}
		}
	}
	return pids
}
