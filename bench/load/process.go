package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tare/bench/arm"
)

// serverPatience is from a server's start to its listening, on a busy machine.
var serverPatience = 10 * time.Second

const (
	clientPatience = 10 * time.Second     // what a client may take beyond its round
	killPatience   = 2 * time.Second      // from asking a process to end to insisting
	pollInterval   = 5 * time.Millisecond // of whether a server listens yet
	maxText        = 64 << 10             // of what a process says, the end of it
	maxOutput      = 512 << 20            // of a client's output: a log of some million messages
)

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if len(t.text) > 2*maxText {
		t.text = append([]byte(nil), t.text[len(t.text)-maxText:]...)
	}
	return len(p), nil
}

// line is what was said, in one line that fits an error message.
func (t *tail) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneLine(t.text)
}

func oneLine(text []byte) string {
	fields := strings.Fields(stripColours(string(text)))
	joined := strings.Join(fields, " ")
	const most = 400
	if len(joined) > most {
		joined = "..." + joined[len(joined)-most:]
	}
	if joined == "" {
		return "it said nothing"
	}
	return joined
}

// server is a server that listens.
type server struct {
	what  string
	cmd   *exec.Cmd
	pid   int // as this host sees it
	said  *tail
	ended chan struct{}
	err   error // why it ended; read after ended is closed
}

// startServer starts a server and returns when it listens on port, for "tcp" or "udp".
func startServer(ctx context.Context, place arm.Place, network string, port uint16, name string, args ...string) (*server, error) {
	s := &server{what: fmt.Sprintf("%s server at %s", filepath.Base(name), place), said: &tail{}, ended: make(chan struct{})}
	// Not the caller's context: the server outlives the call, and is ended by close.
	s.cmd = place.Command(context.Background(), name, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	s.cmd.WaitDelay = killPatience
	if err := arm.Start(s.cmd); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", s.what, err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	if err := s.waitListening(ctx, place, network, port); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *server) waitListening(ctx context.Context, place arm.Place, network string, port uint16) error {
	for {
		if pid, err := place.PID(ctx, s.cmd); err == nil {
			s.pid = pid
			if listens(pid, network, port) {
				return nil
			}
		}
		select {
		case <-s.ended:
			what := s.said.line()
			if holder := holderOf(place.NetNS(), network, port); holder != "" {
				what = fmt.Sprintf("%s port %d is taken by %s; it said: %s", network, port, holder, what)
			}
			return fmt.Errorf("the %s ended before it listened (%v): %s", s.what, s.err, what)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the %s does not listen on %s port %d after %s: %s", s.what, network, port, serverPatience, s.said.line())
			}
			return fmt.Errorf("starting the %s: %w", s.what, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// alive returns an error if the server has ended.
func (s *server) alive() error {
	select {
	case <-s.ended:
		return fmt.Errorf("the %s has ended (%v): %s", s.what, s.err, s.said.line())
	default:
		return nil
	}
}

// close ends the server. What is known of the process goes by its host PID: a container's is no child.
func (s *server) close() {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if s.pid > 0 && s.alive() == nil {
			_ = syscall.Kill(s.pid, signal)
		}
		if signal == syscall.SIGKILL {
			_ = s.cmd.Process.Kill()
		}
		select {
		case <-s.ended:
			return
		case <-time.After(killPatience):
		}
	}
	<-s.ended
}

// finished is a client that has ended well.
type finished struct {
	output []byte
	said   string
	usage  *syscall.Rusage // nil where the tool was no child: then it would be that of a container runtime's client
}

// runClient runs a client to its end, for which it has d and some patience. It is ended if the link is lost or the
// server dies meanwhile. If stop is not 0, the client is asked to end by SIGINT then.
func runClient(ctx context.Context, link *arm.Link, s *server, d, stop time.Duration, name string, args ...string) (*finished, error) {
	what := fmt.Sprintf("%s client at %s", filepath.Base(name), link.Client)
	if err := lost(link); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", what, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := link.Client.Command(ctx, name, args...)
	output, complaints := &limited{}, &tail{}
	cmd.Stdout, cmd.Stderr = output, complaints
	cmd.Cancel = func() error { return signalTool(link.Client, cmd, syscall.SIGKILL) }
	cmd.WaitDelay = killPatience
	if err := arm.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", what, err)
	}
	ended := make(chan struct{})
	go watch(ended, link, s, d, cancel)
	if stop > 0 {
		timer := time.AfterFunc(stop, func() { _ = signalTool(link.Client, cmd, syscall.SIGINT) })
		defer timer.Stop()
	}
	err := cmd.Wait()
	close(ended)
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("running the %s: %w", what, cause)
	}
	if err != nil {
		if gone := wentAway(link, s); gone != nil {
			return nil, fmt.Errorf("running the %s: %w", what, gone)
		}
		return nil, fmt.Errorf("the %s failed (%v): %s", what, err, oneLine(append(complaints.text, output.text...)))
	}
	if output.cut {
		return nil, fmt.Errorf("the %s printed more than %d bytes", what, maxOutput)
	}
	done := &finished{output: output.text, said: complaints.line()}
	if pid, err := link.Client.PID(ctx, cmd); err == nil && pid == cmd.Process.Pid {
		done.usage, _ = cmd.ProcessState.SysUsage().(*syscall.Rusage)
	}
	return done, nil
}

// watch ends a client, by cancel, that has lost what it talks to or takes too long.
func watch(ended <-chan struct{}, link *arm.Link, s *server, d time.Duration, cancel context.CancelCauseFunc) {
	var serverEnded <-chan struct{}
	if s != nil {
		serverEnded = s.ended
	}
	select {
	case <-ended:
	case <-link.Lost:
		cancel(fmt.Errorf("%s has gone away in mid-round", link.LostWhat))
	case <-serverEnded:
		cancel(wentAway(link, s))
	case <-time.After(d + clientPatience):
		cancel(fmt.Errorf("it does not end %s after its round of %s", clientPatience, d))
	}
}

// wentAway says what has, after a client failed or its server ended; nil if all is there. A container takes its server
// with it, and says so a moment later.
func wentAway(link *arm.Link, s *server) error {
	if link.Lost != nil {
		select {
		case <-link.Lost:
			return fmt.Errorf("%s has gone away in mid-round", link.LostWhat)
		case <-time.After(killPatience):
		}
	}
	if s == nil {
		return nil
	}
	return s.alive()
}

// signalTool signals the tool itself, wherever it runs.
func signalTool(place arm.Place, cmd *exec.Cmd, signal syscall.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	pid, err := place.PID(ctx, cmd)
	if err != nil {
		return os.ErrProcessDone
	}
	return syscall.Kill(pid, signal)
}

// limited is a buffer with an end.
type limited struct {
	text []byte
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > maxOutput {
		l.cut = true
		return 0, io.ErrShortWrite
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

// lost returns an error if the link is.
func lost(link *arm.Link) error {
	select {
	case <-link.Lost:
		return fmt.Errorf("%s has gone away", link.LostWhat)
	default:
	}
	return nil
}

// stripColours removes escape sequences, with which sockperf marks its results.
func stripColours(text string) string {
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	var plain bytes.Buffer
	for {
		before, after, found := strings.Cut(text, "\x1b[")
		plain.WriteString(before)
		if !found {
			return plain.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return plain.String()
		}
		text = after[end+1:]
	}
}
