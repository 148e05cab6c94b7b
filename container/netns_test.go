package container_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/container"
)

func TestFromNetNSErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, path, says string }{
		{"missing name", "no-such", "/run/netns/no-such"},
		{"missing path", "/no/such", "/no/such"},
		{"empty", "", "does not exist"},
		{"a file, as a deleted namespace leaves", file, "is not a network namespace"},
		{"another kind of namespace", "/proc/self/ns/mnt", "is not a network namespace"},
		{"a directory", "/run", "is not a network namespace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := container.FromNetNS(test.path); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("FromNetNS(%q) = %v, want it to say %q", test.path, err, test.says)
			}
			if _, err := container.NetNSCookie(test.path); err == nil {
				t.Errorf("NetNSCookie(%q) succeeded", test.path)
			}
		})
	}
}

func TestFromPIDErrors(t *testing.T) {
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	waitUntil(t, "the child is a zombie", func() bool {
		_, err := container.FromPID(zombie.Process.Pid)
		return errors.Is(err, container.ErrGone)
	})
	for _, pid := range []int{1 << 30, 0, -1} {
		if _, err := container.FromPID(pid); !errors.Is(err, container.ErrGone) {
			t.Errorf("FromPID(%d) = %v, want ErrGone", pid, err)
		}
	}
}

func TestOwnNamespaceIsHostNetwork(t *testing.T) {
	target, err := container.FromPID(os.Getpid())
	if err != nil || !target.HostNetwork || !target.Alive() {
		t.Errorf("FromPID of this process = %+v, %v, want it alive on the host's network", target, err)
	}
}

func TestWatchEndsWithProcess(t *testing.T) {
	process := exec.Command("sleep", "60")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	target, err := container.FromPID(process.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := target.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("Watch does not notice the end of the process")
	}
	_ = process.Wait()
	if _, err := target.Watch(t.Context()); err == nil {
		t.Error("Watch of an ended process succeeded")
	}
}

func TestInNetNSReturnsToTheHost(t *testing.T) {
	// The main thread's, and whichever thread this test happens to be on.
	for _, path := range []string{"/proc/self/ns/net", "/proc/thread-self/ns/net"} {
		before, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		want := errors.New("from inside")
		if err := container.InNetNS("/proc/self/ns/net", func() error { return want }); !errors.Is(err, want) {
			t.Errorf("InNetNS = %v, want fn's error", err)
		}
		if after, _ := os.Readlink(path); after != before {
			t.Errorf("%s was %s, is %s", path, before, after)
		}
	}
}
