package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"tare/lab"
)

// Exit codes of `tare lab exec`, as docker exec has them.
const (
	exitExecFailed        = 125
	exitExecNotExecutable = 126
	exitExecNotFound      = 127
)

func newLabExecCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec HOST [--] COMMAND [ARGUMENT...]",
		Short: "Run a command in a host of a lab",
		Long: `Run a command in the network namespace of HOST: host, remote, c1, c2 ...

tare becomes the command: input, output, signals and exit code are the command's own. Only the network differs, so
/sys still shows the devices of the namespace you are in; ip and ethtool show those of HOST.

Exit codes: the command's own; 2 for wrong arguments, 125 if tare failed, 126 if the command cannot be executed, 127 if it is not found.`,
		Example: `  tare lab exec c1 -- ping -c 3 10.78.0.2
  tare lab exec remote -- iperf3 -s
  tare lab exec host -- nft list ruleset`,
		Args: func(cmd *cobra.Command, args []string) error {
			if command := execCommand(args); len(command) == 0 {
				return usageError("which host and which command? for example: tare lab exec c1 -- ip addr")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return runLabExec(name, args[0], execCommand(args))
		},
	}
	addLabNameFlag(cmd, &name)
	cmd.Flags().SetInterspersed(false) // what follows HOST belongs to the command
	return cmd
}

// execCommand returns what follows HOST and an optional "--".
func execCommand(args []string) []string {
	switch {
	case len(args) < 2:
		return nil
	case args[1] == "--":
		return args[2:]
	}
	return args[1:]
}

// runLabExec returns only if it fails.
func runLabExec(name, host string, command []string) error {
	failed := func(err error) error { return exitError{code: exitExecFailed, err: err} }
	l, err := lab.Open(name)
	if err != nil {
		return failed(labError(name, err))
	}
	// Never unlocked: exec takes this thread, and with it the namespace, into the command.
	runtime.LockOSThread()
	if err := l.Enter(host); err != nil {
		return failed(labError(name, err))
	}
	path, err := exec.LookPath(command[0])
	if err == nil {
		err = syscall.Exec(path, command, os.Environ())
	}
	err = fmt.Errorf("running %q in %s of lab %q: %w", command[0], host, name, err)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return exitError{code: exitExecNotFound, err: err}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return exitError{code: exitExecNotExecutable, err: err}
	}
	return failed(err)
}
