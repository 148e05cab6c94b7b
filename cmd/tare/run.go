package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/subtract"
)

type runOptions struct {
	selector
	output string
	argv   []string
}

func newRunCommand() *cobra.Command {
	var options runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- CMD [ARG...]",
		Short: "Run a measurement tool in a container and subtract what the container's network adds",
		Long: `Runs CMD in a container and shows its output with two figures added to each round-trip time: what the container's
network (veth, bridge, NAT, other containers' traffic) added to this very packet and its reply, measured in the kernel;
and the time without it.

With --container, CMD is the container's own program. With --pid and --netns it is the host's, run in that network
namespace. The output of ping (iputils, busybox), fping and traceroute is understood; after any other tool, a summary
of what the kernel saw follows.

Exit codes: CMD's own; 2 wrong arguments; 125 tare itself failed; 126 CMD cannot be run; 127 CMD is not there.`,
		Example: `  tare run --container web -- ping -c 5 192.0.2.1
  tare run --container web --as wire -- fping -c 10 192.0.2.1
  tare run --netns tare-lab-c1 -o json -- ping -c 100 -i 0.01 10.78.0.2
  tare run --pid 4711 --path syscalls -- traceroute 192.0.2.1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options.argv = args
			return runRun(cmd.Context(), options)
		},
	}
	cmd.Flags().SetInterspersed(false)
	options.addFlags(cmd)
	cmd.Flags().StringVarP(&options.output, "output", "o", "text", "text, json (one object per line) or csv")
	return cmd
}

func runRun(ctx context.Context, options runOptions) error {
	if len(options.argv) == 0 {
		return usageError("no command to run: tare run [flags] -- CMD [ARG...]")
	}
	if options.output != "text" && options.output != "json" && options.output != "csv" {
		return usageError("-o %s: it is text, json or csv", options.output)
	}
	path, as, err := options.eventPath()
	if err != nil {
		return err
	}
	// An interrupt is for the tool, which answers it with its summary; ours comes after that.
	ctx = context.WithoutCancel(ctx)
	target, err := options.target(ctx)
	if err != nil {
		return tareFailed(err)
	}
	err = subtract.Run(ctx, subtract.RunOptions{
		Options: subtract.Options{Target: target, Path: path, NICs: options.nics},
		Argv:    options.argv, As: as,
		TTY:  options.output == "text" && term.IsTerminal(int(os.Stdout.Fd())),
		JSON: options.output == "json", CSV: options.output == "csv",
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	var ended subtract.ToolError
	if errors.As(err, &ended) {
		return exitError{code: ended.Code}
	}
	return tareFailed(err)
}

// tareFailed gives an error of tare's own docker run's exit code for it.
func tareFailed(err error) error {
	var exit exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return exitError{code: subtract.ExitTareFailed, err: withRemedy(err)}
}
