package dockctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// endPatience bounds the wait for a daemon's end; after that it is killed.
const endPatience = 5 * time.Second

// Down ends the daemon and removes all of the net. The error is ErrNotUp if there was nothing to remove.
func (n *Net) Down() error {
	if _, err := os.Stat(n.dir); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("net %q %w", n.name, ErrNotUp)
	} else if err != nil {
		return fmt.Errorf("looking at net %q: %w", n.name, err)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("taking net %q down: %w", n.name, os.ErrPermission)
	}
	pid := n.lockHolder()
	if client, err := n.Dial(); err == nil {
		_ = client.shutdown() // what does not end by itself is ended below
		client.Close()
	}
	if !n.waitForEnd(endPatience) {
		if err := killDaemon(pid); err != nil {
			return fmt.Errorf("ending the dockdaemon of net %q: %w", n.name, err)
		}
		if !n.waitForEnd(endPatience) {
			return fmt.Errorf("ending the dockdaemon of net %q: process %d does not die", n.name, pid)
		}
	}
	n.releaseNIC()
	if err := os.RemoveAll(n.dir); err != nil {
		return fmt.Errorf("removing net %q: %w", n.name, err)
	}
	os.Remove(stateDir) // fails while there are other nets
	return nil
}

// running tells whether a daemon holds the net's lock. The kernel releases it when the daemon dies.
func (n *Net) running() bool {
	file, err := os.Open(filepath.Join(n.dir, "lock"))
	if err != nil {
		return false
	}
	defer file.Close()
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func (n *Net) waitForEnd(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); n.running(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// lockHolder is the process ID that the daemon wrote into its lock, 0 if none.
func (n *Net) lockHolder() int {
	text, _ := os.ReadFile(filepath.Join(n.dir, "lock"))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// killDaemon kills a dockdaemon that does not end, and never another process that has its number by now.
func killDaemon(pid int) error {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(name)); got != "dockdaemon" {
		return fmt.Errorf("process %d is %q, not dockdaemon", pid, got)
	}
	return unix.Kill(pid, unix.SIGKILL)
}
