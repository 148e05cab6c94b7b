package subtract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"tare/container"
	"tare/mace"
	"tare/tool"
)

// RunOptions say which tool to run and how to show it.
type RunOptions struct {
	Options
	Argv []string
	As   string // bare-metal or wire; or the path's name, where one was chosen
	TTY  bool   // the tool writes to a terminal
	JSON bool
	CSV  bool

	Stdout, Stderr io.Writer
}

// ExitTareFailed is the exit code of tare's own failures; docker run has the same.
const ExitTareFailed = 125

// ToolError says how the tool ended. It has been shown already.
type ToolError struct{ Code int }

func (e ToolError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Run runs a tool in the target and shows its output corrected. A ToolError carries the tool's exit code.
func Run(ctx context.Context, options RunOptions) error {
	r := &run{options: options, trips: newRoundTrips(options.Path.Stamped != nil, options.Argv), totals: newTotals()}
	r.correlator = mace.NewCorrelator(func(rtt *mace.RTT) {
		r.totals.roundTrip(rtt)
		r.trips.add(rtt)
	})
	session, err := Open(ctx, options.Options, r.passage)
	if err != nil {
		return err
	}
	defer session.Close()
	r.session = session
	return r.do(ctx)
}

type run struct {
	options    RunOptions
	session    *Session
	correlator *mace.Correlator
	trips      *roundTrips
	totals     *totals
	annotator  *tool.Annotator
	report     reporter
	tool       *container.Run
	killed     bool // by a signal, as its exit code has it
	goneTold   bool
}

// signalCodes is what shells, Docker and podman add to a signal's number.
const signalCodes = 128

// passage is called with each packet of the target.
func (r *run) passage(p *mace.Passage) {
	if p.Direction == mace.Egress {
		r.trips.request(p)
	}
	r.totals.passage(p)
	r.correlator.Add(p)
}

func (r *run) do(ctx context.Context) error {
	r.report = newReporter(r)
	err := r.runTool(ctx)
	r.killed = container.ExitCode(err) > signalCodes
	if !r.options.Target.Alive() { // the tool's end may have come first
		r.tellGone()
	}
	if errors.As(err, new(notStarted)) {
		r.note("%v", err)
		return ToolError{container.ExitCode(err)}
	}
	if err := r.session.Finish(); err != nil {
		return err
	}
	if err := r.report.finish(); err != nil {
		return err
	}
	if code := container.ExitCode(err); code != 0 {
		return ToolError{code}
	}
	return nil
}

// notStarted wraps the error of a tool that is not there, or cannot be run.
type notStarted struct{ error }

func (e notStarted) Unwrap() error { return e.error }

// runTool runs the tool to its end. A tool whose text is not understood gets our own streams.
func (r *run) runTool(ctx context.Context) error {
	parser, known := tool.For(r.options.Argv)
	records := r.options.JSON || r.options.CSV
	if !known {
		interactive := r.options.TTY && isTerminal(os.Stdin)
		r.tool = r.options.Target.Command(ctx, r.options.Argv, container.Options{TTY: interactive, Stdin: true})
		r.tool.Cmd.Stdout, r.tool.Cmd.Stderr = r.options.Stdout, r.options.Stderr
		if records {
			r.tool.Cmd.Stdout = r.options.Stderr // stdout is for records
		}
		if err := r.tool.Start(); err != nil {
			return notStarted{err}
		}
		return r.wait(ctx)
	}
	r.annotate(parser)
	var textOut, textErr io.Writer = r.options.Stdout, r.options.Stderr
	if records {
		textOut, textErr = nil, nil
	}
	stdout, stderr := r.annotator.Stream(textOut), r.annotator.Stream(textErr)
	output, err := newOutput(stdout, stderr, r.options.TTY && !r.options.Target.HasOwnTools())
	if err != nil {
		return err
	}
	r.tool = r.options.Target.Command(ctx, r.options.Argv, container.Options{
		TTY: r.options.TTY, Stdin: !isTerminal(os.Stdin), // fping reads targets there
	})
	r.tool.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.tool.Cmd.Stdout, r.tool.Cmd.Stderr = output.stdout(), output.stderr()
	err = r.tool.Start()
	output.start()
	if err != nil {
		output.wait()
		return notStarted{err}
	}
	err = r.wait(ctx)
	output.wait()
	stdout.Close()
	stderr.Close()
	r.annotator.Close()
	return err
}

func (r *run) wait(ctx context.Context) error {
	stop := r.follow(ctx)
	defer stop()
	return r.tool.Wait()
}

// annotate sets up the annotator for a tool whose text is understood.
func (r *run) annotate(parser tool.Parser) {
	r.annotator = tool.NewAnnotator(parser, func(reply tool.Reply) tool.Correction {
		r.session.Drain()
		return r.trips.correct(reply)
	})
	r.annotator.As = r.options.As
	r.annotator.Unprinted = func(tool.Stats) []float64 {
		r.session.Drain()
		return r.totals.addedSoFar()
	}
	r.annotator.OnReply, r.annotator.OnStats = r.report.reply, r.report.stats
}

// watchEvery is how often the target and its NIC are looked after.
const watchEvery = 500 * time.Millisecond

// follow passes signals on to the tool, and tells when the ground goes from under it. The function that it returns
// ends that.
func (r *run) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	gone, err := r.options.Target.Watch(ctx)
	if err != nil {
		gone = nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		nicTold := false
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if err := r.tool.Signal(s.(syscall.Signal)); err != nil && !errors.Is(err, os.ErrProcessDone) {
					r.note("%v", err)
				}
			case <-gone:
				if ctx.Err() == nil {
					r.tellGone()
				}
				gone = nil
			case <-tick.C:
				if name := r.session.MissingNIC(); name != "" && !nicTold {
					r.note("device %s has disappeared: packets that leave from now on are not corrected", name)
					nicTold = true
				}
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}

// tellGone says once that the target is gone.
func (r *run) tellGone() {
	if !r.goneTold {
		r.goneTold = true
		r.note("%s has stopped; what follows is about what was measured until then", r.options.Target)
	}
}

func (r *run) note(format string, args ...any) {
	fmt.Fprintf(r.options.Stderr, "tare: "+format+"\n", args...)
}
