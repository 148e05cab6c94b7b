package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tare/lab"
)

func newLabCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Docker's default network made of namespaces, to try things on",
		Long: `A lab is Docker's default network without Docker: containers, bridge, masquerading, a NIC and a remote host, each
in a network namespace of its own. Nothing in the namespace you are in is changed, and a lab stays until it is taken
down, whatever happens to the program that made it. Every subcommand but status needs root.

Hosts: "host" has the bridge br0 and the NIC nic0 (10.78.0.1, fd78::1); "c1", "c2" ... are containers
(10.77.0.2, fd77::2 and up); "remote" is at the other end of the NIC's cable (10.78.0.2, fd78::2).

Exit codes: 0 done, 1 failed, 2 wrong arguments.`,
		Example: `  tare lab up --containers 3
  tare lab exec c1 -- ping -c 3 10.78.0.2
  tare lab load --floods 4 --for 10s
  tare lab down`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q: tare lab has up, exec, load, status and down", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newLabUpCommand(), newLabExecCommand(), newLabLoadCommand(), newLabStatusCommand(), newLabDownCommand())
	return cmd
}

// addLabNameFlag adds the flag that every lab command has.
func addLabNameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", lab.DefaultName, "name of the lab")
}

// noArguments is cobra.NoArgs with exit code 2.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no arguments: %q is one too many", cmd.CommandPath(), args[0])
	}
	return nil
}

// labError adds the remedy to an error of the lab package, and the exit code of wrong arguments where it is one.
func labError(name string, err error) error {
	suffix := ""
	if name != lab.DefaultName {
		suffix = " --name " + name
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		err = oneLine{err}
	}
	switch {
	case errors.Is(err, lab.ErrInvalid):
		return exitError{code: 2, err: err}
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: needs root (CAP_NET_ADMIN, CAP_SYS_ADMIN): run with sudo", err)
	case errors.Is(err, lab.ErrNotFound):
		return fmt.Errorf("%w: make it with: tare lab up%s", err, suffix)
	case errors.Is(err, lab.ErrExists), errors.Is(err, lab.ErrIncomplete):
		return fmt.Errorf("%w: remove it with: tare lab down%s", err, suffix)
	case errors.Is(err, lab.ErrBusy):
		return fmt.Errorf("%w: wait until it is done", err)
	}
	return err
}

// oneLine is an error whose text was several lines, as joined errors have.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

func (e oneLine) Unwrap() error { return e.error }

type labUpOptions struct {
	lab.Options
	network       string
	offloadsOf    []string
	delays        []string
	tso, gso, gro string
}

func newLabUpCommand() *cobra.Command {
	var opts labUpOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make a lab",
		Long: `Make a lab. --delay puts a known delay in one place of it, and may be given several times:

  AT=netem:TIME            netem on AT: what leaves by AT waits for TIME
  AT=tbf:TIME              tbf on AT: one packet may leave by AT per TIME, the next one waits
  AT=forwarder:TIME        a process instead of AT's cable, which holds every packet, both ways, for TIME
  AT=forwarder:TIME,cpu=N  the same, never asleep on CPU N: exact to about 1 us
  AT=busy-cpu:TIME,cpu=N   what comes in by AT is processed on CPU N, which a realtime process keeps busy for TIME and
                           leaves for TIME/4, in turns (N is the last CPU if it is not given)
  host=nft-rules:N         every forwarded packet is compared with N firewall rules

AT is nic or remote (the ends of the NIC's cable), c1, c2 ... (a container's eth0) or veth1, veth2 ... (its other end, a
port of the bridge). What is between the container and the NIC, tare subtracts; what is beyond, it leaves. A queueing
discipline on nic comes after bare-metal's end and before wire's.`,
		Example: `  tare lab up
  tare lab up --name overlay --network vxlan --containers 3
  tare lab up --rps --tso=off --gro=on --offloads-of nic,remote
  tare lab up --delay veth1=netem:2ms
  tare lab up --delay nic=forwarder:1us,cpu=1 --delay host=nft-rules:5000`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return labError(opts.Name, runLabUp(cmd.Context(), opts, cmd.OutOrStdout()))
		},
	}
	addLabNameFlag(cmd, &opts.Name)
	flags := cmd.Flags()
	flags.IntVar(&opts.Containers, "containers", 1, fmt.Sprintf("number of containers, 1 to %d", lab.MaxContainers))
	flags.StringVar(&opts.network, "network", string(lab.NetworkBridge), "bridge, vxlan or macvlan")
	flags.IntVar(&opts.MTU, "mtu", 1500, "bytes; of the NIC's network (an overlay has 50 less)")
	flags.BoolVar(&opts.RPS, "rps", false, "spread received packets over all CPUs")
	flags.BoolVar(&opts.Publish, "publish", false, fmt.Sprintf("forward TCP port %d of the NIC to c1's port %d", lab.PublishedPort, lab.PublishedTarget))
	for name, value := range map[string]*string{"tso": &opts.tso, "gso": &opts.gso, "gro": &opts.gro} {
		flags.StringVar(value, name, "", "on or off; left as the kernel has it if not given")
		flags.Lookup(name).NoOptDefVal = "on"
	}
	flags.StringSliceVar(&opts.offloadsOf, "offloads-of", []string{"nic", "containers"},
		"whose offloads --tso, --gso and --gro are: nic, containers, remote")
	flags.StringArrayVar(&opts.delays, "delay", nil, "a known delay, AT=WHAT:AMOUNT (see above); may be repeated")
	return cmd
}

