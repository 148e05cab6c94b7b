// Command kernels boots Debian's kernels in an emulator and runs tare in them: the very binary that the host has.
// An eBPF program that one kernel's verifier accepts another's may refuse, and tracepoints come and go.
//
// The guest has no disk and no network: kernel, modules, tare and the tools that it corrects come in one archive (see
// initramfs.go). Its first process is the guest command, which runs the checks and tells of each (package console).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"tare/tests/kernels/console"
)

// releases are Debian's, and the kernels that tare is tested with: of both releases that are supported, and the newest
// that there is for one. A series that is "" is whichever the archive has.
var releases = []release{{"bookworm", "6.1"}, {"trixie", "6.12"}, {"trixie-backports", ""}}

// engineTests are those of package mace whose outcome depends on the kernel most, cut down to what an emulator can do in
// a minute: in there each program is loaded and each process started thirty times slower. Any others run with -tests.
var engineTests = []string{
	"TestEveryPathFollowsEveryProtocol", // all paths; ICMP, UDP and TCP over IPv4 and IPv6
	"TestNoFalseMatches/max-dev",        // beside traffic that makes addresses of packets mean nothing
	"TestKernelStamps/wire/udp",         // kernels differ in where a socket's flags are
	"TestNetworks/macvlan/1500",
}

type options struct {
	cache  string
	goTool string
	tare   string
	only   string
	tests  string
	wait   time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.cache, "cache", defaultCache(), "where downloaded kernels are kept")
	flag.StringVar(&o.goTool, "go", "go", "the go command")
	flag.StringVar(&o.tare, "tare", "bin/tare", "the program under test")
	flag.StringVar(&o.only, "kernel", "", "only these, such as 6.1,6.12 or trixie-backports, the newest")
	flag.StringVar(&o.tests, "tests", strings.Join(engineTests, " "), "which of the engine's tests to run: patterns, each a check")
	flag.DurationVar(&o.wait, "wait", 6*time.Minute, "how long one kernel may take, which is three times what it does")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernels:", err)
		os.Exit(1)
	}
}

func defaultCache() string {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		base = "/var/cache"
	}
	return filepath.Join(base, "tare", "kernels")
}

func run(ctx context.Context, o options) error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("the emulated machine takes the host's programs, so the host must be x86-64, and is %s", runtime.GOARCH)
	}
	dir, err := os.MkdirTemp("", "tare-kernels-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	image := initramfs{
		tare: o.tare, init: filepath.Join(dir, "guest"), engineTests: filepath.Join(dir, "mace.test"),
		testNames: o.tests,
	}
	if err := image.build(ctx, o.goTool); err != nil {
		return err
	}
	var chosen []release
	for _, r := range releases {
		only := strings.Split(o.only, ",")
		if o.only == "" || slices.Contains(only, r.series) || slices.Contains(only, r.suite) {
			chosen = append(chosen, r)
		}
	}
	if chosen == nil {
		return fmt.Errorf("there is no kernel %q to test with", o.only)
	}
	// The emulator uses one CPU for all of the guest's, so the machines share those of the host.
	var (
		wait  sync.WaitGroup
		seats = make(chan struct{}, runtime.NumCPU())
		fails = make([]int, len(chosen))
		errs  = make([]error, len(chosen))
	)
	for i, r := range chosen {
		wait.Go(func() {
			seats <- struct{}{}
			defer func() { <-seats }()
			kernel, err := r.kernel(ctx, o.cache)
			if err == nil {
				fails[i], err = runIn(ctx, filepath.Join(dir, r.suite), kernel, image, o.wait)
			}
			errs[i] = err
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	failed := 0
	for _, n := range fails {
		failed += n
	}
	if failed > 0 {
		return fmt.Errorf("failed checks: %d", failed)
	}
	return nil
}

// printing keeps the lines of machines that run at the same time apart.
var printing sync.Mutex

// runIn runs all checks in one kernel, prints a line for each, and returns how many have failed.
func runIn(ctx context.Context, dir string, k kernel, image initramfs, wait time.Duration) (failed int, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	m := machine{kernel: k.image, initramfs: filepath.Join(dir, "initramfs"), console: filepath.Join(dir, "console")}
	if image.modules, err = modules(k.modules, wantedModules); err != nil {
		return 0, err
	}
	if err := image.write(m.initramfs); err != nil {
		return 0, fmt.Errorf("making the guest's file system: %w", err)
	}
	print := func(line console.Line) {
		printing.Lock()
		defer printing.Unlock()
		verdict := "ok"
		if line.Failed != "" {
			verdict = "FAIL"
			failed++
		}
		fmt.Printf("%s  %-4s %5.1f s  %s\n", k.release, verdict, line.TookS, line.Check)
		if line.Failed != "" {
			fmt.Printf("\t%s\n", strings.ReplaceAll(line.Failed, "\n", "\n\t"))
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("not done after %s", wait))
	defer cancel()
	started := time.Now()
	err = m.run(limited, print)
	if ctx.Err() != nil {
		return failed, errors.New("interrupted")
	}
	if err == nil {
		err = m.complaints()
	}
	all := console.Line{Check: "the machine, from boot to power off", TookS: time.Since(started).Seconds()}
	if err != nil {
		all.Failed = err.Error()
	}
	print(all)
	if failed > 0 {
		fmt.Printf("\tthe last that the kernel printed:\n\t%s\n", strings.ReplaceAll(m.tail(), "\n", "\n\t"))
	}
	return failed, nil
}
