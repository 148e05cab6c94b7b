package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is tare, running.
type process struct {
	*exec.Cmd
	stdout, stderr text
	read           chan struct{} // if not nil: closed when all of stdout has been read
}

// text is what a process has written up to now.
type text struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *text) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *text) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newProcess(args ...string) *process {
	p := &process{Cmd: exec.Command("tare", args...)}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.WaitDelay = 20 * time.Second // a tool that outlives tare must not keep the test from saying so
	return p
}

// start starts the process, which ends with the test.
func (p *process) start(t testing.TB) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
}

// startUntil starts tare and returns when it has printed what.
func startUntil(t testing.TB, what string, args ...string) *process {
	t.Helper()
	p := newProcess(args...)
	p.Stdout = nil
	pipe, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.start(t)
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadString('\n')
		_, _ = p.stdout.Write([]byte(line))
		if strings.Contains(line, what) {
			break
		}
		if err != nil {
			t.Fatalf("tare %s ended without %q:\n%s%s", strings.Join(args, " "), what, &p.stdout, &p.stderr)
		}
	}
	p.read = make(chan struct{})
	go func() {
		defer close(p.read)
		_, _ = io.Copy(&p.stdout, lines)
	}()
	return p
}

// wait waits for the end and returns the exit code, as a shell has it.
func (p *process) wait(t testing.TB) int {
	t.Helper()
	if p.read != nil {
		<-p.read
	}
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("tare %s: %s", strings.Join(p.Args[1:], " "), err)
	}
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ProcessState.ExitCode()
}

// signal sends a signal, and wants an exit code.
func (p *process) signal(t testing.TB, signal syscall.Signal, want int) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != want {
		t.Errorf("tare %s: exit code %d after %s, want %d\n%s", strings.Join(p.Args[1:], " "), code, signal, want, &p.stderr)
	}
}

// tare runs tare and wants an exit code; and again where packets went unseen.
func tare(t testing.TB, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	for range attempts {
		p := newProcess(args...)
		p.start(t)
		if code := p.wait(t); code != want {
			t.Errorf("tare %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, &p.stdout, &p.stderr)
		}
		stdout, stderr = p.stdout.String(), p.stderr.String()
		if !unseen(stdout + stderr) {
			break
		}
		t.Logf("tare %s: packets went unseen", strings.Join(args, " "))
	}
	return stdout, stderr
}

// waitUntil waits for something that a busy machine may take long to do.
func waitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for range 3000 {
		if condition() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited 30 s until %s", what)
}
