package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// leftovers is what a running tare holds: BPF objects, and processes that it has started, however far down.
type leftovers struct {
	t        testing.TB
	programs []ebpf.ProgramID
	maps     []ebpf.MapID
	mark     string // the entry of the environment by which its tools are known
	mounts   []string
}

// observe looks at a tare that has attached. Objects are known by their numbers, which the kernel gives to others only
// much later: by name they could be those of another tare on this machine.
func observe(t testing.TB, p *process) *leftovers {
	t.Helper()
	left := &leftovers{t: t, mounts: mounts(t)}
	left.programs, left.maps = held(p)
	if len(left.programs) == 0 {
		t.Fatalf("process %d has loaded no program", p.Process.Pid)
	}
	for _, child := range children(p.Process.Pid) {
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
		for variable := range bytes.SplitSeq(environment, []byte{0}) {
			if bytes.HasPrefix(variable, []byte("TARE_RUN=")) {
				left.mark = string(variable)
			}
		}
	}
	return left
}

// held lists the BPF objects that a process holds.
func held(p *process) (programs []ebpf.ProgramID, maps []ebpf.MapID) {
	paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", p.Process.Pid))
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // closed since
		}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			switch {
			case err != nil:
			case key == "prog_id":
				programs = append(programs, ebpf.ProgramID(id))
			case key == "map_id":
				maps = append(maps, ebpf.MapID(id))
			}
		}
	}
	return programs, maps
}

// nothing waits until all of it is gone: the kernel frees programs, and the guard ends tools, a moment later.
func (l *leftovers) nothing() {
	l.t.Helper()
	waitUntil(l.t, "its programs are unloaded", func() bool {
		for _, id := range l.programs {
			program, err := ebpf.NewProgramFromID(id)
			if !errors.Is(err, os.ErrNotExist) {
				program.Close()
				return false
			}
		}
		return true
	})
	waitUntil(l.t, "its maps are freed", func() bool {
		for _, id := range l.maps {
			kept, err := ebpf.NewMapFromID(id)
			if !errors.Is(err, os.ErrNotExist) {
				kept.Close()
				return false
			}
		}
		return true
	})
	waitUntil(l.t, "its tools have ended", func() bool { return l.mark == "" || len(processesWith(l.mark)) == 0 })
	for _, mount := range mounts(l.t) {
		if !slices.Contains(l.mounts, mount) {
			l.t.Errorf("left behind: the mount %s", mount)
		}
	}
}

// mounts lists what is mounted, but for the network namespaces of labs: tests that run meanwhile have those.
func mounts(t testing.TB) (points []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if point := strings.Fields(line)[4]; !strings.HasPrefix(point, "/run/netns/") {
			points = append(points, point)
		}
	}
	return points
}

func children(pid int) (found []int) {
	var text []byte
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		text = append(text, more...)
	}
	for field := range strings.FieldsSeq(string(text)) {
		child, _ := strconv.Atoi(field)
		found = append(found, child)
	}
	return found
}

// processesWith lists the processes whose environment has an entry.
func processesWith(entry string) (found []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, _ := os.ReadFile(path)
		if bytes.Contains(append([]byte{0}, environment...), []byte("\x00"+entry+"\x00")) {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}
