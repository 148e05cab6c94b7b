package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tare/container"
	"tare/lab"
	"tare/mace"
	"tare/subtract"
	"tare/tool"
)

const demoPings = 500

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show what it is all about, in ten seconds",
		Long: `Makes a container and a remote host out of network namespaces, with a NAT'ed bridge between them as Docker's default
network has it; pings through it, shows raw, added and corrected round-trip times, compares them with a ping from the
host itself, and removes everything again. Needs root.`,
		Example: `  sudo tare demo`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), os.Stdout) },
	}
}

func runDemo(ctx context.Context, out io.Writer) (err error) {
	const name = "demo"
	l, err := lab.Up(ctx, lab.Options{Name: name, Containers: 1})
	if err != nil {
		return labError(name, err)
	}
	defer func() {
		if downErr := l.Down(); err == nil && downErr != nil {
			err = downErr
		}
	}()
	remote := l.RemoteAddr4().String()
	fmt.Fprintf(out, `Docker's default network, made of network namespaces:

  container            host                      remote host
  eth0 %s --- [ br0 -- NAT -- nic0 ] ------- eth0 %s

`, l.ContainerAddr4(1), remote)

	target, err := container.FromNetNS(l.NetNSPath(lab.Container(1)))
	if err != nil {
		return err
	}
	path, err := mace.ParsePath("bare-metal")
	if err != nil {
		return err
	}
	options := subtract.RunOptions{
		Options: subtract.Options{Target: target, Path: path}, As: path.Name,
		Argv: []string{"ping", "-c", "5", "-i", "0.2", remote}, Stdout: out, Stderr: os.Stderr,
	}
	fmt.Fprintf(out, "$ tare run --netns %s -- %s\n", l.NetNSName(lab.Container(1)), strings.Join(options.Argv, " "))
	if err := demoFailed(ctx, subtract.Run(ctx, options)); err != nil {
		return err
	}
	return demoCompare(ctx, out, l, options)
}

// demoCompare pings faster and more often, from the host and from the container, and draws the medians.
func demoCompare(ctx context.Context, out io.Writer, l *lab.Lab, options subtract.RunOptions) error {
	argv := []string{"ping", "-c", fmt.Sprint(demoPings), "-i", "0.002", l.RemoteAddr4().String()}
	native, err := demoNative(ctx, l, argv)
	if err != nil {
		return err
	}
	var records bytes.Buffer
	options.Argv, options.JSON, options.Stdout = argv, true, &records
	if err := demoFailed(ctx, subtract.Run(ctx, options)); err != nil {
		return err
	}
	summary, err := subtract.ReadSummary(&records)
	if err != nil {
		return err
	}
	if summary.RTTUs == nil || summary.CorrectedUs == nil {
		return errors.New("no reply could be corrected: 'tare doctor' may tell why")
	}
	fmt.Fprintf(out, "\nMedians of %d pings each, in us (to compare: 'ping' of the host itself has no container's network in it)\n\n", demoPings)
	scale := 48 / summary.RTTUs.P50
	bar := func(label string, fullUs, shadedUs float64) {
		full := strings.Repeat("█", int(fullUs*scale+0.5))
		fmt.Fprintf(out, "  %-24s %6.1f  %s%s\n", label, fullUs+shadedUs, full, strings.Repeat("░", int(shadedUs*scale+0.5)))
	}
	bar("container, as ping says", summary.CorrectedUs.P50, summary.RTTUs.P50-summary.CorrectedUs.P50)
	bar("container, corrected", summary.CorrectedUs.P50, 0)
	bar("host", native.P50, 0)
	fmt.Fprintf(out, "\n  ░ added by veth, bridge and NAT: %.1f us. %.1f%% of the replies were corrected.\n", summary.AddedUs.P50, 100*summary.Coverage)
	return nil
}

// demoNative pings from the lab's host, without a container.
func demoNative(ctx context.Context, l *lab.Lab, argv []string) (tool.Dist, error) {
	output, err := l.Command(ctx, lab.Host, argv...).Output()
	if err != nil {
		return tool.Dist{}, demoFailed(ctx, fmt.Errorf("running %s: %w", argv[0], err))
	}
	parser, _ := tool.For(argv)
	var rtts []float64
	for line := range strings.Lines(string(output)) {
		for _, reply := range parser.Parse(strings.TrimSuffix(line, "\n")).Replies {
			rtts = append(rtts, reply.RTTUs)
		}
	}
	return tool.Describe(rtts), nil
}

// demoFailed puts an interrupt in place of what it made fail.
func demoFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; everything has been removed")
	}
	return withRemedy(err)
}
