package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// markVariable is the environment variable that a tool and its children are known by.
const markVariable = "TARE_RUN"

// Stop asks as a terminal's ^C does, because measurement tools answer that with their summary; then insists.
const (
	termAfter = time.Second
	killAfter = 3 * time.Second

	pollInterval = 10 * time.Millisecond
	startTimeout = 10 * time.Second // from the client's start to the tool's, on a busy machine
)

// Options are what 'docker exec' has flags for.
type Options struct {
	TTY   bool // -t: a terminal in the container. The command's standard input must be a terminal if Stdin is set.
	Stdin bool // -i: pass standard input on
}

// Run is a command in a target. Set the standard streams of Cmd before Start; start and wait for it through Run.
//
// A container's process is no child of the client that asked for it: killing 'docker exec' leaves the tool
// running. So the tool is marked with a random environment variable, by which its process on the host is found and
// signalled, and a guard ends it should this process die without a word. It needs root, as reading other
// processes' environments does.
type Run struct {
	Cmd *exec.Cmd

	target Target
	ctx    context.Context
	tty    bool
	mark   string // NAME=value
	guard  guard
	waited chan struct{} // closed when Wait has the exit status

	stop sync.Once
}

// Command prepares argv to run in the target: with the container's own tools in a container (docker exec or podman
// exec), else with the host's tools inside the network namespace. When ctx is done the tool is stopped.
func (t Target) Command(ctx context.Context, argv []string, options Options) *Run {
	r := &Run{target: t, ctx: ctx, tty: options.TTY, mark: markVariable + "=" + rand.Text(), waited: make(chan struct{})}
	if t.isContainer() {
		arguments := []string{"exec", "--env", r.mark}
		if options.TTY {
			arguments = append(arguments, "--tty")
		}
		if options.Stdin {
			arguments = append(arguments, "--interactive")
		}
		arguments = append(arguments, t.ID)
		r.Cmd = exec.CommandContext(ctx, string(t.Runtime), append(arguments, argv...)...)
	} else {
		r.Cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
		r.Cmd.Env = append(os.Environ(), r.mark)
	}
	if options.Stdin {
		r.Cmd.Stdin = os.Stdin
	}
	r.Cmd.Cancel = func() error {
		go r.Stop() // its own time limit ends the client, if it comes to that
		return nil
	}
	return r
}

// Start starts the command. For its error see ExitCode.
func (r *Run) Start() error {
	// In a process group of its own a terminal's ^C does not kill the client before its tool could finish; this
	// process passes it on with Signal. Except where the client reads the terminal, which only the foreground may.
	if r.Cmd.SysProcAttr == nil && !r.tty && !isTerminal(r.Cmd.Stdin) {
		r.Cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if err := r.guard.start(r.mark); err != nil {
		return fmt.Errorf("starting the guard of %q: %w", r.Cmd.Args[0], err)
	}
	start := r.Cmd.Start
	if !r.target.isContainer() {
		// The child inherits the network namespace of the thread that starts it.
		start = func() error { return InNetNS(r.target.NetNSPath, r.Cmd.Start) }
	}
	if err := start(); err != nil {
		r.guard.dismiss()
		return fmt.Errorf("starting %q in %s: %w", r.Cmd.Args[0], r.target, err)
	}
	return nil
}

// Wait waits for the command to end and for what it wrote to be read. When ctx was done, the tool has ended, too.
func (r *Run) Wait() error {
	err := r.Cmd.Wait()
	close(r.waited)
	if r.ctx.Err() != nil {
		r.Stop()
	}
	r.guard.dismiss()
	return err
}

// Run is Start and Wait.
func (r *Run) Run() error {
	if err := r.Start(); err != nil {
		return err
	}
	return r.Wait()
}

// PID waits until the tool itself runs and returns its process ID as the host sees it: eBPF programs see the same.
// The error is os.ErrProcessDone if the command ended before that was known.
func (r *Run) PID(ctx context.Context) (int, error) {
	if !r.target.isContainer() {
		return r.Cmd.Process.Pid, nil
	}
	for {
		ended := r.ended()
		if pids := marked(r.mark); len(pids) > 0 {
			return pids[0], nil
		}
		if ended {
			return 0, os.ErrProcessDone
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("waiting for %q to start in %s: %w", r.Cmd.Args, r.target, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// Signal sends a signal to the tool and its children, as a terminal does. The error is os.ErrProcessDone if the
// command has ended.
func (r *Run) Signal(signal syscall.Signal) error {
	if r.ended() {
		return os.ErrProcessDone
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if _, err := r.PID(ctx); err != nil {
		return err
	}
	for _, pid := range marked(r.mark) {
		if err := signalMarked(pid, r.mark, signal); err != nil {
			return fmt.Errorf("sending %s to process %d in %s: %w", signal, pid, r.target, err)
		}
	}
	return nil
}

// Stop ends the tool and its children and returns when they are gone. It may be called at any time after Start,
// from any goroutine, and leaves a command that has ended alone.
func (r *Run) Stop() { r.stop.Do(r.doStop) }

func (r *Run) doStop() {
	began := time.Now()
	signal, sent := unix.SIGINT, map[int]bool{}
	for {
		// In this order: an ended client starts no tool any more, so what is not there afterwards never will be.
		ended := r.ended()
		pids := marked(r.mark)
		if ended && len(pids) == 0 {
			return
		}
		switch waited := time.Since(began); {
		case waited > killAfter && signal != unix.SIGKILL:
			signal, sent = unix.SIGKILL, map[int]bool{}
		case waited > termAfter && signal == unix.SIGINT:
			signal, sent = unix.SIGTERM, map[int]bool{}
		}
		for _, pid := range pids {
			if !sent[pid] && signalMarked(pid, r.mark, signal) == nil {
				sent[pid] = true
			}
		}
		// The client ends with its tool. One that outlives it, or never gets to start it, hangs on its runtime.
		if time.Since(began) > startTimeout {
			_ = r.Cmd.Process.Kill()
		}
		time.Sleep(pollInterval)
	}
}

// ended reports whether the started command has ended, whether or not somebody has waited for it.
func (r *Run) ended() bool {
	select {
	case <-r.waited:
		return true
	default:
	}
	// Until it has been waited for, its process ID cannot be anybody else's.
	stat, err := readStat(r.Cmd.Process.Pid)
	return err != nil || stat.dead()
}

// ExitCode is the exit code that a shell would have for the error of Start, Wait or Run: the tool's own; 128 and the
// signal's number if one ended it; 127 if there is no such tool and 126 if it cannot be run, as podman and Docker
// have them (Docker 20.10 has 126 for both); 1 for anything else.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return 127
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		return 126
	}
	return 1
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok || file == nil {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
