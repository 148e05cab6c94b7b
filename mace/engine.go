// Package mace measures, for each packet of a container, how long it takes between the container and the host's NIC,
// by eBPF programs on the kernel's tracepoints, and corrects round-trip times by it.
//
// An Engine is an event path attached to a kernel. Engine.Activate begins to watch one network namespace and gives
// its records, counters and aggregates; namespaces that nobody activated cost a few loads per packet. Joiner makes
// packets out of records, Correlator makes round trips out of packets.
//
// The method, and its name, come from C. Misa, S. Kannan and R. Durairajan, "Can We Containerize Internet
// Measurements?", ANRW 2019.
package mace

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// MaxNICs is how many outer devices an engine can have.
const MaxNICs = 4

// Options say what an Engine watches.
type Options struct {
	Path Path
	// NICs are the outer devices, all in one network namespace.
	NICs []Device
	// VXLANPort is the UDP port by which encapsulated packets are known; 0 means 4789.
	VXLANPort uint16
	// IdentityKeys finds packets again by what is in them instead of by their skb. It is for containers whose device
	// has an XDP program, which may rebuild skbs, and costs every packet at the NIC a look at its headers.
	IdentityKeys bool
	// NICDelivers is for containers whose device shares the NIC (macvlan, ipvlan). No tracepoint sees a packet change
	// from one to the other, so arrivals are known only once a program reads them.
	NICDelivers bool
	// RingBytes is the size of each namespace's ring, a power of two; 0 means 8 MiB, some 40,000 records.
	RingBytes int
	// Aggregates are kept in the kernel: for readers that do not want every record.
	Aggregates bool
	// Inert attaches programs that do nothing: the floor below which no tracer's cost can be.
	Inert bool
	// BlindPID makes programs do nothing while this process is current. It is for tests: some kernels do so, without
	// telling, while PID 1 is.
	BlindPID int
}

// Device is a network device: an interface index means something only within its network namespace.
type Device struct {
	NetNSCookie uint64
	Index       int
	Name        string
}

// Errors that a caller may want to tell apart; each comes wrapped with what was attempted.
var (
	ErrPrivilege = errors.New("needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN")
	ErrKernel    = errors.New("this kernel lacks what tare needs")
)

// Engine is a path attached to the kernel. Its methods may be called from several goroutines.
type Engine struct {
	path    Path
	plan    plan
	options Options
	objects *ebpf.Collection
	links   []link.Link
	clock   *clock
	stamps  *stampHolder

	mu         sync.Mutex
	namespaces [maxNamespaces]*Namespace
	released   [maxNamespaces]time.Time // when the index was last free to be used
}

// Open loads and attaches the programs that the path needs. The caller must Close the engine.
func Open(options Options) (_ *Engine, err error) {
	if len(options.NICs) == 0 || len(options.NICs) > MaxNICs {
		return nil, fmt.Errorf("opening engine: %d NICs given, want 1 to %d", len(options.NICs), MaxNICs)
	}
	if options.RingBytes == 0 {
		options.RingBytes = 8 << 20
	}
	// Asked first: what the kernel answers without them differs from call to call, and misleads.
	if !privileged() {
		return nil, fmt.Errorf("opening engine: %w", ErrPrivilege)
	}
	e := &Engine{path: options.Path, plan: options.Path.plan(), options: options}
	if options.NICDelivers && e.plan.delivery == 0 {
		e.plan.delivery = SKBCopy
	}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("raising the limit of locked memory: %w", err)
	}
	if e.objects, err = e.load(); err != nil {
		return nil, err
	}
	if e.clock, err = newClock(e.objects.Variables["real_minus_mono_ns"]); err != nil {
		return nil, err
	}
	if e.path.usesStamp() {
		if e.stamps, err = holdStamps(); err != nil {
			return nil, err
		}
	}
	return e, e.attach()
}

