package docknet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tare/bench/arm"
)

// link is a network with a server for each placement.
type link struct {
	arm     string
	cpus    [2]int
	bench   string // path of docknet-bench
	client  func(ctx context.Context, argv ...string) *exec.Cmd
	server  func(ctx context.Context, p Placement, argv ...string) *exec.Cmd
	address func(p Placement) (host string, port int)
	daemons []int // processes that move packets, and belong where client and server are
	close   func() error

	placed  Placement
	servers []*server
}

// sample is what docknet-bench prints. What was not measured is nil.
type sample struct {
	OnewayUs struct {
		P50 *float64 `json:"p50"`
		P99 *float64 `json:"p99"`
	} `json:"oneway_us"`
	Goodput  *float64 `json:"goodput_mbytes_s"`
	Requests *float64 `json:"requests_s"`
}

func parseSample(line []byte) (s sample, err error) {
	if err := json.Unmarshal(line, &s); err != nil {
		return s, fmt.Errorf("docknet-bench's result is not understood: %.80q", line)
	}
	return s, nil
}

// run measures a cell.
func (l *link) run(ctx context.Context, c cell, measure time.Duration) (sample, error) {
	if err := l.place(c.placement); err != nil {
		return sample{}, err
	}
	host, port := l.address(c.placement)
	argv := []string{l.bench, "client", "-c", strconv.Itoa(c.placement.client(l.cpus)), "-t", l.transport(), "-p", strconv.Itoa(port),
		"-s", strconv.Itoa(c.size), "-d", strconv.FormatFloat(measure.Seconds(), 'f', -1, 64)}
	switch {
	case c.http:
		argv = append(argv, "-m", "h", "-n", strconv.Itoa(c.open))
	case c.open > 1:
		argv = append(argv, "-m", "p", "-i", strconv.Itoa(c.open-1))
	default:
		argv = append(argv, "-m", "ps")
	}
	// docknet-bench gives up by itself after 5 s without progress.
	ctx, cancel := context.WithTimeoutCause(ctx, 2*measure+30*time.Second, errors.New("no result in time"))
	defer cancel()
	cmd := l.client(ctx, append(argv, host)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := arm.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if cause := context.Cause(ctx); cause != nil {
		return sample{}, cause
	}
	if err != nil {
		return sample{}, fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(stderr.String()), " "))
	}
	return parseSample(stdout.Bytes())
}

func (l *link) transport() string {
	if l.arm == DockNet {
		return "docknet"
	}
	return "kernel"
}

// place moves the daemons.
func (l *link) place(p Placement) error {
	if l.placed == p {
		return nil
	}
	for _, pid := range l.daemons {
		if err := pin(pid, p.daemons(l.cpus)); err != nil {
			return err
		}
	}
	l.placed = p
	return nil
}

func (l *link) startServers(ctx context.Context) error {
	for _, p := range Placements {
		_, port := l.address(p)
		s, err := startServer(ctx, l.server(ctx, p, l.bench, "server", "-c", strconv.Itoa(p.server(l.cpus)),
			"-t", l.transport(), "-p", strconv.Itoa(port), "-s", strconv.Itoa(Sizes[0])))
		if err != nil {
			return fmt.Errorf("starting docknet-bench server over %s: %w", l.arm, err)
		}
		l.servers = append(l.servers, s)
	}
	return nil
}

// down ends the servers and removes the network.
func (l *link) down() error {
	for _, s := range l.servers {
		s.stop()
	}
	return l.close()
}

// server is a process that listens.
type server struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

const (
	serverPatience = 20 * time.Second
	stopPatience   = 3 * time.Second
)

// startServer returns when the server has said that it listens.
func startServer(ctx context.Context, cmd *exec.Cmd) (*server, error) {
	said := &firstLine{line: make(chan string, 1)}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = said, &stderr
	if err := arm.Start(cmd); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(s.ended)
	}()
	select {
	case <-said.line:
		return s, nil
	case <-s.ended:
		return nil, fmt.Errorf("it ended: %s", strings.Join(strings.Fields(stderr.String()), " "))
	case <-ctx.Done():
		s.stop()
		return nil, context.Cause(ctx)
	case <-time.After(serverPatience):
		s.stop()
		return nil, fmt.Errorf("it does not listen after %s", serverPatience)
	}
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopPatience):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// firstLine is a writer that announces its first line.
type firstLine struct {
	line chan string
	once sync.Once
}

var _ io.Writer = (*firstLine)(nil)

func (f *firstLine) Write(text []byte) (int, error) {
	f.once.Do(func() { f.line <- string(text) })
	return len(text), nil
}
