package arm

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"syscall"
)

// netnsPlace is a network namespace of this host; with an empty path, the one that this process is in.
type netnsPlace struct {
	name string
	path string
	cpu  int
}

func (p netnsPlace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	argv := pinned(p.cpu, name, args)
	if p.path != "" {
		argv = append([]string{"nsenter", "--net=" + p.path, "--"}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// nsenter and taskset become the tool by exec, so its pid and its parent-death signal are those of what starts here.
	// A process group of its own keeps a terminal's ^C from ending the tool before tare has heard of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

func (p netnsPlace) PID(_ context.Context, cmd *exec.Cmd) (int, error) {
	if cmd.Process == nil {
		return 0, fmt.Errorf("%q was not started", cmd.Args[0])
	}
	return cmd.Process.Pid, nil
}

func (p netnsPlace) NetNS() string {
	if p.path == "" {
		return "/proc/self/ns/net"
	}
	return p.path
}

func (p netnsPlace) CPU() int { return p.cpu }

func (p netnsPlace) String() string { return p.name }

// pinned puts taskset (util-linux) before a command.
func pinned(cpu int, name string, args []string) []string {
	argv := append([]string{name}, args...)
	if cpu == Unpinned {
		return argv
	}
	return append([]string{"taskset", "--cpu-list", strconv.Itoa(cpu)}, argv...)
}

// samePort is the ServerPort of arms that translate nothing.
func samePort(port uint16) uint16 { return port }
