package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/lab"
	"tare/tool"
)

// toolTime bounds every run of a tool, should it hang.
const toolTime = 60 * time.Second

// anyCPU leaves a tool where the scheduler puts it.
const anyCPU = -1

// startPinned starts cmd in a host of the lab, on one CPU. A child inherits both from the thread that starts it.
func startPinned(l *lab.Lab, host string, cmd *exec.Cmd, cpu int) error {
	return l.Do(host, func() error {
		if cpu != anyCPU {
			var before, only unix.CPUSet
			if err := unix.SchedGetaffinity(0, &before); err != nil {
				return fmt.Errorf("reading the CPU affinity: %w", err)
			}
			only.Set(cpu)
			if err := unix.SchedSetaffinity(0, &only); err != nil {
				return fmt.Errorf("pinning to CPU %d: %w", cpu, err)
			}
			defer func() { _ = unix.SchedSetaffinity(0, &before) }()
		}
		return cmd.Start()
	})
}

// rttsOf runs a tool in a host of the lab and returns the RTTs that it prints, in us, read from a pipe as they come:
// that is how tare reads them, too, so that the two are alike in this.
func rttsOf(ctx context.Context, l *lab.Lab, host string, argv []string, cpu int) ([]float64, error) {
	var out bytes.Buffer
	if err := run(ctx, l, host, argv, cpu, &out); err != nil {
		return nil, err
	}
	return parseRTTs(argv, out.String())
}

// rttsOfQuiet is rttsOf with the output kept in memory until the tool has ended: nobody wakes up to read meanwhile.
func rttsOfQuiet(ctx context.Context, l *lab.Lab, host string, argv []string, cpu int) ([]float64, error) {
	file, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := run(ctx, l, host, argv, cpu, file); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil, err
	}
	return parseRTTs(argv, string(text))
}

// run runs a tool to its end. That it missed a reply is no error.
func run(ctx context.Context, l *lab.Lab, host string, argv []string, cpu int, out any) error {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	switch out := out.(type) {
	case *bytes.Buffer:
		cmd.Stdout = out
	case *os.File:
		cmd.Stdout = out // given as it is: the tool writes to it directly
	}
	err := startPinned(l, host, cmd, cpu)
	if err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // ping and fping: some reply was missing
	}
	if err != nil {
		return fmt.Errorf("running %s in %s: %w %s", strings.Join(argv, " "), host, err, strings.TrimSpace(errs.String()))
	}
	return nil
}

// parseRTTs understands a tool's whole output.
func parseRTTs(argv []string, text string) ([]float64, error) {
	parser, known := tool.For(argv)
	if !known {
		return nil, fmt.Errorf("the output of %s is not understood", argv[0])
	}
	var rtts []float64
	for line := range strings.Lines(text) {
		parsed := parser.Parse(strings.TrimRight(line, "\r\n"))
		if parsed.Recap {
			continue
		}
		for _, reply := range parsed.Replies {
			if !reply.Duplicate {
				rtts = append(rtts, reply.RTTUs)
			}
		}
	}
	if len(rtts) == 0 {
		return nil, fmt.Errorf("%s printed no RTT", strings.Join(argv, " "))
	}
	return rtts, nil
}