// load loads the programs in the fastest way that this kernel allows.
func (e *Engine) load() (*ebpf.Collection, error) {
	for _, directLoads := range []bool{kernelAtLeast(6, 17), false} {
		spec, err := e.spec()
		if err != nil {
			return nil, err
		}
		if err := spec.Variables["direct_loads"].Set(asUint32(directLoads)); err != nil {
			return nil, fmt.Errorf("setting direct_loads: %w", err)
		}
		objects, err := ebpf.NewCollection(spec)
		if err == nil {
			return objects, nil
		}
		if !directLoads {
			return nil, explain("loading eBPF programs", err)
		}
	}
	panic("unreachable")
}

func kernelAtLeast(major, minor int) bool {
	var name unix.Utsname
	var have [2]int
	if unix.Uname(&name) != nil {
		return false
	}
	fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &have[0], &have[1])
	return have[0] > major || have[0] == major && have[1] >= minor
}

// Lacks says what this kernel does not have of all that is made use of, and what it means.
func Lacks() []string {
	var lacks []string
	if !kernelAtLeast(6, 3) {
		lacks = append(lacks, "sock_recv_length (Linux 6.3): UDP readers are known by consume_skb")
	}
	if !kernelAtLeast(6, 17) {
		lacks = append(lacks, "loads through skb->data (Linux 6.17): each event costs some 30 ns more")
	}
	return lacks
}

// parsedObject is the embedded object, parsed once: that takes as long as the verifier's work on a path.
var parsedObject = sync.OnceValues(loadBpf)

// objectSpec is a copy of it, to be changed.
func objectSpec() (*ebpf.CollectionSpec, error) {
	spec, err := parsedObject()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded eBPF object: %w", err)
	}
	return spec.Copy(), nil
}

// spec is the object with the plan's constants, and without what the plan does not need.
func (e *Engine) spec() (*ebpf.CollectionSpec, error) {
	spec, err := objectSpec()
	if err != nil {
		return nil, err
	}
	var ifindex [MaxNICs]uint32
	for i, nic := range e.options.NICs {
		if nic.NetNSCookie != e.options.NICs[0].NetNSCookie {
			return nil, fmt.Errorf("opening engine: NICs %s and %s are in different network namespaces",
				e.options.NICs[0].Name, nic.Name)
		}
		ifindex[i] = uint32(nic.Index)
	}
	constants := map[string]any{
		"egress_start_event":   uint32(e.plan.egressStart),
		"egress_end_event":     uint32(e.plan.egressEnd),
		"egress_from_syscall":  asUint32(e.plan.egressFromSyscall),
		"ingress_start_events": uint32(e.plan.ingressStart),
		"ingress_outer_stamp":  asUint32(e.plan.ingressOuterStamp),
		"ingress_end_event":    uint32(e.plan.ingressEnd),
		"ingress_inner_event":  uint32(e.plan.ingressInner),
		"ingress_by_socket":    asUint32(e.plan.bySocket),
		"ingress_stamp_pair":   asUint32(e.plan.stampPair),
		"delivery_event":       uint32(e.plan.delivery),
		"identity_keys":        asUint32(e.options.IdentityKeys),
		"nic_delivers":         asUint32(e.options.NICDelivers),
		"keep_aggregates":      asUint32(e.options.Aggregates),
		"nic_netns_cookie":     e.options.NICs[0].NetNSCookie,
		"nic_ifindex":          ifindex,
		"blind_pid":            uint32(e.options.BlindPID),
	}
	if e.options.Inert {
		// No event is any point's: what remains of each program is its call.
		for _, name := range []string{"egress_start_event", "egress_end_event", "ingress_start_events", "ingress_end_event"} {
			constants[name] = uint32(0)
		}
	}
	if e.options.VXLANPort != 0 {
		constants["vxlan_port"] = e.options.VXLANPort
	}
	for name, value := range constants {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	needed, forUDP := e.plan.tracepoints(), []string(nil)
	if e.plan.delivery != 0 {
		forUDP = udpTracepoints()
	}
	for name := range spec.Programs {
		if needed&eventNames[name] == 0 && !slices.Contains(forUDP, name) {
			delete(spec.Programs, name)
		}
	}
	if e.plan.delivery == 0 {
		spec.Maps["delivery_slots"].MaxEntries = 1
		spec.Maps["udp_queues"].MaxEntries = 1
	}
	spec.Maps["rings"].InnerMap.MaxEntries = uint32(e.options.RingBytes)
	return spec, nil
}

// udpTracepoints are those by which the programs know that a UDP packet was read: see bpf/udp.h. The version is asked
// because to look them up in the kernel's BTF takes longer than all the rest of opening an engine.
func udpTracepoints() []string {
	if kernelAtLeast(6, 3) {
		return []string{"sk_data_ready", "sock_recv_length"}
	}
	return []string{"consume_skb"}
}

func asUint32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (e *Engine) attach() error {
	for name, program := range e.objects.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return explain(fmt.Sprintf("attaching to tracepoint %s", name), err)
		}
		e.links = append(e.links, l)
	}
	return nil
}

