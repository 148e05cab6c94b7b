package load_test

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

var vethAddr = netip.MustParseAddr("10.79.0.2")

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// killServer kills the child of this process whose command line has the given argument.
func killServer(t *testing.T, argument string) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte("\x00"+argument+"\x00")) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return
	}
	t.Errorf("no process of this test has the argument %s", argument)
}
