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

	"tare/tests/kernels/line"
)

// detailBytes of a failed check's output are told: a serial port that is emulated takes its time.
const detailBytes = 24000

// report writes lines to the host.
type report struct{ out *json.Encoder }

// check runs one check and tells how it ended.
func (r report) check(name string, run func() error) error {
	started := time.Now()
	err := run()
	l := line.Line{Check: name, OK: err == nil, Took: time.Since(started).Seconds()}
	if err != nil {
		l.Detail = err.Error()
		if len(l.Detail) > detailBytes {
			l.Detail = l.Detail[:detailBytes/2] + "\n...\n" + l.Detail[len(l.Detail)-detailBytes/2:]
		}
	}
	if err := r.out.Encode(l); err != nil {
		fmt.Println("guest: reporting:", err)
		os.Exit(1)
	}
	return err
}

// output runs a command, with all that it starts, to its end or for so long, and returns what it wrote to stdout. An
// error has what it wrote at all.
func output(limit time.Duration, argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %s", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err,
			strings.TrimSpace(stdout.String()+"\n"+stderr.String()))
	}
	return stdout.Bytes(), nil
}

// ended says which exit code a command had, if it is that what its error tells.
func ended(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit)
}
