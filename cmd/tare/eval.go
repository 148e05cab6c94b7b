package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"tare/eval"
)

type evalOptions struct {
	parts   []eval.Part
	output  string
	rounds  int
	quick   bool
	strict  bool
	seed    uint64
	floods  []int
	packets int
	save    string
	html    string
}

// exitTargetMissed is the exit code of --strict.
const exitTargetMissed = 3

func newEvalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure how accurate tare is on this machine, and what it costs",
		Long: `Measures tare itself, each part in a lab of its own made of network namespaces, which is taken down at the end,
at an interrupt, too. Needs root, ping of iputils, fping and busybox.

Arms are interleaved in shuffled rounds. A round is one sample: figures are medians over rounds with 95% bootstrap
intervals. A target that is missed is printed as a result, and is no failure unless --strict is given.

Exit codes: 0 measured, 1 failed, 2 wrong arguments, 3 a target was missed and --strict is given.`,
		Example: `  tare eval all --quick
  tare eval accuracy --floods 0,4 --rounds 20
  tare eval perturbation -o json > perturbation.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown command %q: tare eval has payload, load, accuracy, perturbation, poster, falsematches, lifecycle, all and show", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newEvalPartCommand(eval.PartPayload, "Measure what a container's network adds at each packet size (the paper's Fig. 2)",
		`A flood ping in a container between two on the host, for each of the paper's payloads.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartLoad, "Measure error and coverage beside more and more flooding containers (Fig. 3 and 4)",
		`Flood pings on the host and in a container. Each reply is corrected to the RTT at the NIC and compared with the kernel's stamps
there, of that very packet.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartPoster, "Measure RTTs by every method of the poster, and a time series beside 10 Mbit/s",
		`Mean, mode and deviation of ping's RTTs on the host, in a container, and corrected by each event path.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartAccuracy, "Compare corrected RTTs with the host's own ping, and with a tap on the NIC",
		`With --as bare-metal's correction, ping in a container is compared with ping on the host. With --as wire's, the replies of
ping, ping -U, fping and busybox ping are compared one by one with the kernel's stamps on the NIC.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartFalseMatches, "Count packets that were given another packet's time",
		`A container floods the remote host while others exchange TCP, UDP and ICMP, so that packet buffers are reused all the
time. Each matched packet is compared with what a tap on the NIC saw.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartPerturbation, "Measure what watching adds to a packet's round trip, beside ftrace",
		`A container's flood ping with nothing attached, with programs that do nothing, with each event path, with another namespace
watched, and with ftrace on the same events.`))
	cmd.AddCommand(newEvalPartCommand(eval.PartLifecycle, "Measure attaching, detaching, starting, and memory",
		`Times to attach and detach, to start the program, and the largest resident memory of tare run.`))
	cmd.AddCommand(newEvalAllCommand(), newEvalShowCommand())
	return cmd
}

func newEvalPartCommand(part eval.Part, short, long string) *cobra.Command {
	options := evalOptions{parts: []eval.Part{part}}
	cmd := &cobra.Command{
		Use: string(part), Short: short, Long: long, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), options, cmd.OutOrStdout()) },
	}
	options.addFlags(cmd)
	switch part {
	case eval.PartAccuracy, eval.PartLoad:
		options.addFloods(cmd)
	case eval.PartFalseMatches:
		options.addPackets(cmd)
	}
	return cmd
}

func newEvalAllCommand() *cobra.Command {
	options := evalOptions{parts: eval.Parts}
	cmd := &cobra.Command{
		Use: "all", Short: "Measure everything: under 3 minutes with --quick, else about 25", Args: noArguments,
		Long: `All parts, one after the other. --save writes the raw output (eval.json), its renderings (eval.txt, eval.html) and the
figures (PNG), with the command and the machine, into a directory.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runEval(cmd.Context(), options, cmd.OutOrStdout()) },
	}
	options.addFlags(cmd)
	options.addFloods(cmd)
	options.addPackets(cmd)
	return cmd
}

func (o *evalOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	flags.IntVar(&o.rounds, "rounds", 0, "number of rounds (0: as many as each part needs)")
	flags.BoolVar(&o.quick, "quick", false, "fewer rounds")
	flags.BoolVar(&o.strict, "strict", false, "exit with code 3 if a target is missed")
	flags.Uint64Var(&o.seed, "seed", 0, "seed of shuffling and resampling (0: a random one; it is printed)")
	flags.StringVar(&o.save, "save", "", "write eval.json, eval.txt, eval.html and the figures into this directory, too")
	flags.StringVar(&o.html, "html", "", "write one page with the figures into this file, too")
}

func (o *evalOptions) addFloods(cmd *cobra.Command) {
	cmd.Flags().IntSliceVar(&o.floods, "floods", nil, "numbers of flooding containers beside the measured one (default: the part's own)")
}

func (o *evalOptions) addPackets(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.packets, "packets", 100_000, "packets to measure among which false matches are counted")
}

func (o *evalOptions) check() error {
	switch {
	case o.output != "text" && o.output != "json":
		return usageError("-o %s: it is text or json", o.output)
	case o.rounds < 0 || o.rounds > 10_000:
		return usageError("--rounds %d: 1 to 10000 are possible", o.rounds)
	case o.packets < 0 || o.packets > 10_000_000:
		return usageError("--packets %d: 1 to 10000000 are possible", o.packets)
	}
	for _, n := range o.floods {
		if n < 0 || n > eval.MaxFloods {
			return usageError("--floods %d: 0 to %d are possible", n, eval.MaxFloods)
		}
	}
	return nil
}

func runEval(ctx context.Context, options evalOptions, out io.Writer) error {
	if err := options.check(); err != nil {
		return err
	}
	if options.seed == 0 {
		options.seed = rand.Uint64N(1<<32-1) + 1
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	request := eval.Options{
		Parts: options.parts, Quick: options.quick, Rounds: options.rounds, Seed: options.seed, Floods: options.floods,
		Packets: options.packets, Program: program, Command: strings.Join(append([]string{"tare"}, os.Args[1:]...), " "),
	}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		request.Progress = os.Stderr
	}
	report, err := eval.Run(ctx, request)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: needs root: run with sudo", err)
	case err != nil:
		return withRemedy(err)
	}
	if options.save != "" {
		if err := report.Save(options.save); err != nil {
			return err
		}
	}
	if options.html != "" {
		if err := report.SaveHTML(options.html); err != nil {
			return err
		}
	}
	if options.output == "json" {
		err = report.WriteJSON(out)
	} else {
		err = report.WriteText(out)
	}
	if err == nil && options.strict && report.Missed() > 0 {
		err = exitError{code: exitTargetMissed, err: fmt.Errorf("%d targets are not met", report.Missed())}
	}
	return err
}
