package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tare/docknet/dockctl"
)

func newNetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "net",
		Short: "DockNet: TCP and UDP between containers through shared memory",
		Long: `A net is a daemon, dockdaemon, and its pipes. A pipe is memory that one container shares with the daemon, and has the
container's addresses; programs that are linked with DockLib send and receive through it without a system call. The
daemon moves packets from pipe to pipe, and between them and a NIC. See docs/docknet.md.

A net stays until it is taken down. If its daemon dies, "tare net up" starts another one: pipes, containers and their
connections go on. Every subcommand needs root.

Exit codes: 0 done, 1 failed, 2 wrong arguments.`,
		Example: `  tare net up
  tare net add web --ip 10.50.0.2/24
  tare net exec web -- ./server
  tare net down`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q: tare net has up, down, add, rm, list, stats and exec", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newNetUpCommand(), newNetDownCommand(), newNetAddCommand(), newNetRmCommand(), newNetListCommand(),
		newNetStatsCommand(), newNetExecCommand(), newNetEnterCommand())
	return cmd
}

// netOptions are what every net command has.
type netOptions struct {
	name   string
	output string
}

func (o *netOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.name, "name", dockctl.DefaultName, "name of the net")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text or json")
}

func (o *netOptions) open() (*dockctl.Net, error) {
	if o.output != "text" && o.output != "json" {
		return nil, usageError("-o %s: use text or json", o.output)
	}
	return dockctl.Open(o.name)
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// pipeArgument takes exactly one argument, the name of a pipe.
func pipeArgument(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("which pipe? for example: %s web", cmd.CommandPath())
	}
	return nil
}

// netError adds the remedy to an error of dockctl, and the exit code of wrong arguments where it is one.
func netError(name string, err error) error {
	suffix := ""
	if name != dockctl.DefaultName {
		suffix = " --name " + name
	}
	var rpc *dockctl.RPCError
	switch {
	case errors.Is(err, dockctl.ErrInvalid):
		return exitError{code: 2, err: err}
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: needs root: run with sudo", err)
	case errors.Is(err, dockctl.ErrNotUp):
		return fmt.Errorf("%w: start it with: tare net up%s", err, suffix)
	case errors.Is(err, dockctl.ErrUp):
		return fmt.Errorf("%w: see it with: tare net list%s", err, suffix)
	case errors.Is(err, dockctl.ErrNoDaemon):
		return fmt.Errorf("%w: build it with: make docknet, or say where it is: --daemon PATH", err)
	case errors.Is(err, dockctl.ErrNotFound):
		return fmt.Errorf("%w: tare net list%s shows those that do", err, suffix)
	case errors.Is(err, dockctl.ErrInUse) && errors.As(err, &rpc):
		return fmt.Errorf("%w: choose another one, or remove that pipe with: tare net rm", err)
	}
	return err
}
