package main

import (
	"bytes"
	"context"
	"encoding/json"
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

const demoPings, demoRounds = 500, 5

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

// demoCompare pings faster and more often, from the host and from the container in turns, and draws the medians.
func demoCompare(ctx context.Context, out io.Writer, l *lab.Lab, options subtract.RunOptions) error {
	var native, raw, corrected []float64
	replies := 0
	options.Argv = []string{"ping", "-c", fmt.Sprint(demoPings / demoRounds), "-i", "0.002", l.RemoteAddr4().String()}
	options.JSON = true
	for range demoRounds {
		rtts, err := demoNative(ctx, l, options.Argv)
		if err != nil {
			return err
		}
		native = append(native, rtts...)
		var records bytes.Buffer
		options.Stdout = &records
		if err := demoFailed(ctx, subtract.Run(ctx, options)); err != nil {
			return err
		}
		for line := range bytes.Lines(records.Bytes()) {
			var reply struct {
				Type        string
				RTTUs       float64  `json:"rtt_us"`
				CorrectedUs *float64 `json:"corrected_us"`
			}
			if json.Unmarshal(line, &reply) != nil || reply.Type != "rtt" {
				continue
			}
			replies++
			if reply.CorrectedUs != nil {
				raw, corrected = append(raw, reply.RTTUs), append(corrected, *reply.CorrectedUs)
			}
		}
	}
	if len(corrected) == 0 {
		return errors.New("no reply could be corrected: 'tare doctor' may tell why")
	}
	hostUs, rawUs, netUs := tool.Describe(native).P50, tool.Describe(raw).P50, tool.Describe(corrected).P50
	fmt.Fprintf(out, "\nMedians of %d pings each, in turns of %d, in us:\n\n", demoPings, demoPings/demoRounds)
	scale := 48 / max(rawUs, hostUs)
	bar := func(label string, fullUs, shadedUs float64) {
		full := strings.Repeat("█", int(fullUs*scale+0.5))
		fmt.Fprintf(out, "  %-24s %6.1f  %s%s\n", label, fullUs+shadedUs, full, strings.Repeat("░", max(0, int(shadedUs*scale+0.5))))
	}
	bar("container, as ping says", netUs, rawUs-netUs)
	bar("container, corrected", netUs, 0)
	bar("the host's own ping", hostUs, 0)
	fmt.Fprintf(out, "\n  ░ is what veth, bridge and NAT add. %.1f%% of the replies were corrected.\n",
		100*float64(len(corrected))/float64(replies))
	return nil
}

// demoNative pings from the lab's host, without a container.
func demoNative(ctx context.Context, l *lab.Lab, argv []string) (rttsUs []float64, err error) {
	output, err := l.Command(ctx, lab.Host, argv...).Output()
	if err != nil {
		return nil, demoFailed(ctx, fmt.Errorf("running %s: %w", argv[0], err))
	}
	parser, _ := tool.For(argv)
	for line := range strings.Lines(string(output)) {
		for _, reply := range parser.Parse(strings.TrimSuffix(line, "\n")).Replies {
			rttsUs = append(rttsUs, reply.RTTUs)
		}
	}
	return rttsUs, nil
}

// demoFailed puts an interrupt in place of what it made fail.
func demoFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; everything has been removed")
	}
	return withRemedy(err)
}
