package docknet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"tare/bench/arm"
	"tare/docknet/dockctl"
)

// The arms. Bridge is a host and a container on its bridge, which is one veth less than between two containers.
const (
	Loopback = "loopback"
	Bridge   = "bridge"
	OVS      = "ovs"
	DockNet  = "docknet"
)

// ArmNames are all arms, in the order of the table.
var ArmNames = []string{Loopback, Bridge, OVS, DockNet}

// kernelArms are what bench calls them.
var kernelArms = map[string]string{Loopback: "loopback", Bridge: "bridge", OVS: "ovs-userspace"}

const (
	netName   = "tare-bench"
	firstPort = 7777
)

// setUp makes all links and starts their servers. An arm that cannot be made here is missing, and said to be; but there is
// nothing to compare without bridge and docknet.
func (r *runner) setUp(ctx context.Context) error {
	r.missing = map[string]string{}
	for _, name := range ArmNames {
		if len(r.Arms) > 0 && !slices.Contains(r.Arms, name) {
			continue
		}
		r.progress("setting up "+name, 0)
		l, err := r.upArm(ctx, name)
		if l != nil {
			r.links = append(r.links, l)
		}
		var absent *absentError
		switch {
		case errors.As(err, &absent) && name != Bridge:
			r.missing[name] = absent.reason.Error()
			continue
		case err != nil:
			return fmt.Errorf("setting up %s: %w", name, err)
		}
		if err := l.startServers(ctx); err != nil {
			return err
		}
	}
	return nil
}

// absentError says that an arm cannot be made on this host.
type absentError struct{ reason error }

func (e *absentError) Error() string { return e.reason.Error() }

func (r *runner) upArm(ctx context.Context, name string) (*link, error) {
	if name == DockNet {
		return r.upDockNet(ctx)
	}
	return r.upKernel(ctx, name)
}

func (r *runner) upKernel(ctx context.Context, name string) (*link, error) {
	a, err := arm.Find(kernelArms[name])
	if err != nil {
		return nil, err
	}
	if err := a.Check(ctx); err != nil {
		return nil, &absentError{err}
	}
	before := children()
	made, err := a.Up(ctx, arm.Options{ClientCPU: arm.Unpinned, ServerCPU: arm.Unpinned, SoftirqCPU: arm.Unpinned})
	if err != nil {
		return nil, err
	}
	l := &link{arm: name, cpus: r.cpus, bench: r.programs.bench, close: made.Close}
	for pid := range children() {
		if !before[pid] {
			l.daemons = append(l.daemons, pid) // Open vSwitch's
		}
	}
	l.client = func(ctx context.Context, argv ...string) *exec.Cmd {
		return made.Client.Command(ctx, argv[0], argv[1:]...)
	}
	l.server = func(ctx context.Context, _ Placement, argv ...string) *exec.Cmd {
		return made.Server.Command(ctx, argv[0], argv[1:]...)
	}
	l.address = func(p Placement) (string, int) {
		return made.ServerAddr.String(), firstPort + slices.Index(Placements, p)
	}
	return l, nil
}

// upDockNet makes a net with a pipe for the client and one for each server: a pipe has one process.
func (r *runner) upDockNet(ctx context.Context) (*link, error) {
	n, err := dockctl.Open(netName)
	if err != nil {
		return nil, err
	}
	// Whoever has the benchmark's lock owns this name: such a net is what a killed one left.
	if err := n.Down(); err != nil && !errors.Is(err, dockctl.ErrNotUp) {
		return nil, err
	}
	info, err := n.Up(ctx, dockctl.UpOptions{NIC: "none", Masters: 1, Wait: "adaptive", MemoryMiB: 64, User: -1, Daemon: r.programs.daemon})
	if err != nil {
		return nil, err
	}
	l := &link{arm: DockNet, cpus: r.cpus, bench: r.programs.bench, daemons: []int{info.PID}, close: n.Down}
	addresses := map[string]string{"client": "10.50.0.2"}
	for i, p := range Placements {
		addresses["server-"+string(p)] = "10.50.0." + strconv.Itoa(3+i)
	}
	for name, address := range addresses {
		if _, err := n.AddPipe(dockctl.PipeConfig{Name: name, Addresses: []string{address + "/24"}}, -1); err != nil {
			return l, err
		}
	}
	inPipe := func(ctx context.Context, pipe string, argv ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"net", "exec", "--name", netName, pipe, "--"}, argv...)...)
		cmd.Args[0] = os.Args[0]
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
		return cmd
	}
	l.client = func(ctx context.Context, argv ...string) *exec.Cmd { return inPipe(ctx, "client", argv...) }
	l.server = func(ctx context.Context, p Placement, argv ...string) *exec.Cmd {
		return inPipe(ctx, "server-"+string(p), argv...)
	}
	l.address = func(p Placement) (string, int) { return addresses["server-"+string(p)], firstPort }
	return l, nil
}

// close removes all that was made.
func (r *runner) close() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.down())
	}
	return errors.Join(append(errs, os.RemoveAll(r.programs.scratch))...)
}

// programs are DockNet's.
type programs struct {
	daemon  string
	bench   string // a copy that every pipe's user may execute, wherever the checkout is
	scratch string // its directory
}

const scratchPattern = "tare-bench-docknet-"

// ErrNotBuilt is what callers add the remedy to.
var ErrNotBuilt = errors.New("docknet-bench is not built, or not found")

// findPrograms looks for both, and copies docknet-bench.
func findPrograms(o Options) (p programs, err error) {
	p.daemon = o.Daemon
	if p.daemon == "" {
		if p.daemon, err = dockctl.FindDaemon(); err != nil {
			return p, err
		}
	}
	source := o.Bench
	if source == "" {
		if source, err = findBench(p.daemon); err != nil {
			return p, err
		}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return p, fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	// This process has the benchmark's lock: what is there is a killed one's.
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), scratchPattern+"*"))
	for _, dir := range left {
		os.RemoveAll(dir)
	}
	if p.scratch, err = os.MkdirTemp("", scratchPattern); err != nil {
		return p, err
	}
	p.bench = filepath.Join(p.scratch, "docknet-bench")
	if err = os.Chmod(p.scratch, 0o755); err == nil {
		err = os.WriteFile(p.bench, text, 0o755)
	}
	if err != nil {
		os.RemoveAll(p.scratch)
	}
	return p, err
}

// findBench looks beside dockdaemon, and where a build directory has it.
func findBench(daemon string) (string, error) {
	for _, place := range []string{filepath.Join(filepath.Dir(daemon), "docknet-bench"),
		filepath.Join(filepath.Dir(daemon), "..", "apps", "docknet-bench")} {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place, nil
		}
	}
	if path, err := exec.LookPath("docknet-bench"); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%w: it is neither beside %s, nor in ../apps of there, nor in PATH", ErrNotBuilt, daemon)
}

// CheckArms finds out whether these arms can be compared. None means all.
func CheckArms(arms []string) error {
	for _, name := range arms {
		if !slices.Contains(ArmNames, name) {
			return fmt.Errorf("no arm is named %q: there are %v", name, ArmNames)
		}
	}
	if len(arms) > 0 && (!slices.Contains(arms, Bridge) || !slices.Contains(arms, DockNet)) {
		return fmt.Errorf("%s and %s must be among them: they are compared", Bridge, DockNet)
	}
	return nil
}
