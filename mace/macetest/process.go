package macetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"tare/lab"
)

// Process is a Client that runs.
type Process struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	stderr bytes.Buffer
}

// Start starts the client in the lab's host, and returns when its socket is open. inherited become its descriptors
// from 3 on. It ends with ctx at the latest.
func Start(ctx context.Context, l *lab.Lab, host string, c Client, inherited ...*os.File) (*Process, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: l.Command(ctx, host, self)}
	// Go's preemption signals would interrupt system calls, which then begin anew.
	p.cmd.Env = append(os.Environ(), environment+"="+string(text), "GODEBUG=asyncpreemptoff=1")
	p.cmd.ExtraFiles = inherited
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewReader(output)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a client in %s: %w", host, err)
	}
	if line, err := p.output.ReadString('\n'); line != "ready\n" {
		return nil, p.end(fmt.Errorf("a client in %s says %q instead of being ready: %w", host, line, err))
	}
	return p, nil
}

// PID is the process's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Finish lets it begin, and returns what it saw when it has done all.
func (p *Process) Finish() (Result, error) {
	var result Result
	_, err := io.WriteString(p.input, "begin\n")
	if err == nil {
		err = json.NewDecoder(p.output).Decode(&result)
	}
	return result, p.end(err)
}

// Stop ends it as it is.
func (p *Process) Stop() { _ = p.end(nil) }

func (p *Process) end(err error) error {
	p.input.Close()
	if waited := p.cmd.Wait(); err != nil {
		return errors.Join(err, waited, errors.New(p.stderr.String()))
	}
	return nil
}
