package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"tare/container"
	"tare/hops"
)

type hopsOptions struct {
	selector
	output   string
	html     string
	perfetto string
	count    int
	duration time.Duration
}

func newHopsCommand() *cobra.Command {
	var options hopsOptions
	cmd := &cobra.Command{
		Use:   "hops [flags]",
		Short: "Show where a container's packets spend their time, hop by hop",
		Long: `Follows a container's packets through the host, from the system call that sends one to the NIC's driver, and back from
the NIC to the program that reads it; and shows the time between each two points on the way: queueing disciplines, veth,
backlog, bridge, netfilter and routing, driver, socket. The hops between the ends of the event path are marked: they add
up to what 'tare run' subtracts with the same --as or --path.

It ends after --count packets, --for a time, or with ^C, and shows then what it has seen.

Exit codes: 0 done; 1 failed; 2 wrong arguments.`,
		Example: `  tare hops --container web --count 1000
  tare hops --container web --for 10s --html hops.html
  tare hops --netns tare-lab-c1 --count 200 --perfetto trace.json
  tare hops --pid 1234 --as wire --for 5s -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runHops(cmd.Context(), options, os.Stdout, os.Stderr)
		},
	}
	options.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&options.output, "output", "o", "text", "text or json")
	flags.StringVar(&options.html, "html", "", "write a page with the waterfall to this file as well")
	flags.StringVar(&options.perfetto, "perfetto", "", "write each packet's way to this file as well, for ui.perfetto.dev")
	flags.IntVarP(&options.count, "count", "c", 0, "stop after so many packets")
	flags.DurationVar(&options.duration, "for", 0, "stop after this time")
	return cmd
}

func runHops(ctx context.Context, options hopsOptions, stdout, stderr io.Writer) (err error) {
	if options.count < 0 || options.duration < 0 {
		return usageError("--count and --for cannot be negative")
	}
	if !slices.Contains([]string{"text", "json"}, options.output) {
		return usageError("-o %s: it is text or json", options.output)
	}
	path, as, err := options.eventPath()
	if err != nil {
		return err
	}
	target, err := options.target(ctx)
	if err != nil {
		return err
	}
	if options.html != "" && options.html == options.perfetto {
		return usageError("--html and --perfetto: %s cannot be both", options.html)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waterfall := hops.NewWaterfall(path)
	timeline := hops.NewTimeline(target.String())
	session, err := hops.Open(ctx, hops.Options{Target: target, NICs: options.nics, Path: path}, func(t *hops.Trace) {
		if options.count > 0 && waterfall.Packets() >= options.count {
			return
		}
		waterfall.Add(t)
		if options.perfetto != "" {
			timeline.Add(t)
		}
		if options.count > 0 && waterfall.Packets() >= options.count {
			cancel()
		}
	})
	if err != nil {
		return withRemedy(err)
	}
	defer session.Close()
	// Before anything is measured: that a file cannot be written should not show afterwards.
	files, err := createFiles(options.html, options.perfetto)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	fmt.Fprintf(stderr, "following %s, between it and %s, path %s; ^C ends it\n", target, strings.Join(session.NICNames(), ", "), as)
	if options.duration > 0 {
		defer time.AfterFunc(options.duration, cancel).Stop()
	}
	ended := follow(ctx, session, target)
	if err := session.Finish(); err != nil {
		return err
	}
	report, err := session.Report(waterfall, as)
	if err != nil {
		return err
	}
	if err := writeHops(report, timeline, options.output, stdout, files); err != nil {
		return err
	}
	return ended
}

// follow returns when ctx is done, or with an error when there is nothing left to follow.
func follow(ctx context.Context, session *hops.Session, target container.Target) error {
	gone, err := target.Watch(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%s has stopped", target)
		case <-tick.C:
			if nic := session.MissingNIC(); nic != "" {
				return fmt.Errorf("device %s has disappeared", nic)
			}
			if err := session.Drain(); err != nil {
				return err
			}
		}
	}
}

func writeHops(report *hops.Report, timeline *hops.Timeline, output string, stdout io.Writer, files *hopsFiles) error {
	var err error
	if output == "json" {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		err = report.WriteText(stdout, hops.TextOptions{Width: columnsOf(stdout)})
	}
	if err != nil {
		return fmt.Errorf("writing the waterfall: %w", err)
	}
	if files.html != nil {
		if err := report.WriteHTML(files.html); err != nil {
			return fmt.Errorf("writing %s: %w", files.html.Name(), err)
		}
	}
	if files.perfetto != nil {
		if err := timeline.Write(files.perfetto); err != nil {
			return fmt.Errorf("writing %s: %w", files.perfetto.Name(), err)
		}
	}
	return nil
}

// hopsFiles are the files to write besides; nil: not asked for.
type hopsFiles struct{ html, perfetto *os.File }

func createFiles(html, perfetto string) (*hopsFiles, error) {
	files := &hopsFiles{}
	for _, f := range []struct {
		flag, name string
		to         **os.File
	}{{"--html", html, &files.html}, {"--perfetto", perfetto, &files.perfetto}} {
		if f.name == "" {
			continue
		}
		file, err := os.Create(f.name)
		if err != nil {
			files.close()
			return nil, fmt.Errorf("%s: %w", f.flag, err)
		}
		*f.to = file
	}
	return files, nil
}

func (f *hopsFiles) close() (err error) {
	for _, file := range []*os.File{f.html, f.perfetto} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// columnsOf is the width of a terminal, within what reads well; 80 of what is none.
func columnsOf(out io.Writer) int {
	const usual, most = 80, 120
	file, ok := out.(*os.File)
	if !ok {
		return usual
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return usual
	}
	return min(int(size.Col), most)
}
