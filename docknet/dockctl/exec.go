package dockctl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Exec runs a command with a pipe, in a container that is made for it: mount, network, process and IPC namespaces of its
// own, the pipe's user and group, no capabilities. It sees the host's files, but of all nets only its pipe, which
// DOCKNET_PIPE names.
//
//	tare net exec            waits, passes signals on, and dies with the exit code
//	└─ tare (Enter)          process 1 of the namespaces: mounts, then reaps; when it dies, all of them die
//	   └─ command
//
// helper are tare's own arguments that end up in Enter.
func (n *Net) Exec(pipe string, helper, command []string) (int, error) {
	if _, err := n.Identity(pipe); err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 {
		return 0, fmt.Errorf("making a container for pipe %q: %w", pipe, os.ErrPermission)
	}
	cmd := exec.Command("/proc/self/exe", append(helper, command...)...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Pdeathsig:  unix.SIGKILL,
	}
	// Pdeathsig counts the death of the starting thread, which lives as long as this function.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("making namespaces for pipe %q: %w", pipe, err)
	}
	go forward(signals, cmd.Process)
	return exitCode(cmd.Wait())
}

// forward passes signals on. A terminal has sent its own to the whole foreground group already.
func forward(signals <-chan os.Signal, to *os.Process) {
	_, err := unix.IoctlGetTermios(int(os.Stdin.Fd()), unix.TCGETS)
	terminal := err == nil
	for s := range signals {
		if s != unix.SIGINT || !terminal {
			_ = to.Signal(s)
		}
	}
}

// exitCode is the shell's: 128 and the signal's number where one ended the command.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Enter is process 1 of the namespaces that Exec made. It runs the command and returns its exit code.
func (n *Net) Enter(pipe string, command []string) (int, error) {
	identity, err := n.Identity(pipe)
	if err != nil {
		return 0, err
	}
	mount, err := n.isolate(pipe)
	if err != nil {
		return 0, fmt.Errorf("preparing the container of pipe %q: %w", pipe, err)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, fmt.Errorf("running %q: %w", command[0], err)
	}
	// no_new_privs is the thread's, and the command is started by this one.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("giving up new privileges: %w", err)
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Args[0] = command[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "DOCKNET_PIPE="+mount)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(identity), Gid: uint32(identity)},
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("running %q as user %d: %w", command[0], identity, err)
	}
	go forward(signals, cmd.Process)
	// Orphans are reaped by the kernel when this process ends, a moment later: there is no need to do it before.
	return exitCode(cmd.Wait())
}

// isolate hides all nets but for one pipe, and everything of other processes; it returns where the pipe is.
func (n *Net) isolate(pipe string) (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("making mounts private: %w", err)
	}
	source, err := unix.Open(n.PipeDirectory(pipe), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", n.PipeDirectory(pipe), err)
	}
	defer unix.Close(source)
	if err := unix.Mount("tmpfs", stateDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=64k"); err != nil {
		return "", fmt.Errorf("hiding %s: %w", stateDir, err)
	}
	target := stateDir + "/pipe"
	if err := os.Mkdir(target, 0o755); err != nil {
		return "", err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", source), target, "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("mounting the pipe at %s: %w", target, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return "", fmt.Errorf("mounting /proc: %w", err)
	}
	if lo, err := netlink.LinkByName("lo"); err == nil {
		_ = netlink.LinkSetUp(lo) // for programs that want a loopback of the kernel's, too
	}
	return target, nil
}
