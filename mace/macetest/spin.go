package macetest

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const spinnerEnvironment = "TARE_MACETEST_SPINNER"

// spinnerLimit is how long a spinner lives at most.
const spinnerLimit = 2 * time.Minute

// Spinner is a process that does nothing but keep every CPU busy at times. Where packets are handled by whichever process
// is current, as with RPS, some are handled on top of it.
type Spinner struct{ process *os.Process }

// StartSpinner starts one that pauses for so long after each millisecond. It ends with this process at the latest, and
// needs Main, as clients do.
func StartSpinner(idle time.Duration) (*Spinner, error) {
	process, err := os.StartProcess("/proc/self/exe", []string{"spinner"}, &os.ProcAttr{
		Env: append(os.Environ(), spinnerEnvironment+"="+idle.String()),
	})
	if err != nil {
		return nil, fmt.Errorf("starting a spinner: %w", err)
	}
	return &Spinner{process}, nil
}

// PID is the process's.
func (s *Spinner) PID() int { return s.process.Pid }

// Stop ends it.
func (s *Spinner) Stop() {
	_ = s.process.Kill()
	_, _ = s.process.Wait()
}

// Spin keeps every CPU busy, as a Spinner does, for as long as more says so.
func Spin(idle time.Duration, more func() bool) {
	var wait sync.WaitGroup
	for range runtime.NumCPU() {
		wait.Go(func() {
			for more() {
				for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
				}
				time.Sleep(idle)
			}
		})
	}
	wait.Wait()
}

func spinner(text string) {
	idle, err := time.ParseDuration(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Before other processes, or on a busy machine it is hardly ever current. Without the right to it, so be it.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	parent, end := os.Getppid(), time.Now().Add(spinnerLimit)
	Spin(idle, func() bool { return os.Getppid() == parent && time.Now().Before(end) })
	os.Exit(0)
}