// privileged reports whether programs can be loaded and attached.
func privileged() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return true // the kernel will tell
	}
	has := func(capability int) bool {
		return data[capability/32].Effective&(1<<(capability%32)) != 0
	}
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}

// explain names the cause behind a failed load or attachment where it is a known one.
func explain(attempt string, err error) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused) && len(refused.Log) > 2: // with too few rights there is no log to speak of
		return fmt.Errorf("%s: %w: its verifier refuses it: %w", attempt, ErrKernel, err)
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		return fmt.Errorf("%s: %w: %w", attempt, ErrPrivilege, err)
	case errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w: %w", attempt, ErrKernel, err)
	}
	return fmt.Errorf("%s: %w", attempt, err)
}

// Path is the path that the engine follows.
func (e *Engine) Path() Path { return e.path }

// NewJoiner returns a joiner for the records of the engine's namespaces: see NewJoiner.
func (e *Engine) NewJoiner(emit func(*Passage)) *Joiner {
	j := NewJoiner(e.path, emit)
	j.plan = e.plan
	return j
}

// Close detaches and unloads everything. It may be called more than once.
func (e *Engine) Close() error {
	e.mu.Lock()
	namespaces := e.namespaces
	e.mu.Unlock()
	for _, ns := range namespaces {
		if ns != nil {
			ns.Close()
		}
	}
	// Each detachment waits until no CPU runs the program: all together wait no longer than one.
	var wait sync.WaitGroup
	for _, l := range e.links {
		wait.Go(func() { l.Close() })
	}
	wait.Wait()
	e.links = nil
	if e.stamps != nil {
		e.stamps.release()
		e.stamps = nil
	}
	if e.objects != nil {
		e.objects.Close()
	}
	return nil
}

// Rejections is how often the same skb's address belonged to another packet, or to one too long ago: what the
// identity check has kept from being a false match. Of all namespaces together.
type Rejections struct {
	Identity, Age uint64
}

// Rejections reads the engine's count.
func (e *Engine) Rejections() (Rejections, error) {
	var perCPU []bpfTareRejections
	if err := e.objects.Maps["rejections"].Lookup(uint32(0), &perCPU); err != nil {
		return Rejections{}, fmt.Errorf("reading the count of rejected matches: %w", err)
	}
	var sum Rejections
	for _, r := range perCPU {
		sum.Identity += r.Identity
		sum.Age += r.Age
	}
	return sum, nil
}

// ProgramCost is what the kernel's own statistics say of one program.
type ProgramCost struct {
	Tracepoint string
	Runs       uint64
	Time       time.Duration
	Missed     uint64
}

// ProgramCosts reads run counts and times, which the kernel keeps only while kernel.bpf_stats_enabled is set.
func (e *Engine) ProgramCosts() ([]ProgramCost, error) {
	var costs []ProgramCost
	for name, program := range e.objects.Programs {
		stats, err := program.Stats()
		if err != nil {
			return nil, fmt.Errorf("reading statistics of the program at %s: %w", name, err)
		}
		costs = append(costs, ProgramCost{name, stats.RunCount, stats.Runtime, stats.RecursionMisses})
	}
	return costs, nil
}
