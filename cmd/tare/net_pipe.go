package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tare/docknet/dockctl"
)

type netAddOptions struct {
	netOptions
	ip, ip6           string
	gateway, gateway6 string
	id                int
	dockerArgs        bool
}

func newNetAddCommand() *cobra.Command {
	var opts netAddOptions
	cmd := &cobra.Command{
		Use:   "add PIPE",
		Short: "Make a pipe",
		Long: `Make a pipe with its addresses. The container that has it can send from these addresses only.

Who may use it: the user and group --id, or root in a container into which it is mounted. "tare net exec" runs a command
as this user; --docker-args prints what makes Docker or podman give the pipe to a container.`,
		Example: `  tare net add web --ip 10.50.0.2/24
  tare net add db --ip 10.50.0.3/24 --ip6 fd50::3/64 --gateway 10.50.0.1
  docker run $(tare net add cache --ip 10.50.0.4/24 --docker-args) my-image`,
		Args: pipeArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return netError(opts.name, runNetAdd(opts, args[0], cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.ip, "ip", "", "IPv4 address and prefix length, such as 10.50.0.2/24")
	flags.StringVar(&opts.ip6, "ip6", "", "IPv6 address and prefix length, such as fd50::2/64")
	flags.StringVar(&opts.gateway, "gateway", "", "IPv4 router on the NIC's network")
	flags.StringVar(&opts.gateway6, "gateway6", "", "IPv6 router on the NIC's network")
	flags.IntVar(&opts.id, "id", -1, "user and group ID of the container's program; drawn if not given")
	flags.BoolVar(&opts.dockerArgs, "docker-args", false, "print the arguments of docker run or podman run that give a container the pipe")
	return cmd
}

// config checks what can be checked without the daemon: then a flag can be named.
func (o *netAddOptions) config(name string) (dockctl.PipeConfig, error) {
	config := dockctl.PipeConfig{Name: name}
	for _, f := range []struct {
		flag, text, example string
		is                  func(netip.Addr) bool
	}{{"--ip", o.ip, "10.50.0.2/24", netip.Addr.Is4}, {"--ip6", o.ip6, "fd50::2/64", netip.Addr.Is6}} {
		if f.text == "" {
			continue
		}
		if prefix, err := netip.ParsePrefix(f.text); err != nil || !f.is(prefix.Addr()) {
			return config, usageError("%s %s: give an address and a prefix length, such as %s", f.flag, f.text, f.example)
		}
		config.Addresses = append(config.Addresses, f.text)
	}
	for _, f := range []struct {
		flag, text, example string
		is                  func(netip.Addr) bool
	}{{"--gateway", o.gateway, "10.50.0.1", netip.Addr.Is4}, {"--gateway6", o.gateway6, "fd50::1", netip.Addr.Is6}} {
		if f.text == "" {
			continue
		}
		if addr, err := netip.ParseAddr(f.text); err != nil || !f.is(addr) {
			return config, usageError("%s %s: give an address, such as %s", f.flag, f.text, f.example)
		}
		config.Gateways = append(config.Gateways, f.text)
	}
	if len(config.Addresses) == 0 {
		return config, usageError("which address? for example: tare net add %s --ip 10.50.0.2/24", name)
	}
	return config, nil
}

func runNetAdd(opts netAddOptions, name string, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	config, err := opts.config(name)
	if err != nil {
		return err
	}
	identity, err := n.AddPipe(config, opts.id)
	if err != nil {
		return err
	}
	switch {
	case opts.dockerArgs:
		fmt.Fprintln(out, strings.Join(n.DockerArgs(name), " "))
	case opts.output == "json":
		return writeJSON(out, map[string]any{"name": name, "addresses": config.Addresses, "id": identity,
			"directory": n.PipeDirectory(name), "docker_args": n.DockerArgs(name)})
	default:
		fmt.Fprintf(out, "pipe %q is there: %s, user %d\n", name, strings.Join(config.Addresses, ", "), identity)
	}
	return nil
}

func newNetRmCommand() *cobra.Command {
	var opts netOptions
	cmd := &cobra.Command{
		Use:     "rm PIPE",
		Short:   "Remove a pipe; a container that has it loses it",
		Example: "  tare net rm web",
		Args:    pipeArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			return netError(opts.name, runNetRm(opts, args[0], cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func runNetRm(opts netOptions, name string, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	client, err := n.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.RemovePipe(name); err != nil {
		return err
	}
	if opts.output == "json" {
		return writeJSON(out, map[string]any{"name": name, "removed": true})
	}
	fmt.Fprintf(out, "pipe %q is removed\n", name)
	return nil
}

func newNetListCommand() *cobra.Command {
	var opts netOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the pipes of a net",
		Example: "  tare net list\n  tare net list -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return netError(opts.name, runNetList(opts, cmd.OutOrStdout()))
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func runNetList(opts netOptions, out io.Writer) error {
	n, err := opts.open()
	if err != nil {
		return err
	}
	client, err := n.Dial()
	if err != nil {
		return err
	}
	defer client.Close()
	pipes, err := client.Pipes()
	if err != nil {
		return err
	}
	if opts.output == "json" {
		return writeJSON(out, pipes)
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PIPE\tADDRESSES\tUSER\tPROCESS\tEPOCH")
	for _, p := range pipes {
		process, user := "-", "?"
		if p.Attached {
			process = fmt.Sprint(p.PID)
		}
		if id, err := n.Identity(p.Name); err == nil {
			user = fmt.Sprint(id)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", p.Name, strings.Join(p.Addresses, ","), user, process, p.Epoch)
	}
	return table.Flush()
}
