package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"tare/lab"
)

func newLabLoadCommand() *cobra.Command {
	var name string
	var background lab.Background
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Run background traffic in a lab",
		Long: `Run background traffic in a lab until its time is over or until interrupted. Container c1 is left alone where there are
others. The traffic ends with this command, even if that is killed.`,
		Example: `  tare lab load --floods 4 --for 10s
  tare lab load --tcp --local-udp`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return labError(name, runLabLoad(cmd.Context(), name, background, cmd.OutOrStdout()))
		},
	}
	addLabNameFlag(cmd, &name)
	flags := cmd.Flags()
	flags.IntVar(&background.Floods, "floods", 0, "number of flood pings from containers to remote, pinned to CPUs in turn")
	flags.BoolVar(&background.TCP, "tcp", false, "a bulk TCP stream from a container to remote")
	flags.BoolVar(&background.UDP, "udp", false, "small UDP datagrams from a container to remote")
	flags.BoolVar(&background.LocalICMP, "local-icmp", false, "a flood ping from container to container")
	flags.BoolVar(&background.LocalUDP, "local-udp", false, "small UDP datagrams from container to container")
	flags.BoolVar(&background.LocalTCP, "local-tcp", false, "a bulk TCP stream from container to container")
	flags.DurationVar(&background.For, "for", lab.DefaultLoadTime, "time until it ends, up to "+lab.MaxLoadTime.String())
	return cmd
}

func runLabLoad(ctx context.Context, name string, background lab.Background, out io.Writer) error {
	if background.For <= 0 {
		return usageError("--for %s: give a time, like 10s", background.For)
	}
	l, err := lab.Open(name)
	if err != nil {
		return err
	}
	load, err := l.StartBackground(ctx, background)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d processes make traffic in lab %q for %s\n", len(load.Processes()), name, background.For.Round(time.Millisecond))
	<-load.Done()
	return load.Stop()
}
