package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one that a lab started. A pid alone is no identity: the kernel gives it out again.
type Process struct {
	PID int `json:"pid"`
	// StartTicks is field 22 of /proc/<pid>/stat: clock ticks from boot to the process's start.
	StartTicks uint64 `json:"start_ticks"`
	// BootID is /proc/sys/kernel/random/boot_id: ticks mean nothing after a reboot.
	BootID  string `json:"boot_id"`
	Host    string `json:"host"`
	Command string `json:"command"`
}

func newProcess(pid int, host, command string) (Process, error) {
	ticks, _, err := startTicks(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{PID: pid, StartTicks: ticks, BootID: bootID(), Host: host, Command: command}, nil
}

// Running tells whether the very process is still there; a zombie is not.
func (p Process) Running() bool {
	ticks, zombie, err := startTicks(p.PID)
	return err == nil && !zombie && ticks == p.StartTicks && p.BootID == bootID()
}

func runningOf(processes []Process) []Process {
	running := []Process{}
	for _, process := range processes {
		if process.Running() {
			running = append(running, process)
		}
	}
	return running
}

// kill ends the process and waits for it; it does nothing if the pid is somebody else's by now.
func (p Process) kill() error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d (%s): %w", p.PID, p.Command, err)
	}
	defer unix.Close(fd)
	// The file descriptor pins the process, so what is verified now is what is signalled then.
	if !p.Running() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("killing process %d (%s): %w", p.PID, p.Command, err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d (%s): %w", p.PID, p.Command, err)
		}
	}
	return fmt.Errorf("process %d (%s) does not die", p.PID, p.Command)
}

func startTicks(pid int) (ticks uint64, zombie bool, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false, err
	}
	// The second field is the command in brackets and may hold spaces and brackets itself: count from the last one.
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return 0, false, fmt.Errorf("reading /proc/%d/stat: no command in %q", pid, text)
	}
	fields := strings.Fields(string(text[end+1:]))
	const state, start = 0, 19 // fields 3 and 22 of the whole line
	if len(fields) <= start {
		return 0, false, fmt.Errorf("reading /proc/%d/stat: %d fields", pid, len(fields)+2)
	}
	ticks, err = strconv.ParseUint(fields[start], 10, 64)
	return ticks, fields[state] == "Z" || fields[state] == "X", err
}

func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// processesIn lists the processes whose main thread is in one of the given namespace files, the caller excepted.
func processesIn(paths []string) []int {
	inodes := map[uint64]bool{}
	for _, path := range paths {
		var st unix.Stat_t
		if isNetNS(path) && unix.Stat(path, &st) == nil {
			inodes[st.Ino] = true
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var st unix.Stat_t
		if unix.Stat("/proc/"+entry.Name()+"/ns/net", &st) == nil && inodes[st.Ino] {
			pids = append(pids, pid)
		}
	}
	return pids
}
