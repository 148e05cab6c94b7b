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
	r := &run{options: options, trips: newRoundTrips()}
	r.correlator = mace.NewCorrelator(r.trips.add)
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
	annotator  *tool.Annotator
	report     reporter
	tool       *container.Run
}

// passage is called with each packet of the target.
func (r *run) passage(p *mace.Passage) {
	if p.Direction == mace.Egress {
		r.trips.request(p)
	}
	r.correlator.Add(p)
}

func (r *run) do(ctx context.Context) error {
	r.report = newReporter(r)
	stdout, stderr, closeStreams := r.streams()
	r.tool = r.options.Target.Command(ctx, r.options.Argv, container.Options{
		TTY: r.options.TTY && isTerminal(os.Stdin), Stdin: r.options.TTY && isTerminal(os.Stdin),
	})
	r.tool.Cmd.Stdout, r.tool.Cmd.Stderr = stdout, stderr
	err := r.tool.Start()
	if err == nil {
		stop := r.follow(ctx)
		err = r.tool.Wait()
		stop()
	} else {
		fmt.Fprintf(r.options.Stderr, "tare: %v\n", err)
	}
	closeStreams()
	if finishErr := r.session.Finish(); finishErr != nil {
		return finishErr
	}
	if reportErr := r.report.finish(); reportErr != nil {
		return reportErr
	}
	if code := container.ExitCode(err); code != 0 {
		return ToolError{code}
	}
	return nil
}

// streams are where the tool writes to: through the annotator if its text is understood.
func (r *run) streams() (stdout, stderr io.Writer, closeBoth func()) {
	parser, known := tool.For(r.options.Argv)
	if !known {
		if r.options.JSON || r.options.CSV {
			return r.options.Stderr, r.options.Stderr, func() {} // stdout is for records
		}
		return r.options.Stdout, r.options.Stderr, func() {}
	}
	r.annotator = tool.NewAnnotator(parser, func(reply tool.Reply) tool.Correction {
		r.session.Drain()
		return r.trips.correct(reply)
	})
	r.annotator.As = r.options.As
	r.annotator.Unprinted = func(tool.Stats) []float64 {
		r.session.Drain()
		return r.trips.allAdded()
	}
	r.annotator.OnReply, r.annotator.OnStats = r.report.reply, r.report.stats
	var textOut, textErr io.Writer = r.options.Stdout, r.options.Stderr
	if r.options.JSON || r.options.CSV {
		textOut = nil
		textErr = nil
	}
	out, errs := r.annotator.Stream(textOut), r.annotator.Stream(textErr)
	return out, errs, func() {
		out.Close()
		errs.Close()
		r.annotator.Close()
	}
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
					r.note("%s has stopped; what follows is about what was measured until then", r.options.Target)
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

func (r *run) note(format string, args ...any) {
	fmt.Fprintf(r.options.Stderr, "tare: "+format+"\n", args...)
}
