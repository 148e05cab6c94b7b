// Package containertest gives tests a real Docker and a real podman, on a host of their own.
//
// The host is a network and mount namespace that the whole test process moves into, with its own /run, its
// own sysfs, its own firewall and forwarding switch. So a Docker that the user runs is neither seen nor
// touched, default bridges and addresses are free, and what dockerd does to a host (forwarding on, firewall
// rules, bridges) needs no undoing: the kernel drops it all with the last process.
//
//	outer test process          what 'go test' started: passes signals in and the exit code out
//	└─ reaper                   adopts every orphan; kills them all when the tests are over or outer died
//	   └─ inner test process    in the private host: runs the tests
//	      ├─ dockerd ─ containerd ─ shim ─ container
//	      └─ podman ─ conmon ─ container
//
// The process IDs are the machine's: a process namespace would have made the cleaning up simpler, but eBPF
// reports the machine's.
//
// A package's tests move there with
//
//	func TestMain(m *testing.M) { os.Exit(containertest.Main(m)) }
package containertest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	roleVariable   = "TARE_CONTAINERTEST_ROLE"
	dirVariable    = "TARE_CONTAINERTEST_DIR"
	parentVariable = "TARE_CONTAINERTEST_PARENT"

	roleReaper = "reaper"
	roleInner  = "inner"
)

// privateHost is set in the inner process; see Main.
var privateHost *host

// host is the private host: a directory for what its daemons store, and the daemons that run.
type host struct {
	dir string

	starting sync.Mutex // tests may run at the same time
	docker   *Runtime
	podman   *Runtime
}

// Main runs a package's tests on a private host and returns the exit code. Without root it just runs them:
// those that ask for a runtime are skipped then, or fail where CI is set.
func Main(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run()
	}
	var code int
	var err error
	switch os.Getenv(roleVariable) {
	case roleReaper:
		code, err = runReaper()
	case roleInner:
		if privateHost, err = enterHost(os.Getenv(dirVariable)); err == nil {
			code = m.Run()
		}
	default:
		code, err = runOuter()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "containertest: %s\n", err)
		return 1
	}
	return code
}

// requireHost returns the private host, or ends the test.
func requireHost(t testing.TB) *host {
	t.Helper()
	if privateHost != nil {
		return privateHost
	}
	if os.Geteuid() == 0 {
		t.Fatal("containertest: this package's TestMain does not call containertest.Main")
	}
	if os.Getenv("CI") != "" {
		t.Fatal("containertest: needs root, and a CI run must not skip")
	}
	t.Skip("containertest: needs root")
	return nil
}

// self is this test binary again, in another role.
func self(role string, environment ...string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = "/proc/self/exe"
	}
	command := exec.Command(path)
	command.Args = os.Args
	command.Env = append(os.Environ(), append(environment, roleVariable+"="+role)...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command
}

// runOuter starts the reaper and stands in for it: 'go test' and terminals send their signals to this process.
func runOuter() (int, error) {
	// The kernel sends a parent-death signal when the *thread* that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	dir, err := os.MkdirTemp("", "tare-test-")
	if err != nil {
		return 0, err
	}
	reaper := self(roleReaper, dirVariable+"="+dir, fmt.Sprintf("%s=%d", parentVariable, os.Getpid()))
	// A session of its own: a terminal's or a CI runner's kill of the process group must not reach the one
	// process that cleans up.
	reaper.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if err := reaper.Start(); err != nil {
		return 0, fmt.Errorf("starting the reaper: %w", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			_ = reaper.Process.Signal(s)
		}
	}()
	_ = reaper.Wait()
	return exitCode(reaper.ProcessState.Sys().(syscall.WaitStatus)), nil
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// enterHost makes the namespaces, which this process was started in, into a host.
func enterHost(dir string) (*host, error) {
	for _, name := range []string{roleVariable, dirVariable, parentVariable} {
		os.Unsetenv(name)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	if err := mountSys(filepath.Join(dir, "sys")); err != nil {
		return nil, fmt.Errorf("mounting the private host's sysfs: %w", err)
	}
	// Sockets, locks, namespace names and caches of the user's own runtimes live here.
	for _, path := range []string{"/run", "/dev/shm", podmanState} {
		if err := unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"); err != nil {
			return nil, fmt.Errorf("mounting a private %s: %w", path, err)
		}
	}
	// A shared mount of its own, as 'ip netns add' makes it. Else podman does so later, over the names that are there:
	// each is then mounted twice and cannot be removed.
	const names = "/run/netns"
	if err := os.Mkdir(names, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount(names, names, "", unix.MS_BIND, ""); err != nil {
		return nil, fmt.Errorf("making %s a mount: %w", names, err)
	}
	if err := unix.Mount("", names, "", unix.MS_SHARED, ""); err != nil {
		return nil, fmt.Errorf("sharing %s: %w", names, err)
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding the private host's loopback: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, fmt.Errorf("setting the private host's loopback up: %w", err)
	}
	return &host{dir: dir}, preferDistribution(filepath.Join(dir, "bin"))
}

// mountSys puts the sysfs of this network namespace in the place of the old one, and below it again what was
// mounted there: control groups, tracefs, bpffs.
func mountSys(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("sysfs", dir, "sysfs", 0, ""); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		below, ok := strings.CutPrefix(fields[4], "/sys/")
		if !ok || seen[filepath.Dir(fields[4])] || seen[fields[4]] {
			seen[fields[4]] = ok // what is below a mount comes along with it
			continue
		}
		seen[fields[4]] = true
		if err := unix.Mount(fields[4], filepath.Join(dir, below), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			continue // its place exists in the machine's sysfs only
		}
	}
	return unix.Mount(dir, "/sys", "", unix.MS_MOVE, "")
}

// preferDistribution makes the distribution's clients, which match its daemons, the first on the search path.
func preferDistribution(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"docker", "podman"} {
		if path := filepath.Join("/usr/bin", name); exists(path) {
			if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	os.Setenv("DOCKER_HOST", "unix:///run/docker.sock") // over a context in the user's configuration
	return os.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
