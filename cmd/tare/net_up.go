package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tare/docknet/dockctl"
)

type netUpOptions struct {
	netOptions
	dockctl.UpOptions
}

func newNetUpCommand() *cobra.Command {
	var opts netUpOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a net",
		Long: `Start dockdaemon in the background. Pipes that a killed daemon of this net had are offered again.

--nic connects the net to a network:

  none                  no network: pipes reach each other only
  tap:NAME              a new interface NAME, at whose other end is this host's own stack
  af_xdp:INTERFACE      an existing interface, through an XDP socket; its MTU is at most 3000 or so.
                        What shares a veth with it must send whole checksums: ethtool -K PEER tx off
  af_packet:INTERFACE   an existing interface of any MTU, through a packet socket; slower. On a veth's other end also
                        ethtool -K PEER tx off tso off gso off
  pci:ADDRESS           a physical port that is bound to vfio-pci

",mtu=BYTES" behind it sets the MTU, ",queues=N" the number of receive queues.

The daemon gives up root and all capabilities once it has started.`,
		Example: `  tare net up
  tare net up --nic tap:dock0 && ip addr add 10.50.0.1/24 dev dock0
  tare net up --name fast --nic pci:0000:01:00.0 --masters 2 --cpus 2,3 --wait busy`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return netError(opts.name, runNetUp(cmd.Context(), opts, cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.NIC, "nic", "none", "none, tap:NAME, af_xdp:INTERFACE, af_packet:INTERFACE or pci:ADDRESS")
	flags.IntVar(&opts.Masters, "masters", 1, "threads that move packets, 1 to 16")
	flags.StringVar(&opts.CPUs, "cpus", "", "CPU of each master, such as 2,3; anywhere if not given")
	flags.StringVar(&opts.Wait, "wait", "adaptive", "adaptive: spin for some microseconds, then sleep; busy: never sleep; sleep: at once")
	flags.IntVar(&opts.MemoryMiB, "memory", 64, "MiB for packet buffers at the NIC")
	flags.IntVar(&opts.User, "user", -1, "user ID of the daemon after its start; 0: root without capabilities; one of its own if not given")
	flags.StringVar(&opts.Daemon, "daemon", "", "path of dockdaemon; looked for if not given")
	return cmd
}

func (o *netUpOptions) check() error {
	if o.Masters < 1 || o.Masters > 16 {
		return usageError("--masters %d: use 1 to 16", o.Masters)
	}
	if o.MemoryMiB < 16 || o.MemoryMiB > 65536 {
		return usageError("--memory %d: use 16 to 65536", o.MemoryMiB)
	}
	switch o.Wait {
	case "adaptive", "busy", "sleep":
		return nil
	}
	return usageError("--wait %s: use adaptive, busy or sleep", o.Wait)
}

func runNetUp(ctx context.Context, opts netUpOptions, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	if err := opts.check(); err != nil {
		return err
	}
	info, err := n.Up(ctx, opts.UpOptions)
	if err != nil {
		return err
	}
	if opts.output == "json" {
		return writeJSON(out, info)
	}
	nic := "no NIC"
	if info.NIC != nil {
		nic = fmt.Sprintf("NIC %s:%s, MAC %s, MTU %d", info.NIC.Kind, info.NIC.Name, info.NIC.MAC, info.NIC.MTU)
	}
	fmt.Fprintf(out, "net %q is up: dockdaemon %d, %s\n", n.Name(), info.PID, nic)
	if info.Pipes > 0 {
		fmt.Fprintf(out, "pipes of the daemon before are offered again: %d\n", info.Pipes)
	}
	return nil
}

func newNetDownCommand() *cobra.Command {
	var opts netOptions
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "End a net: its daemon, its pipes, and all they left",
		Long:    "End a net: its daemon, its pipes, and all they left. If there is none, that is said and exit code 0.",
		Example: "  tare net down\n  tare net down --name fast",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return netError(opts.name, runNetDown(opts, cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func runNetDown(opts netOptions, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	err = n.Down()
	missing := errors.Is(err, dockctl.ErrNotUp)
	if err != nil && !missing {
		return err
	}
	if opts.output == "json" {
		return writeJSON(out, map[string]any{"name": n.Name(), "removed": !missing})
	}
	if missing {
		fmt.Fprintf(out, "net %q is not up: nothing to remove\n", n.Name())
	} else {
		fmt.Fprintf(out, "net %q is removed\n", n.Name())
	}
	return nil
}
