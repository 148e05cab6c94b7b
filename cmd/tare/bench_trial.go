package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/bench"
	"tare/bench/report"
	"tare/bench/trial"
)

type trialOptions struct {
	runs                      int
	limit, delay              time.Duration
	arm, margin, output, save string
	quick                     bool
	record                    int
	seed                      uint64
}

func newBenchTrialCommand() *cobra.Command {
	var o trialOptions
	cmd := &cobra.Command{
		Use:   "trial",
		Short: "Try the method out: how often equal networks are called different, and a known delay is found",
		Long: `Makes benchmarks of four copies of one network: the baseline, its second copy, one that is the same, and one that holds every request up
by a known time. Counts what the verdicts say of the last two. 100 benchmarks take 100 minutes, or 25 with --quick, on a
machine that should have nothing else to do. An interrupt, and --for, end it with what there is.

Exit codes: 0 measured, 1 failed, 2 wrong arguments, 3 ended early.`,
		Example: `  sudo tare bench trial --runs 100 --save trial.json
  sudo tare bench trial --runs 100 --quick --for 30m
  sudo tare bench trial --record 200 > bench/trial/testdata/default.json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTrial(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.IntVar(&o.runs, "runs", 100, "number of benchmarks")
	flags.DurationVar(&o.limit, "for", 3*time.Hour, "begin no benchmark after so long")
	flags.StringVar(&o.arm, "arm", "bridge", "the network, one that can delay: bridge or veth")
	flags.DurationVar(&o.delay, "delay", time.Microsecond, "of the delayed copy")
	flags.StringVar(&o.margin, "margin", "2%", "as for tare bench")
	flags.BoolVar(&o.quick, "quick", false, "benchmarks as tare bench --quick makes them")
	flags.IntVar(&o.record, "record", 0, "instead, record so many rounds of three equal copies, for the simulation in bench/trial")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of the benchmarks' seeds (0: a random one)")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	flags.StringVar(&o.save, "save", "", "save the result as this file, as JSON, after each benchmark")
	return cmd
}

func runTrial(ctx context.Context, o trialOptions, out io.Writer) error {
	margin, err := parseMargin(o.margin)
	switch {
	case err != nil:
		return err
	case o.runs < 1 || o.runs > 10_000:
		return usageError("--runs %d: 1 to 10000 are possible", o.runs)
	case o.record < 0 || o.record > bench.MaxRounds:
		return usageError("--record %d: 1 to %d rounds are possible", o.record, bench.MaxRounds)
	case o.limit <= 0:
		return usageError("--for %s: give a time, like 30m", o.limit)
	case o.delay <= 0 || o.delay > 30*time.Microsecond:
		return usageError("--delay %s: up to 30us is possible", o.delay)
	case o.output != "text" && o.output != "json":
		return usageError("-o %s: it is text or json", o.output)
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32-1) + 1
	}
	if o.record > 0 {
		return recordTrial(ctx, o, out)
	}
	var saving error
	result, err := trial.Series(ctx, trial.SeriesOptions{
		Runs: o.runs, For: o.limit, Arm: o.arm, Delay: o.delay, Margin: margin, Quick: o.quick, Seed: o.seed,
		Bench: bench.Options{Command: strings.Join(append([]string{"tare"}, os.Args[1:]...), " "), Version: version},
		Done: func(n int, result *trial.Result) {
			fmt.Fprintf(os.Stderr, "%d of %d: the same called different in %d, the delay found in %d\n", n, o.runs, result.Same.Different(), result.Delayed.Slower)
			saving = saveTrial(o.save, result)
		},
	})
	if err != nil && result.Same.Runs == 0 {
		return benchError(ctx, err)
	}
	write := result.WriteText
	if o.output == "json" {
		write = result.WriteJSON
	}
	if err := errors.Join(write(out), saving, saveTrial(o.save, result)); err != nil {
		return err
	}
	if result.Partial != "" {
		return exitError{code: exitPartial, err: errors.New(result.Partial)}
	}
	return nil
}

func recordTrial(ctx context.Context, o trialOptions, out io.Writer) error {
	recording, err := trial.RecordRounds(ctx, trial.SeriesOptions{
		Arm: o.arm, Quick: o.quick, Seed: o.seed, Bench: bench.Options{Command: "tare bench trial", Version: version},
	}, o.record)
	if err != nil {
		return benchError(ctx, err)
	}
	return recording.Write(out)
}

func saveTrial(path string, result *trial.Result) error {
	if path == "" {
		return nil
	}
	var text bytes.Buffer
	if err := result.WriteJSON(&text); err != nil {
		return err
	}
	return report.WriteFile(path, text.Bytes())
}
