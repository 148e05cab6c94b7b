package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tare/tests/kernels/line"
)

// machine is an emulated computer: two CPUs, no disk, no network.
type machine struct {
	kernel    string // file
	initramfs string
	console   string // file that gets what the kernel prints
	append    string // to the kernel's command line
}

// ErrSilent says that a guest ended without saying that it was done.
var errSilent = errors.New("the guest ended before its checks did")

// run boots the machine, hands on each line, and returns when the guest has switched itself off, or the time is over.
func (m machine) run(ctx context.Context, each func(line.Line)) error {
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64",
		// Without KVM, which CI machines are seldom allowed: all is computed. It takes ten times as long and never lies.
		"-accel", "tcg", "-cpu", os.Getenv("CPU"), "-smp", "2", "-m", "1G",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
		"-kernel", m.kernel, "-initrd", m.initramfs,
		"-append", "console=ttyS0 panic=-1 "+m.append,
		"-serial", "file:"+m.console, "-serial", "stdio")
	cmd.WaitDelay = 5 * time.Second
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the emulator (package qemu-system-x86): %w", err)
	}
	done := false
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line.Line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			continue // the firmware's greeting
		}
		if done = done || l.Done; !l.Done {
			each(l)
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the guest was not done in time: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("running the emulator: %w: %s", err, strings.TrimSpace(stderr.String()))
	case !done:
		return errSilent
	}
	return nil
}

// tail returns the last lines of the console.
func (m machine) tail(lines int) string {
	text, err := os.ReadFile(m.console)
	if err != nil {
		return fmt.Sprintf("no console: %v", err)
	}
	all := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func consoleIn(dir string) string { return filepath.Join(dir, "console") }
