// Command guest is the first process of an emulated machine: it makes a small system of a bare kernel, runs the checks,
// reports them over a serial port, and switches the machine off.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/tests/kernels/console"
)

func main() {
	if os.Getpid() != 1 {
		if err := runChecks(); err != nil {
			fmt.Println("guest:", err)
			os.Exit(1)
		}
		return
	}
	if err := boot(); err != nil {
		fmt.Println("guest:", err)
	}
	time.Sleep(200 * time.Millisecond) // what is in the serial ports' queues
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guest: switching off:", err)
	}
}

// boot prepares the machine, and then does nothing but wait for processes, for the checks, which are one of their own,
// and for the orphans that they leave; unless it is asked to keep busy.
func boot() error {
	for _, step := range []func() error{mountAll, loadModules, raiseLoopback} {
		if err := step(); err != nil {
			return err
		}
	}
	os.Setenv("PATH", console.Path)
	os.Setenv("HOME", "/root")
	checks := exec.Command("/proc/self/exe")
	checks.Stdout, checks.Stderr = os.Stdout, os.Stderr
	if err := checks.Start(); err != nil {
		return fmt.Errorf("starting the checks: %w", err)
	}
	go keepBusy()
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if pid == checks.Process.Pid {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for processes: %w", err)
		}
	}
}

func mountAll() error {
	for _, m := range []struct{ kind, where string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"devpts", "/dev/pts"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
		{"securityfs", "/sys/kernel/security"}, {"bpf", "/sys/fs/bpf"}, {"cgroup2", "/sys/fs/cgroup"},
	} {
		if err := os.MkdirAll(m.where, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.where, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", m.where, err)
		}
	}
	return nil
}

// loadModules loads at once what a distribution would load on demand.
func loadModules() error {
	names, err := os.ReadFile(console.ModuleOrder)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(names)) {
		file, err := os.Open(filepath.Join(console.Modules, name))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(file.Fd()), "", 0)
		file.Close()
		if err != nil {
			return fmt.Errorf("loading module %s: %w", name, err)
		}
	}
	return nil
}

func raiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("setting lo up: %w", err)
	}
	return nil
}
