package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/bench"
	"tare/bench/report"
	"tare/bench/verdict"
)

// exitPartial is the exit code of a report that is not all that was asked for.
const exitPartial = 3

type benchOptions struct {
	arms, workloads, placements []string
	sizes, rates                []int
	quick, full, untilDecided   bool
	preset, output, save        string
	margin                      string
	rounds, softirq             int
	round, budget               time.Duration
	seed                        uint64
	list                        bool
}

func newBenchCommand() *cobra.Command {
	var options benchOptions
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Compare what container networks cost on this machine",
		Long: `Runs the same load tool over several networks (arms) in interleaved rounds, and says of each how much more a round trip takes
than over the first one, the baseline: slower, faster, equivalent within the margin, or not known yet, and how many more
rounds would tell. All times are full round trips (RTT); half of one is never called so.

A round is one sample: brackets are 95% intervals over rounds, whose values are paired. The baseline takes part twice: what it
differs from itself is the noise floor. 'tare bench --list' shows arms and workloads, and why some cannot run here.

Exit codes: 0 measured, 1 failed, 2 wrong arguments, 3 a partial report: interrupted, or an arm failed meanwhile.`,
		Example: `  sudo tare bench --quick
  sudo tare bench --save mine.tare.json
  sudo tare bench --arms loopback,veth,bridge,docker-bridge --size 14,1024 --margin 0.5us --until-decided
  sudo tare bench --preset veth-benchmark --save veth.tare.json
  tare bench show mine.tare.json
  tare bench compare old.tare.json new.tare.json
  tare bench html mine.tare.json > mine.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q: tare bench has show, compare, export, html, kernels, trial and docknet", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.list {
				return runBenchList(cmd.Context(), options.output, cmd.OutOrStdout())
			}
			return runBench(cmd.Context(), options, cmd.Flags().Changed, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&options.arms, "arms", nil, "networks to compare, the baseline first (default loopback,bridge,docker-bridge, as far as they can run)")
	flags.StringSliceVar(&options.workloads, "workload", nil, "workloads (default: the first of --list)")
	flags.IntSliceVar(&options.sizes, "size", nil, "payload of a message in bytes, one or several (default: the workload's)")
	flags.IntSliceVar(&options.rates, "rate", nil, "messages per second, one or several (0: each when the last was answered)")
	flags.StringSliceVar(&options.placements, "placement", nil, "where client and server run: cross-core, same-core, unpinned (default cross-core)")
	flags.IntVar(&options.softirq, "softirq-cpu", -1, "CPU that processes received packets, for arms that can choose: not loopback, Docker and podman (-1: the sender's)")
	flags.BoolVar(&options.quick, "quick", false, "about 15 s instead of 60, with short rounds")
	flags.BoolVar(&options.full, "full", false, "every arm, every workload, several sizes, same core and two cores: half an hour")
	flags.StringVar(&options.preset, "preset", "", "veth-benchmark: loopback against Docker as published, and as it should be done")
	flags.StringVar(&options.margin, "margin", "2%", "differences that nobody minds, as 2% of the baseline or 0.5us")
	flags.BoolVar(&options.untilDecided, "until-decided", false, "go on until every arm has a verdict, up to 16 times as many rounds")
	flags.DurationVar(&options.budget, "time", 0, "about how long to measure; the number of rounds comes from it (default 60s)")
	flags.DurationVar(&options.round, "round", 0, "length of one arm's share of a round (default 1s)")
	flags.IntVar(&options.rounds, "rounds", 0, "number of rounds (0: as many as the time allows)")
	flags.Uint64Var(&options.seed, "seed", 0, "seed of shuffling and resampling (0: a random one; it is in the report)")
	flags.StringVarP(&options.output, "output", "o", "text", "text, or json: the report itself")
	flags.StringVar(&options.save, "save", "", "save the report as this file, *"+report.Suffix)
	flags.BoolVar(&options.list, "list", false, "list arms, workloads, and what keeps some from running here")
	cmd.AddCommand(newBenchShowCommand(), newBenchCompareCommand(), newBenchExportCommand(), newBenchHTMLCommand(), newBenchKernelsCommand(), newBenchTrialCommand(), newBenchDockNetCommand())
	return cmd
}

// check refuses what cannot be, before anything is made.
func (o *benchOptions) check() error {
	switch {
	case o.output != "text" && o.output != "json":
		return usageError("-o %s: it is text or json", o.output)
	case o.rounds < 0 || o.rounds > bench.MaxRounds:
		return usageError("--rounds %d: 1 to %d are possible", o.rounds, bench.MaxRounds)
	case o.round != 0 && (o.round < 50*time.Millisecond || o.round > time.Minute):
		return usageError("--round %s: 50ms to 1m are possible", o.round)
	case o.budget != 0 && (o.budget < time.Second || o.budget > 24*time.Hour):
		return usageError("--time %s: 1s to 24h are possible", o.budget)
	case o.softirq < -1 || o.softirq >= runtime.NumCPU():
		return usageError("--softirq-cpu %d: 0 to %d are possible", o.softirq, runtime.NumCPU()-1)
	case o.quick && o.full:
		return usageError("--quick and --full: use one of them")
	case o.preset != "" && o.preset != "veth-benchmark":
		return usageError("--preset %q: there is veth-benchmark", o.preset)
	case o.preset != "" && (o.full || len(o.workloads)+len(o.sizes)+len(o.rates) > 0):
		return usageError("--preset %s chooses workload, size and rate itself", o.preset)
	case o.full && len(o.arms)+len(o.workloads)+len(o.sizes)+len(o.rates)+len(o.placements) > 0:
		return usageError("--full means all arms, workloads, sizes and placements: leave out the flags that choose some")
	case len(o.arms) == 1:
		return usageError("--arms %s: name at least two, the baseline first", o.arms[0])
	}
	for i, name := range o.arms {
		if slices.Contains(o.arms[:i], name) {
			return usageError("--arms: %s is there twice; the baseline is measured twice by itself", name)
		}
	}
	for _, name := range o.placements {
		if !slices.Contains(bench.PlacementNames, name) {
			return usageError("--placement %q: use %s", name, strings.Join(bench.PlacementNames, ", "))
		}
	}
	for _, size := range o.sizes {
		if size < 1 {
			return usageError("--size %d: give a number of bytes", size)
		}
	}
	for _, rate := range o.rates {
		if rate < 0 || rate > 10_000_000 {
			return usageError("--rate %d: 0 to 10000000 are possible", rate)
		}
	}
	return o.checkSave()
}

// checkSave finds out beforehand whether the report can be saved: an hour later would be late.
func (o *benchOptions) checkSave() error {
	if o.save == "" {
		return nil
	}
	if !strings.HasSuffix(o.save, report.Suffix) {
		return usageError("--save %s: reports are named *%s, so %s%s", o.save, report.Suffix, strings.TrimSuffix(o.save, ".json"), report.Suffix)
	}
	probe, err := os.CreateTemp(filepath.Dir(o.save), ".tare-*")
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	probe.Close()
	return os.Remove(probe.Name())
}

// parseMargin understands 2% and 0.5us.
func parseMargin(text string) (verdict.Margin, error) {
	for suffix, make := range map[string]func(float64) verdict.Margin{
		"%":  func(v float64) verdict.Margin { return verdict.Margin{Share: v / 100} },
		"us": func(v float64) verdict.Margin { return verdict.Margin{Amount: v} },
	} {
		number, ok := strings.CutSuffix(text, suffix)
		if v, err := strconv.ParseFloat(number, 64); ok && err == nil && v > 0 && v < 1e6 && (suffix != "%" || v < 100) {
			return make(v), nil
		}
	}
	return verdict.Margin{}, usageError("--margin %s: give a share like 2%%, or a time like 0.5us", text)
}

func runBench(ctx context.Context, o benchOptions, given func(flag string) bool, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	request, err := o.request(given)
	if err != nil {
		return err
	}
	bar := bench.Bar{Out: os.Stderr}
	if fd := int(os.Stderr.Fd()); term.IsTerminal(fd) {
		bar.Width, _, _ = term.GetSize(fd)
		request.Progress = bar.Draw
	}
	measured, err := bench.Run(ctx, request)
	if request.Progress != nil {
		bar.Clear()
	}
	if err != nil {
		return benchError(ctx, err)
	}
	return o.finish(measured, out)
}

// request fills in what the presets mean.
func (o *benchOptions) request(given func(flag string) bool) (bench.Options, error) {
	margin, err := parseMargin(o.margin)
	if err != nil {
		return bench.Options{}, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32-1) + 1
	}
	request := bench.Options{
		Placements: o.placements, Round: o.round, Rounds: o.rounds, Budget: o.budget, UntilDecided: o.untilDecided, Margin: margin,
		Seed: o.seed, Command: strings.Join(append([]string{"tare"}, os.Args[1:]...), " "), Version: version,
	}
	if o.softirq >= 0 {
		request.Softirq = &o.softirq
	}
	switch {
	case o.full:
		request.Full()
	case o.preset != "":
		request.VethBenchmark()
	}
	if o.quick {
		request.Quick()
	}
	if given("arms") {
		request.Arms = nil
		for _, name := range o.arms {
			request.Arms = append(request.Arms, bench.ArmSpec{Name: name})
		}
	}
	for _, name := range orOne(o.workloads, "") {
		for _, size := range orOne(o.sizes, 0) {
			for _, rate := range orOne(o.rates, 0) {
				if name != "" || size != 0 || rate != 0 {
					request.Workloads = append(request.Workloads, bench.Workload{Name: name, Size: size, Rate: rate})
				}
			}
		}
	}
	return request, nil
}

// orOne is a list, or one with a single value where it is empty.
func orOne[T any](list []T, value T) []T {
	if len(list) == 0 {
		return []T{value}
	}
	return list
}

// finish shows the report before it is saved: what a full disk takes is then still on the screen.
func (o *benchOptions) finish(measured *report.Report, out io.Writer) error {
	var err error
	if o.output == "json" {
		var text []byte
		if text, err = measured.Encode(); err == nil {
			_, err = out.Write(text)
		}
	} else {
		err = measured.WriteText(out)
	}
	if o.save != "" {
		if saving := measured.Save(o.save); saving != nil {
			err = errors.Join(err, saving)
		} else if o.output == "text" {
			fmt.Fprintf(out, "saved as %s\n", o.save)
		}
	}
	if err == nil && measured.Partial != "" {
		err = exitError{code: exitPartial, err: fmt.Errorf("the report is partial: %s", measured.Partial)}
	}
	return err
}

func benchError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted before the first round: there is nothing to report")
	case errors.Is(err, bench.ErrUsage):
		return exitError{code: 2, err: err}
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: needs root: run with sudo", err)
	}
	return err
}
