package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"tare/tests/kernels/console"
)

// machine is an emulated computer with two CPUs, and neither disk nor network.
type machine struct {
	kernel, initramfs string // files
	console           string // file that gets what the kernel prints
}

// emulator is all that is asked of qemu but the files. Without KVM, which few CI machines have, every instruction is
// computed; and two errors of the qemu in Debian 12 (7.2) must be kept out of it:
//   - threads: a CPU may keep an instruction as it was before another CPU changed it, and kernels change instructions
//     whenever a tracepoint is switched on ("Oops: int3"). One thread for all CPUs does not. Fixed in qemu 8.1.
//   - cx16: CMPXCHG16B leaves parts of its operands in the flags register, as in the trap flag. Kernels do without.
var emulator = []string{
	"qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max,-cx16", "-smp", "2", "-m", "1G",
	"-nodefaults", "-no-user-config", "-display", "none", "-nic", "none", "-no-reboot",
}

// parameters of the kernel. Without its watchdogs: they would take a host that is busy for a guest that hangs. And with
// checks in the allocator, as without cx16 later kernels have memory for a thread's storage only there (kmalloc_nolock).
const parameters = "console=ttyS0 panic=-1 nowatchdog rcupdate.rcu_cpu_stall_suppress=1 quiet slab_debug=F,kmalloc-*"

// run boots the machine, hands on each line of its results, and returns when the guest has switched itself off. When
// ctx ends, so does the machine; and it dies with this process.
func (m machine) run(ctx context.Context, each func(console.Line)) error {
	// The parent's death is told when the starting thread dies, so that must not happen before.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, emulator[0], append(emulator[1:],
		"-kernel", m.kernel, "-initrd", m.initramfs, "-append", parameters,
		"-serial", "file:"+m.console, "-serial", "stdio")...)
	// A group of its own: an interrupt at the terminal is for this program, which then ends it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the emulator (package qemu-system-x86, which ./setup installs): %w", err)
	}
	done := false
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line console.Line
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // of the firmware
		}
		if line.Done {
			done = true
		} else {
			each(line)
		}
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("running the emulator: %w: %s", err, strings.TrimSpace(stderr.String()))
	case !done:
		return errors.New("it ended before its checks did")
	}
	return nil
}

// tail returns the last lines that the kernel printed.
func (m machine) tail() string {
	const count = 40
	text, err := os.ReadFile(m.console)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// A kernel that goes on after one of these has done something that it should not.
var complaint = regexp.MustCompile(`(?m)^.*(BUG:|WARNING:|Oops:|Call Trace:).*$`)

// complaints is an error if the kernel has printed any.
func (m machine) complaints() error {
	text, err := os.ReadFile(m.console)
	if err != nil {
		return err
	}
	if found := complaint.Find(text); found != nil {
		return fmt.Errorf("the kernel complains: %s", found)
	}
	return nil
}
