package container_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/container"
)

const (
	noSuch     = `echo "Error: No such container: $4" >&2; exit 1`
	daemonDown = `echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock." >&2; exit 1`
)

// describes is a client that knows one container.
func describes(id, status string, pid int, sandbox string) string {
	return fmt.Sprintf(`test "$*" = "container inspect -- web" || { echo "arguments: $*" >&2; exit 9; }
echo '[{"Id":"%s","Name":"/web","State":{"Status":"%s","Pid":%d},"NetworkSettings":{"SandboxKey":"%s"}}]'`, id, status, pid, sandbox)
}

func TestFindErrors(t *testing.T) {
	here := describes("aaa", "running", os.Getpid(), "/proc/self/ns/net")
	for _, test := range []struct {
		name           string
		docker, podman string // shell scripts; empty: not installed
		find           string
		want           error
		says           string
	}{
		{"nothing installed", "", "", "web", container.ErrNoRuntime, "docker: not installed; podman: not installed"},
		{"daemon down, no podman", daemonDown, "", "web", container.ErrNoRuntime, "start the Docker daemon"},
		{"daemon down, podman has none", daemonDown, noSuch, "web", container.ErrNotFound, "Cannot connect"},
		{"both have none", noSuch, noSuch, "web", container.ErrNotFound, "docker does not know it; podman does not know it"},
		{"one asked by prefix", noSuch, here, "docker:web", container.ErrNotFound, "docker does not know it"},
		{"empty name", here, "", "", container.ErrNotFound, "empty"},
		{"empty name after prefix", here, "", "docker:", container.ErrNotFound, "empty"},
		{"exited", describes("aaa", "exited", 0, ""), "", "web", container.ErrNotRunning, "docker:web is exited"},
		{"paused", describes("aaa", "paused", 42, ""), "", "web", container.ErrNotRunning, "docker:web is paused"},
		{"both have it", here, describes("bbb", "running", os.Getpid(), "/proc/self/ns/net"), "web", container.ErrAmbiguous, "docker:web or podman:web"},
		{"another machine's process ID", describes("aaa", "running", os.Getpid(), "/no/such/path"), "", "web", container.ErrElsewhere, "docker:web"},
		{"no such process ID", describes("aaa", "running", 1<<30, ""), "", "web", container.ErrElsewhere, "docker:web"},
		{"not JSON", "echo hello", "", "web", container.ErrNoRuntime, "reading what inspect printed"},
		{"no container described", "echo []", "", "web", container.ErrNoRuntime, "0 containers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeClients(t, test.docker, test.podman)
			_, err := container.Find(t.Context(), test.find)
			if !errors.Is(err, test.want) || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("Find(%q) = %v, want %q with %q", test.find, err, test.want, test.says)
			}
		})
	}
}

func TestFindAcceptsPodmanUnderDockersName(t *testing.T) {
	same := describes("aaa", "running", os.Getpid(), "/proc/self/ns/net")
	fakeClients(t, same, same)
	target, err := container.Find(t.Context(), "web")
	if err != nil || target.Runtime != container.Podman || target.PID != os.Getpid() || !target.HostNetwork {
		t.Errorf("Find = %+v, %v, want podman's on the host's network", target, err)
	}
}

func TestFindIsCancelled(t *testing.T) {
	fakeClients(t, "sleep 60", "")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := container.Find(ctx, "web"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Find = %v, want the context's error", err)
	}
}

// fakeClients puts shell scripts in the place of Docker's and podman's clients.
func fakeClients(t *testing.T, docker, podman string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{"docker": docker, "podman": podman} {
		if script == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}