// offloads fills in the devices' switches from the flags.
func (o *labUpOptions) offloads() error {
	var wanted lab.Offloads
	for _, s := range []struct {
		flag, text string
		toggle     *lab.Toggle
	}{{"tso", o.tso, &wanted.TSO}, {"gso", o.gso, &wanted.GSO}, {"gro", o.gro, &wanted.GRO}} {
		toggle, err := lab.ParseToggle(s.text)
		if err != nil {
			return usageError("--%s=%s: use on or off", s.flag, s.text)
		}
		*s.toggle = toggle
	}
	for _, whose := range o.offloadsOf {
		switch whose {
		case "nic":
			o.NICOffloads = wanted
		case "containers":
			o.ContainerOffloads = wanted
		case "remote":
			o.RemoteOffloads = wanted
		default:
			return usageError("--offloads-of %s: use nic, containers, remote, or several with commas", whose)
		}
	}
	return nil
}

func runLabUp(ctx context.Context, opts labUpOptions, out io.Writer) error {
	opts.Network = lab.Network(opts.network)
	if !slices.Contains(lab.Networks, opts.Network) {
		return usageError("--network %q: use bridge, vxlan or macvlan", opts.network)
	}
	if opts.Containers == 0 {
		return usageError("--containers 0: 1 to %d are possible", lab.MaxContainers)
	}
	if err := opts.offloads(); err != nil {
		return err
	}
	for _, text := range opts.delays {
		delay, err := lab.ParseDelay(text)
		if err != nil {
			return err
		}
		opts.Delays = append(opts.Delays, delay)
	}
	l, err := lab.Up(ctx, opts.Options)
	if err != nil {
		return err
	}
	containers := "container c1"
	if n := l.Containers(); n > 1 {
		containers = fmt.Sprintf("containers c1 to c%d", n)
	}
	name := ""
	if l.Name() != lab.DefaultName {
		name = " --name " + l.Name()
	}
	fmt.Fprintf(out, "lab %q is up: host, remote, %s on %s\n", l.Name(), containers, l.Options().Network)
	fmt.Fprintf(out, "try: tare lab exec%s c1 -- ping -c 3 %s\n", name, l.RemoteAddr4())
	return nil
}

func newLabDownCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:     "down",
		Short:   "Remove a lab, and its background traffic",
		Long:    "Remove a lab, whole or half-made, and its background traffic. If there is none, that is said and exit code 0.",
		Example: "  tare lab down\n  tare lab down --name overlay",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return labError(name, runLabDown(name, cmd.OutOrStdout()))
		},
	}
	addLabNameFlag(cmd, &name)
	return cmd
}

func runLabDown(name string, out io.Writer) error {
	removed, err := lab.Down(name)
	if errors.Is(err, lab.ErrNotFound) {
		fmt.Fprintf(out, "lab %q is not up: nothing to remove\n", name)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "lab %q is removed: %d namespaces, %d background processes\n", name, len(removed.Namespaces), len(removed.Killed))
	if len(removed.Lingering) > 0 {
		pids := strings.Trim(fmt.Sprint(removed.Lingering), "[]")
		fmt.Fprintf(out, "left alone, in namespaces without devices now: process %s\n", pids)
	}
	return nil
}
