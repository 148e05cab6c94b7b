package containertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	podmanState = "/var/lib/containers"
	podmanGroup = "libpod_parent" // where podman puts its monitors, whatever parent a container is given
)

// runReaper runs the inner process and afterwards ends everything it left. Daemons leave their parents, and
// containers' shims leave the daemons; as their sub-reaper this process inherits them all the same.
func runReaper() (int, error) {
	runtime.LockOSThread() // for the parent-death signal, as in runOuter
	dir := os.Getenv(dirVariable)
	// Podman keeps a cache here whatever storage it is told to use; the private host covers it.
	if os.Mkdir(podmanState, 0o711) == nil {
		defer os.Remove(podmanState)
	}
	groups := []string{filepath.Base(dir)}
	if len(controlGroups(podmanGroup)) == 0 {
		groups = append(groups, podmanGroup)
	}
	defer cleanUp(dir, groups)

	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming a sub-reaper: %w", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if strconv.Itoa(os.Getppid()) != os.Getenv(parentVariable) {
		return 0, errors.New("the test process died before its reaper was ready")
	}
	inner := self(roleInner)
	inner.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := inner.Start(); err != nil {
		return 0, fmt.Errorf("starting the tests: %w", err)
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGQUIT { // a time limit's request for stack traces
				_ = syscall.Kill(inner.Process.Pid, syscall.SIGQUIT)
				continue
			}
			_ = syscall.Kill(inner.Process.Pid, syscall.SIGKILL)
		}
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("waiting for the tests: %w", err)
		case pid == inner.Process.Pid:
			return exitCode(status), nil
		}
	}
}

// cleanUp kills every descendant, and removes what does not go with the namespaces: control groups and files.
func cleanUp(dir string, groups []string) {
	for {
		for _, pid := range descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				for _, name := range groups {
					for _, group := range slices.Backward(controlGroups(name)) {
						_ = os.Remove(group)
					}
				}
				_ = os.RemoveAll(dir)
				return
			}
			if pid <= 0 {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// descendants lists the processes below one, from the parents that /proc shows.
func descendants(root int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// The name, in parentheses, may hold blanks and parentheses: the parent is the second field after it.
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		parent, _ := strconv.Atoi(fields[1])
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], pid)
	}
	found := slices.Clone(children[root])
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// controlGroups lists the top-level groups called name, and those in them, of every hierarchy, parents first.
func controlGroups(name string) []string {
	var groups []string
	roots, _ := filepath.Glob("/sys/fs/cgroup/*/" + name)
	for _, root := range append(roots, "/sys/fs/cgroup/"+name) {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
	}
	return groups
}
