package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// bpftraceScript is how a person would ask for the times between inner-dev's events: a distribution, made in the kernel.
const bpftraceScript = `BEGIN { printf("ready\n"); }
tracepoint:net:net_dev_start_xmit { @at[args->skbaddr] = nsecs; }
tracepoint:net:netif_receive_skb /@at[args->skbaddr]/ { @ns = hist(nsecs - @at[args->skbaddr]); delete(@at[args->skbaddr]); }`

// bpftraceTime bounds one run of it.
const bpftraceTime = 60 * time.Second

// bpftrace is a running one, whose output is read and thrown away.
type bpftrace struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	read   chan int64 // bytes
}

// startBpftrace returns when it traces. It wants tracefs at its place: it gets one in a mount namespace of its own.
func startBpftrace(ctx context.Context) (*bpftrace, error) {
	ctx, cancel := context.WithTimeout(ctx, bpftraceTime)
	b := &bpftrace{cancel: cancel, read: make(chan int64, 1)}
	b.cmd = exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`mount -t tracefs tracefs /sys/kernel/tracing && exec bpftrace -e "$1"`, "sh", bpftraceScript)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is ours to pass on
	b.cmd.Cancel = func() error { return b.cmd.Process.Signal(syscall.SIGINT) }
	b.cmd.WaitDelay = 5 * time.Second
	var errs strings.Builder
	b.cmd.Stderr = &errs
	out, err := b.cmd.StdoutPipe()
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting bpftrace: %w", err)
	}
	lines := bufio.NewReaderSize(out, 256<<10)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			cancel()
			_ = b.cmd.Wait()
			return nil, fmt.Errorf("starting bpftrace: it ends with %s", strings.Join(strings.Fields(errs.String()), " "))
		}
		if line == "ready\n" {
			break
		}
	}
	go func() {
		n, _ := io.Copy(io.Discard, lines)
		b.read <- n
	}()
	return b, nil
}

// stop ends it. That it traced nothing is an error: it would have measured nothing.
func (b *bpftrace) stop() error {
	b.cancel()
	n := <-b.read
	_ = b.cmd.Wait() // by our interrupt
	if n == 0 {
		return errors.New("bpftrace traced nothing")
	}
	return nil
}

// canBpftrace says why bpftrace does not run here, if so.
func canBpftrace(ctx context.Context) error {
	if _, err := exec.LookPath("bpftrace"); err != nil {
		return errors.New("bpftrace is not installed (package bpftrace)")
	}
	b, err := startBpftrace(ctx)
	if err != nil {
		return err
	}
	b.cancel()
	<-b.read
	_ = b.cmd.Wait()
	return nil
}
