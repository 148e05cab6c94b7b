// Command tare measures, subtracts and removes the latency that container networks add.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tare/bench/load/prober"
)

// exitError carries an exit code through cobra. Its text is empty where everything has been said already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// usageError marks bad arguments: exit code 2.
func usageError(format string, args ...any) error {
	return exitError{code: 2, err: fmt.Errorf(format, args...)}
}

// version is set by the Makefile.
var version = "devel"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tare",
		Short: "Measure, subtract and remove the latency that container networks add",
		Long: `Tare is the weight of the container, subtracted from gross to get net. tare measures, per packet and in the host's
kernel, the latency that a container's network adds, and subtracts it from what measurement tools show.`,
		Example: `  sudo tare demo
  sudo tare run --container web -- ping -c 5 192.0.2.1
  sudo tare watch --container web
  sudo tare doctor`,
		Version: version,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q: 'tare --help' lists what there is", args[0])
			}
			return nil
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitError{code: 2, err: err} })
	root.AddCommand(newRunCommand(), newWatchCommand(), newDoctorCommand(), newDemoCommand(), newLabCommand(), newEvalCommand(), newHopsCommand(), newBenchCommand(), newNetCommand())
	return root
}

func main() {
	prober.RunIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRootCommand().ExecuteContext(ctx)
	if err == nil {
		return
	}
	code := 1
	var exit exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(os.Stderr, "tare: %s\n", text)
	}
	os.Exit(code)
}
