package main

import (
	"errors"
	"io/fs"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"

	"tare/docknet/dockctl"
)

func newNetExecCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec PIPE [--] COMMAND [ARGUMENT...]",
		Short: "Run a command with a pipe, in a container made for it",
		Long: `Run a command in mount, network, process and IPC namespaces of its own, as the pipe's own user and without capabilities.
It sees the host's files. Of all nets it sees its own pipe only, which DOCKNET_PIPE names.

Exit codes: the command's own, 128 and the number of the signal that ended it; 2 for wrong arguments, 125 if tare failed,
126 if the command cannot be executed, 127 if it is not found.`,
		Example: `  tare net exec web -- ./echo-server 7
  tare net exec db -- env`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(execCommand(args)) == 0 {
				return usageError("which pipe and which command? for example: tare net exec web -- env")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return runNetExec(name, args[0], execCommand(args))
		},
	}
	cmd.Flags().StringVar(&name, "name", dockctl.DefaultName, "name of the net")
	cmd.Flags().SetInterspersed(false) // what follows PIPE belongs to the command
	return cmd
}

func runNetExec(name, pipe string, command []string) error {
	n, err := dockctl.Open(name)
	if err != nil {
		return netError(name, err)
	}
	code, err := n.Exec(pipe, []string{"net", "enter", "--name", name, pipe, "--"}, command)
	return netExecResult(name, code, err)
}

// newNetEnterCommand is the half of exec inside the namespaces.
func newNetEnterCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:    "enter PIPE -- COMMAND [ARGUMENT...]",
		Hidden: true,
		Args: func(_ *cobra.Command, args []string) error {
			if syscall.Getpid() != 1 || len(execCommand(args)) == 0 {
				return usageError("tare net enter is a part of tare net exec: use that")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := dockctl.Open(name)
			if err != nil {
				return netError(name, err)
			}
			code, err := n.Enter(args[0], execCommand(args))
			return netExecResult(name, code, err)
		},
	}
	cmd.Flags().StringVar(&name, "name", dockctl.DefaultName, "name of the net")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func netExecResult(name string, code int, err error) error {
	switch {
	case err == nil && code == 0:
		return nil
	case err == nil:
		return exitError{code: code}
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, exec.ErrDot):
		return exitError{code: exitExecNotFound, err: err}
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, fs.ErrPermission) && syscall.Geteuid() == 0:
		return exitError{code: exitExecNotExecutable, err: err}
	}
	return exitError{code: exitExecFailed, err: netError(name, err)}
}
