package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"tare/tests/kernels/console"
)

// report tells the host of each check.
type report struct {
	out *json.Encoder
	err error // the first one in telling
}

func newReport() (*report, error) {
	port, err := os.OpenFile(console.ResultsPort, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	return &report{out: json.NewEncoder(port)}, nil
}

// check runs a check, and tells how it ended.
func (r *report) check(name string, run func() error) {
	started := time.Now()
	err := run()
	line := console.Line{Check: name, TookS: time.Since(started).Seconds()}
	if err != nil {
		line.Failed = shortened(err.Error())
	}
	r.tell(line)
}

func (r *report) tell(line console.Line) {
	if err := r.out.Encode(line); err != nil && r.err == nil {
		r.err = fmt.Errorf("telling of a check: %w", err)
	}
}

// shortened leaves out the middle of a long text. Each byte on an emulated port takes its time.
func shortened(text string) string {
	const limit = 6000
	if len(text) <= limit {
		return text
	}
	return text[:limit/3] + "\n[...]\n" + text[len(text)-limit*2/3:]
}

// commandLimit ends a command that hangs. Here everything takes some thirty times as long as on a machine.
const commandLimit = 3 * time.Minute

var errHangs = errors.New("it does not end")

// output runs a command, and all that it starts, to the end. It returns what it wrote to stdout, in failure too; an
// error has all that it wrote.
func output(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), commandLimit, errHangs)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, strings.TrimSpace(stdout.String()+stderr.String()))
	}
	return stdout.String(), err
}
