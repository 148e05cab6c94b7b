package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// residentArgv0 is the name under which a program that uses this package starts itself as a resident: a process that
// lives as long as its lab, and not as long as the program that made the lab. See traffic.go for those that do.
const residentArgv0 = "tare-lab-resident"

func init() {
	if len(os.Args) == 3 && os.Args[0] == residentArgv0 {
		if err := resident(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// residentGo is the word that a resident waits for. Without it, it ends: whoever started it has died before the state
// file named it, so that nobody else would ever end it.
const residentGo = "go\n"

// resident is the whole of a resident process.
func resident(name, text string) error {
	d, err := ParseDelay(text)
	if err != nil {
		return err
	}
	work, err := prepare(name, d)
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	if word, _ := bufio.NewReader(os.Stdin).ReadString('\n'); word != residentGo {
		return errors.New("the process that makes the lab has ended")
	}
	// Nothing is ever said again, and nobody would hear it.
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	go endWithLab(name)
	return work()
}

// prepare does all that can fail, and returns the rest.
func prepare(name string, d Delay) (work func() error, err error) {
	switch d.By {
	case DelayByForwarder:
		return prepareForwarder(name, d)
	case DelayByBusyCPU:
		return prepareBusy(d)
	}
	return nil, fmt.Errorf("%s needs no process", d)
}

// endWithLab ends this process when its lab does not know it any more: when somebody has taken the lab away by hand.
func endWithLab(name string) {
	for range time.Tick(time.Second) {
		st, err := readState(name)
		switch {
		case errors.Is(err, ErrNotFound):
			os.Exit(0)
		case err == nil && !slices.ContainsFunc(st.Processes, func(p Process) bool { return p.PID == os.Getpid() }):
			os.Exit(0)
		}
	}
}

// resident starts the process of a delay and writes it into the lab's state before it does anything.
func (b *builder) resident(d Delay) (err error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{residentArgv0, b.lab.Name(), d.String()}
	// A session of its own: a signal at the terminal is for the program that made the lab.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", d, err)
	}
	defer stdin.Close()
	ready, _ := bufio.NewReader(stdout).ReadString('\n')
	if ready != "ready\n" {
		stdin.Close()
		err := cmd.Wait()
		return fmt.Errorf("starting %s: %s (%w)", d, lastLine(stderr.String()), err)
	}
	go func() { _ = cmd.Wait() }() // or it would stay a zombie while this program lives
	// It is in no host of the lab, but it is the lab's host that it is a part of.
	process, err := newProcess(cmd.Process.Pid, Host, d.String())
	if err != nil {
		return fmt.Errorf("starting %s: %w", d, err)
	}
	b.state.Processes = append(b.state.Processes, process)
	if err := writeState(b.state); err != nil {
		return err
	}
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if _, err := io.WriteString(stdin, residentGo); err != nil {
		return fmt.Errorf("starting %s: %w", d, err)
	}
	return nil
}
