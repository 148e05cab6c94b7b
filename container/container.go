// Package container finds the container that a measurement is about, and runs a tool in it.
//
//	target, err := container.Find(ctx, "web")        // or FromPID, FromNetNS
//	cookie, err := container.NetNSCookie(target.NetNSPath)
//	run := target.Command(ctx, []string{"ping", "-c1", "192.0.2.1"}, container.Options{})
//	run.Cmd.Stdout = os.Stdout
//	err = run.Run()
package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Runtime says what made a target and how commands get into it.
type Runtime string

// The kinds of target.
const (
	Docker Runtime = "docker"
	Podman Runtime = "podman"
	PID    Runtime = "pid"   // the network namespace of some process: its tools are the host's
	NetNS  Runtime = "netns" // a network namespace by path or name: its tools are the host's
)

// Target is a network namespace to measure in and, for Docker and podman, the container it belongs to.
type Target struct {
	Runtime Runtime
	ID      string // the container's full ID, else empty
	Name    string // what a person calls it: a container's name, a process ID, a namespace's name
	PID     int    // the process that keeps the namespace alive, in this process's PID namespace; 0 for NetNS
	// NetNSPath opens the network namespace. It was verified to when the target was made, and is only good as long
	// as Alive says so.
	NetNSPath string
	// HostNetwork is set where the target shares this process's network namespace: nothing lies between the two,
	// so there is nothing to subtract.
	HostNetwork bool

	started uint64 // when PID started, in clock ticks since boot: tells it from a later process of the same number
}

// ErrGone means that a target's process or namespace does not exist, or no longer.
var ErrGone = errors.New("does not exist")

// FromPID returns the network namespace of a process.
func FromPID(pid int) (Target, error) {
	target := Target{Runtime: PID, Name: fmt.Sprint(pid), PID: pid, NetNSPath: fmt.Sprintf("/proc/%d/ns/net", pid)}
	stat, err := readStat(pid)
	if err != nil {
		return Target{}, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	if stat.dead() {
		return Target{}, fmt.Errorf("process %d has ended and has no network namespace: %w", pid, ErrGone)
	}
	target.started = stat.started
	if target.HostNetwork, err = isOwnNetNS(target.NetNSPath); err != nil {
		return Target{}, fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	return target, nil
}

// netnsDir is where 'ip netns' keeps namespaces by name.
const netnsDir = "/run/netns"

// FromNetNS returns a network namespace by path, or by the name that 'ip netns' knows it by.
func FromNetNS(pathOrName string) (Target, error) {
	path := pathOrName
	if !strings.Contains(pathOrName, "/") {
		path = filepath.Join(netnsDir, pathOrName)
	}
	shared, err := isOwnNetNS(path)
	switch {
	case pathOrName == "" || errors.Is(err, os.ErrNotExist):
		return Target{}, fmt.Errorf("network namespace %q (%s): %w", pathOrName, path, ErrGone)
	case err != nil:
		return Target{}, fmt.Errorf("network namespace %q: %w", pathOrName, err)
	}
	return Target{Runtime: NetNS, Name: pathOrName, NetNSPath: path, HostNetwork: shared}, nil
}

func (t Target) String() string {
	if t.Runtime == PID {
		return "process " + t.Name
	}
	return string(t.Runtime) + ":" + t.Name
}

// HasOwnTools reports whether commands run in the target are its own; else they are the host's.
func (t Target) HasOwnTools() bool { return t.isContainer() }

// isContainer tells targets with file systems and tools of their own from mere network namespaces.
func (t Target) isContainer() bool { return t.Runtime == Docker || t.Runtime == Podman }

// Alive reports whether the target still is what it was when it was found. A container that was restarted is
// another target: its network namespace is a new one.
func (t Target) Alive() bool {
	if t.PID == 0 {
		_, err := isOwnNetNS(t.NetNSPath)
		return err == nil
	}
	stat, err := readStat(t.PID)
	if err != nil || stat.started != t.started || stat.dead() {
		return false
	}
	// A process that is about to end has left its namespaces already.
	_, err = os.Readlink(t.NetNSPath)
	return !errors.Is(err, os.ErrNotExist)
}

// Watch returns a channel that is closed when the target's process ends, or ctx does. A target without a process
// is looked at once a second: nothing announces the end of a namespace.
func (t Target) Watch(ctx context.Context) (<-chan struct{}, error) {
	if t.PID == 0 {
		return t.watchPath(ctx), nil
	}
	pidfd, err := unix.PidfdOpen(t.PID, 0)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", t, err)
	}
	// Only now that a descriptor holds the process does its start time prove that it is the right one.
	if !t.Alive() {
		unix.Close(pidfd)
		return nil, fmt.Errorf("watching %s: %w", t, ErrGone)
	}
	reader, writer, err := os.Pipe() // its end of file wakes the poll when ctx is done
	if err != nil {
		unix.Close(pidfd)
		return nil, fmt.Errorf("watching %s: %w", t, err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { writer.Close() })
	go func() {
		defer close(ended)
		defer unix.Close(pidfd)
		defer reader.Close()
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}, {Fd: int32(reader.Fd()), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
				break
			}
		}
		if stop() {
			writer.Close()
		}
	}()
	return ended, nil
}

func (t Target) watchPath(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for t.Alive() {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return ended
}
