package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tare/lab"
)

func newLabStatusCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show labs: namespaces, devices, addresses, background traffic",
		Long:    "Show all labs, or the one named by --name.",
		Example: "  tare lab status\n  tare lab status --name overlay -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return labError(name, runLabStatus(name, output, cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the lab (default all)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json (a list of labs)")
	return cmd
}

func runLabStatus(name, output string, out io.Writer) error {
	if output != "table" && output != "json" {
		return usageError("-o %s: use table or json", output)
	}
	names := []string{name}
	if name == "" {
		var err error
		if names, err = lab.List(); err != nil {
			return err
		}
	}
	labs := []lab.Status{}
	for _, name := range names {
		status, err := lab.ReadStatus(name)
		if err != nil {
			return err
		}
		labs = append(labs, status)
	}
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(labs)
	}
	if len(labs) == 0 {
		fmt.Fprintln(out, "no lab is up: make one with: tare lab up")
	}
	for i, status := range labs {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printLab(out, status); err != nil {
			return err
		}
	}
	return nil
}

func printLab(out io.Writer, status lab.Status) error {
	condition := "up"
	if !status.Complete {
		condition = "half-made, remove it with: tare lab down --name " + status.Name
	}
	fmt.Fprintf(out, "lab %q on %s: %s\n\n", status.Name, status.Options.Network, condition)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "HOST\tNAMESPACE\tDEVICE\tKIND\tMTU\tOFFLOADS\tRPS\tADDRESSES")
	for _, namespace := range status.Namespaces {
		for _, device := range namespace.Devices {
			name := device.Name
			if device.Master != "" {
				name += " in " + device.Master
			}
			if !device.Running {
				name += " (down)"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", namespace.Host, namespace.Name, name, device.Kind,
				device.MTU, offloadText(device.Offloads), device.RPS, strings.Join(device.Addresses, " "))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if delays := status.Options.Delays; len(delays) > 0 {
		fmt.Fprintln(out)
		for _, delay := range delays {
			fmt.Fprintf(out, "delay: %s\n", delay)
		}
	}
	if len(status.Processes) > 0 {
		fmt.Fprintln(out)
		table = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "PID\tHOST\tBACKGROUND")
		for _, process := range status.Processes {
			fmt.Fprintf(table, "%d\t%s\t%s\n", process.PID, process.Host, process.Command)
		}
		return table.Flush()
	}
	return nil
}

// offloadText names the offloads that are on.
func offloadText(offloads lab.Offloads) string {
	var on []string
	for _, s := range []struct {
		name   string
		toggle lab.Toggle
	}{{"tso", offloads.TSO}, {"gso", offloads.GSO}, {"gro", offloads.GRO}} {
		if s.toggle == lab.On {
			on = append(on, s.name)
		}
	}
	if len(on) == 0 {
		return "-"
	}
	return strings.Join(on, ",")
}
