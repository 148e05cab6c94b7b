package container

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processStat is what /proc/PID/stat says, as far as needed.
type processStat struct {
	state   string
	started uint64 // clock ticks since boot
}

func (s processStat) dead() bool { return s.state == "Z" || s.state == "X" }

func readStat(pid int) (processStat, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return processStat{}, err
	}
	// The name, in parentheses, may itself hold blanks and parentheses. Fields as proc_pid_stat(5) counts them: the
	// state is the third, the start time the twenty-second.
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return processStat{}, fmt.Errorf("/proc/%d/stat is too short: %q", pid, text)
	}
	started, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return processStat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return processStat{state: fields[0], started: started}, nil
}

// marked lists the processes whose environment holds the entry, the oldest first. A tool's children inherit the
// environment, so this finds the whole family; and as the entry is random and told to nobody else, no process of
// the host or of another container is ever among them.
func marked(entry string) []int {
	type process struct {
		pid     int
		started uint64
	}
	var found []process
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !hasEntry(environment, entry) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if stat, err := readStat(pid); err == nil && !stat.dead() {
			found = append(found, process{pid, stat.started})
		}
	}
	slices.SortFunc(found, func(a, b process) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.pid, b.pid))
	})
	pids := make([]int, len(found))
	for i, process := range found {
		pids[i] = process.pid
	}
	return pids
}

func hasEntry(environment []byte, entry string) bool {
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if string(variable) == entry {
			return true
		}
	}
	return false
}

// signalMarked sends a signal to a process that still holds the entry, and only to that: the descriptor pins the
// process while its environment is read, so a number that was given to another process in the meantime is harmless.
func signalMarked(pid int, entry string, signal unix.Signal) error {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return ignoreGone(err)
	}
	defer unix.Close(pidfd)
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !hasEntry(environment, entry) {
		return ignoreGone(err)
	}
	return ignoreGone(unix.PidfdSendSignal(pidfd, signal, nil, 0))
}

// ignoreGone makes a success of what fails because the process has ended.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
