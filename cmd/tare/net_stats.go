package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tare/docknet/dockctl"
)

func newNetStatsCommand() *cobra.Command {
	var opts netOptions
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show what a net has moved, and what it has dropped and why",
		Long: `Show the counters of a net since its daemon started. TX is what a container sent, RX what it received.

BLOCKED counts how often a pipe's next frame had to wait for its receiver: inside the host nothing is dropped for want of
space. DROPPED has the reasons:

  spoofed      the source was not the pipe's address       detached    the receiver's container was not there
  malformed    no IP packet, or its lengths are wrong      stalled     the receiver took nothing for 0.1 s
  unroutable   nobody has the destination                  too_big     longer than the NIC's MTU, and not TCP
  unresolved   the next hop did not answer                 nic_full    from the NIC, to a container that did not keep up`,
		Example: "  tare net stats\n  tare net stats -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return netError(opts.name, runNetStats(opts, cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	return cmd
}

// drops is "spoofed 3, stalled 1", or "0".
func drops(stats *dockctl.PipeStats) string {
	var parts []string
	for reason, n := range stats.Dropped {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", reason, n))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func runNetStats(opts netOptions, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	client, err := n.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	stats, err := client.Stats()
	if err != nil {
		return err
	}
	if opts.output == "json" {
		return writeJSON(out, stats)
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PIPE\tTX FRAMES\tTX BYTES\tRX FRAMES\tRX BYTES\tBLOCKED\tBAD\tATTACHED\tDROPPED")
	for _, p := range stats.Pipes {
		s := p.Stats
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", p.Name, s.TxFrames, s.TxBytes, s.RxFrames, s.RxBytes,
			s.TxBlocked, s.BadDescs, s.Attaches, drops(s))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, m := range stats.Masters {
		fmt.Fprintf(out, "master %d: %d turns, %d frames, %d sleeps\n", m.Master, m.Turns, m.Frames, m.Sleeps)
	}
	if nic := stats.NIC; nic != nil {
		fmt.Fprintf(out, "NIC %s:%s: tx %d frames, %d bytes; rx %d frames, %d bytes, %d missed, %d with a wrong checksum, %d not ours\n",
			nic.Kind, nic.Name, nic.TxFrames, nic.TxBytes, nic.RxFrames, nic.RxBytes, nic.RxMissed, nic.RxBadChecksum, nic.RxNotOurs)
	}
	return nil
}
