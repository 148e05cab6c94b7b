package arm

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// What outlives a killed process carries its owner in its name or label: the process ID and, because the kernel gives
// IDs out again, the start time in clock ticks since boot. Whoever finds a dead owner's may remove it.
const ownerPrefix = "bench-"

var linksMade atomic.Int64

// ownerTag is "bench-<pid>-<start ticks>" of this process.
func ownerTag() string {
	ticks, err := startTicks(os.Getpid())
	if err != nil {
		ticks = "0" // /proc is not there: then nothing can be swept, either
	}
	return fmt.Sprintf("%s%d-%s", ownerPrefix, os.Getpid(), ticks)
}

// newName is a name that no other link of any process has: the owner's tag and a number.
func newName() string { return fmt.Sprintf("%s-%d", ownerTag(), linksMade.Add(1)) }

// ownerGone reports whether name begins with an owner's tag and that owner is dead. A name of another kind is nobody's
// to remove.
func ownerGone(name string) bool {
	rest, ok := strings.CutPrefix(name, ownerPrefix)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "-")
	if len(parts) < 2 {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	if err != nil || pid <= 0 {
		return false
	}
	if _, err := strconv.ParseUint(parts[1], 10, 64); err != nil {
		return false
	}
	ticks, err := startTicks(pid)
	return err != nil || ticks != parts[1]
}

// startTicks is field 22 of /proc/<pid>/stat.
func startTicks(pid int) (string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The second field is the command in brackets and may hold spaces and brackets itself: count from the last one.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const start = 19
	if len(fields) <= start {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields[start], nil
}
