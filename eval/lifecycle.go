package eval

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"tare/lab"
	"tare/mace"
	"tare/stats"
)

// Lifecycle says how fast tare comes and goes, and how large it gets.
type Lifecycle struct {
	Paths []PathLifecycle `json:"paths"`
	// MemoryMiB is the largest resident size of `tare run` around a ping of 300 replies.
	MemoryMiB stats.Interval `json:"memory_mib"`
	// StartMS is how long `tare --help` takes, from fork to exit.
	StartMS      stats.Interval `json:"start_ms"`
	MemoryMiBRaw []float64      `json:"runs_memory_mib"`
	StartMSRaw   []float64      `json:"runs_start_ms"`
}

// PathLifecycle is one path's: attach is Open and Activate, detach is Close.
type PathLifecycle struct {
	Path        string         `json:"path"`
	AttachMS    stats.Interval `json:"attach_ms"`
	DetachMS    stats.Interval `json:"detach_ms"`
	AttachMSRaw []float64      `json:"runs_attach_ms"`
	DetachMSRaw []float64      `json:"runs_detach_ms"`
}

const (
	attachMS  = 300
	detachMS  = 200
	memoryMiB = 64
	startMS   = 50
)

// The two that `tare run --as` has. wire uses all there is: it takes longest to verify.
var lifecyclePaths = []string{"bare-metal", "wire"}

func runLifecycle(ctx context.Context, options Options) (*Lifecycle, error) {
	bed, err := newBed(ctx, PartLifecycle, 1)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	result := &Lifecycle{Paths: make([]PathLifecycle, len(lifecyclePaths))}
	pace := options.pace(6, 20, 8*time.Second, 30*time.Second)
	for pace.next() {
		options.progress("lifecycle: round %d of %d", pace.done, pace.rounds)
		for i, name := range lifecyclePaths {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err := bed.attachOnce(name, &result.Paths[i]); err != nil {
				return nil, err
			}
		}
		started, err := startOnce(ctx, options.Program)
		if err != nil {
			return nil, err
		}
		memory, err := bed.memoryOnce(ctx, options.Program)
		if err != nil {
			return nil, err
		}
		result.StartMSRaw, result.MemoryMiBRaw = append(result.StartMSRaw, started), append(result.MemoryMiBRaw, memory)
	}
	median := func(values []float64) stats.Interval { return rounded(stats.BootstrapMedian(values, options.Seed)) }
	for i := range result.Paths {
		p := &result.Paths[i]
		p.AttachMS, p.DetachMS = median(p.AttachMSRaw), median(p.DetachMSRaw)
	}
	result.StartMS, result.MemoryMiB = median(result.StartMSRaw), median(result.MemoryMiBRaw)
	return result, nil
}

func (b *bed) attachOnce(name string, into *PathLifecycle) error {
	path, err := mace.ParsePath(name)
	if err != nil {
		return err
	}
	cookie, err := b.lab.NetNSCookie(lab.Container(1))
	if err != nil {
		return err
	}
	began := time.Now()
	engine, err := mace.Open(mace.Options{Path: path, NICs: []mace.Device{b.nic}})
	if err != nil {
		return err
	}
	_, err = engine.Activate(cookie)
	attached := time.Now()
	if closeErr := engine.Close(); err == nil {
		err = closeErr
	}
	into.Path = name
	into.AttachMSRaw = append(into.AttachMSRaw, milliseconds(attached.Sub(began)))
	into.DetachMSRaw = append(into.DetachMSRaw, milliseconds(time.Since(attached)))
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

// startOnce is the time that the program takes to say what it is.
func startOnce(ctx context.Context, program string) (ms float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	began := time.Now()
	if err := exec.CommandContext(ctx, program, "--help").Run(); err != nil {
		return 0, fmt.Errorf("running tare --help: %w", err)
	}
	return milliseconds(time.Since(began)), nil
}

// memoryOnce runs `tare run` and looks at VmHWM until it ends. (ru_maxrss would say what this process has: a child begins
// with its parent's memory.)
func (b *bed) memoryOnce(ctx context.Context, program string) (mib float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	argv := append([]string{"run", "--netns", b.c1.NetNSPath, "--"}, b.pingArgv(effortAtRest)...)
	cmd := exec.CommandContext(ctx, program, argv...)
	// Let it stop its tool, should we be interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdout = io.Discard // not a file: it reads on, as a terminal does
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("running tare run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil {
				return 0, fmt.Errorf("running tare run: %w", err)
			}
			return mib, nil
		case <-tick.C:
			mib = max(mib, residentPeakMiB(cmd.Process.Pid))
		}
	}
}

// residentPeakMiB is VmHWM, which only grows; 0 once the process has ended.
func residentPeakMiB(pid int) float64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kib / 1024
		}
	}
	return 0
}

func (l *Lifecycle) targets() []Target {
	var targets []Target
	for _, p := range l.Paths {
		targets = append(targets,
			target("attaching "+p.Path, p.AttachMS.Estimate, attachMS, "ms"),
			target("detaching "+p.Path, p.DetachMS.Estimate, detachMS, "ms"))
	}
	return append(targets,
		target("resident memory of tare run", l.MemoryMiB.Estimate, memoryMiB, "MiB"),
		target("start of tare --help", l.StartMS.Estimate, startMS, "ms"))
}
