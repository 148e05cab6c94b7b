package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/bench"
	"tare/bench/docknet"
	"tare/docknet/dockctl"
)

type benchDockNetOptions struct {
	quick  bool
	rounds int
	output string
	daemon string
	arms   []string
}

func newBenchDockNetCommand() *cobra.Command {
	var opts benchDockNetOptions
	cmd := &cobra.Command{
		Use:   "docknet",
		Short: "Measure DockNet against the kernel's networks",
		Long: `Runs docknet-bench over the loopback device, a bridge, Open vSwitch's userspace datapath (all by kernel sockets) and DockNet
(by DockLib, through dockdaemon) in interleaved rounds. Measured are one-way times (half a round trip), goodput, HTTP requests
on kept-alive connections; with a core each for client and server, and all on one; one connection alone, and beside 999 open ones; and the
CPU that idle processes take. Last come DockNet's targets, each met or not.

Needs root, and DockNet built: make docknet.

Exit codes: 0 measured, whether or not targets are met; 1 failed; 2 wrong arguments.`,
		Example: `  sudo tare bench docknet --quick
  sudo tare bench docknet -o json > docknet.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("tare bench docknet takes no argument, and got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBenchDockNet(cmd.Context(), opts, cmd.Flags().Changed("rounds"), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.quick, "quick", false, "within 45 s instead of about five minutes")
	flags.IntVar(&opts.rounds, "rounds", 0, "number of rounds, 1 to 1000")
	flags.StringVarP(&opts.output, "output", "o", "text", "text or json")
	flags.StringVar(&opts.daemon, "daemon", "", "path of dockdaemon; looked for if not given")
	flags.StringSliceVar(&opts.arms, "arms", nil, "some of loopback, bridge, ovs and docknet, always with bridge and docknet (default all)")
	return cmd
}

func (o *benchDockNetOptions) request(roundsGiven bool) (docknet.Options, error) {
	if o.output != "text" && o.output != "json" {
		return docknet.Options{}, usageError("-o %s: use text or json", o.output)
	}
	if roundsGiven && (o.rounds < 1 || o.rounds > 1000) {
		return docknet.Options{}, usageError("--rounds %d: 1 to 1000 are possible", o.rounds)
	}
	if err := docknet.CheckArms(o.arms); err != nil {
		return docknet.Options{}, usageError("--arms: %s", err)
	}
	request := docknet.Full
	if o.quick {
		request = docknet.Quick
	}
	if roundsGiven {
		request.Rounds = o.rounds
	}
	request.Seed, request.Daemon, request.Arms = rand.Uint64(), o.daemon, o.arms
	return request, nil
}

func runBenchDockNet(ctx context.Context, o benchDockNetOptions, roundsGiven bool, out io.Writer) error {
	request, err := o.request(roundsGiven)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("measuring DockNet makes networks and containers: it needs root: run with sudo")
	}
	bar := bench.Bar{Out: os.Stderr}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) {
		bar.Width, _, _ = term.GetSize(fd)
		request.Progress = bar.Draw
	}
	result, err := docknet.Run(ctx, request)
	if request.Progress != nil {
		bar.Clear()
	}
	switch {
	case ctx.Err() != nil:
		return benchError(ctx, err)
	case errors.Is(err, dockctl.ErrNoDaemon), errors.Is(err, docknet.ErrNotBuilt):
		return fmt.Errorf("%w: build it with: make docknet", err)
	case err != nil:
		return err
	}
	if o.output == "json" {
		return writeJSON(out, result)
	}
	return result.WriteText(out)
}
