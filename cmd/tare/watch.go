package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/container"
	"tare/mace"
	"tare/subtract"
)

type watchOptions struct {
	selector
	output    string
	count     int
	duration  time.Duration
	ringBytes int
}

func newWatchCommand() *cobra.Command {
	var options watchOptions
	cmd := &cobra.Command{
		Use:   "watch [flags]",
		Short: "Show each packet of a container with the latency that its network adds",
		Long: `Shows a record for every packet that passes between a container and the host's NIC, with the latency that the event
path measures, until it is interrupted. At the end it tells on standard error how many packets there were, how many were
matched, and whether any record was lost.

Exit codes: 0 done; 1 failed; 2 wrong arguments.`,
		Example: `  tare watch --container web
  tare watch --container web --path inner-dev --count 100 -o csv
  tare watch --netns tare-lab-c1 --for 10s -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWatch(cmd.Context(), options, os.Stdout, os.Stderr)
		},
	}
	options.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&options.output, "output", "o", "text", "text, json (one object per line) or csv")
	flags.IntVarP(&options.count, "count", "c", 0, "stop after so many packets")
	flags.DurationVar(&options.duration, "for", 0, "stop after this time")
	flags.IntVar(&options.ringBytes, "ring", 8<<20, "size of the kernel's ring in bytes, a power of two: what a busy reader may fall behind by")
	return cmd
}

func runWatch(ctx context.Context, options watchOptions, stdout, stderr io.Writer) error {
	if options.count < 0 || options.duration < 0 {
		return usageError("--count and --for cannot be negative")
	}
	if n := options.ringBytes; n < os.Getpagesize() || n&(n-1) != 0 || n > 1<<30 {
		return usageError("--ring %d: it is a power of two from %d to %d", n, os.Getpagesize(), 1<<30)
	}
	path, as, err := options.eventPath()
	if err != nil {
		return err
	}
	target, err := options.target(ctx)
	if err != nil {
		return err
	}
	writer, err := subtract.NewRecordWriter(options.output, stdout, target, path)
	if err != nil {
		return usageError("%w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	session, err := subtract.Open(ctx, subtract.Options{Target: target, Path: path, NICs: options.nics, RingBytes: options.ringBytes, Aggregates: true},
		func(p *mace.Passage) {
			if options.count > 0 && writer.Count() >= options.count {
				return
			}
			if err := writer.Write(p); err != nil {
				cancel(fmt.Errorf("writing records: %w", err))
			}
			if options.count > 0 && writer.Count() >= options.count {
				cancel(nil)
			}
		})
	if err != nil {
		return withRemedy(err)
	}
	defer session.Close()
	fmt.Fprintf(stderr, "watching %s, between it and %s, path %s; ^C ends it\n", target, strings.Join(session.NICNames(), ", "), as)
	if options.duration > 0 { // from now: that attaching takes its time is no reason to see less
		defer time.AfterFunc(options.duration, func() { cancel(nil) }).Stop()
	}
	ended := wait(ctx, session, target, stderr)
	if err := session.Finish(); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	if err := session.WriteAccount(stderr); err != nil && ended == nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return ended
}

// wait returns when ctx is done, or with an error when there is nothing left to watch.
func wait(ctx context.Context, session *subtract.Session, target container.Target, stderr io.Writer) error {
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
