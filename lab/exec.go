package lab

import (
	"context"
	"errors"
	"os/exec"
)

// Command prepares argv to run in host's network namespace, through nsenter (util-linux), which becomes argv by exec:
// the pid, signals and exit code are argv's own, the command may be started from any goroutine, and only the network
// namespace is changed. /sys therefore still shows the caller's devices. nsenter ends with 127 where argv[0] is not
// found and 126 where it cannot be run. An unknown host shows itself as the command's error when it is started.
func (l *Lab) Command(ctx context.Context, host string, argv ...string) *exec.Cmd {
	args := append([]string{"--net=" + l.NetNSPath(host), "--"}, argv...)
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	if err := l.checkHost(host); err != nil {
		cmd.Err = err
	} else if len(argv) == 0 {
		cmd.Err = errors.New("no command to run in " + l.NetNSName(host)) // nsenter would start a shell
	}
	return cmd
}

// Start starts cmd in host's network namespace without a program in between. Do not set cmd.SysProcAttr.Pdeathsig: it
// counts the death of the starting thread, which dies at once.
func (l *Lab) Start(host string, cmd *exec.Cmd) error {
	return l.Do(host, cmd.Start)
}

// Enter moves the calling thread into host's network namespace, for a caller that replaces itself by exec. The caller
// holds runtime.LockOSThread and never releases it.
func (l *Lab) Enter(host string) error {
	if err := l.checkHost(host); err != nil {
		return err
	}
	_, err := enterNetNS(l.NetNSPath(host))
	return err
}
