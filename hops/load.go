package hops

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"tare/container"
	"tare/mace"
)

// maxNICs is TARE_NICS.
const maxNICs = 4

// ownMaps are those of bpf/. The headers that come from mace declare theirs as well, which nothing here uses.
var ownMaps = []string{"egress_traces", "ingress_traces", "kept_traces", "deliveries", "results", "hops_counts", "callers", "udp_queues", "driving"}

var parsedObject = sync.OnceValues(loadBpf)

// load loads the programs for a container and a host, given by their namespaces' cookies, in the fastest way that this
// kernel allows.
func load(cookies [2]uint64, nics []container.NIC, nicDelivers bool, ringBytes int) (*ebpf.Collection, error) {
	if err := rlimit.RemoveMemlock(); err != nil && !errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("raising the limit of locked memory: %w", err)
	}
	parsed, err := parsedObject()
	if err != nil {
		return nil, fmt.Errorf("reading the embedded eBPF object: %w", err)
	}
	var ifindex [maxNICs]uint32
	for i, nic := range nics[:min(len(nics), maxNICs)] {
		ifindex[i] = uint32(nic.Index)
	}
	constants := map[string]any{
		"container_cookie": cookies[0], "host_cookie": cookies[1], "nic_ifindex": ifindex, "nic_delivers": asUint32(nicDelivers),
	}
	for _, direct := range []bool{kernelAtLeast(6, 17), false} {
		spec := parsed.Copy()
		constants["direct_loads"] = asUint32(direct)
		for name, value := range constants {
			if err := spec.Variables[name].Set(value); err != nil {
				return nil, fmt.Errorf("setting %s: %w", name, err)
			}
		}
		prune(spec, nicDelivers)
		spec.Maps["results"].MaxEntries = uint32(ringBytes)
		objects, err := ebpf.NewCollection(spec)
		if err == nil {
			return objects, nil
		}
		if !direct {
			return nil, explain("loading eBPF programs", err)
		}
	}
	panic("unreachable")
}

// prune takes out what this kernel and this container do not need.
func prune(spec *ebpf.CollectionSpec, nicDelivers bool) {
	for name := range spec.Maps {
		if !slices.Contains(ownMaps, name) && name[0] != '.' {
			delete(spec.Maps, name)
		}
	}
	if !nicDelivers {
		spec.Maps["kept_traces"].MaxEntries = 1
	}
	// Which of them tells that a UDP packet was read: see mace's bpf/udp.h.
	if kernelAtLeast(6, 3) {
		delete(spec.Programs, "consume_skb")
	} else {
		delete(spec.Programs, "sk_data_ready")
		delete(spec.Programs, "sock_recv_length")
	}
}

func attach(objects *ebpf.Collection) (links []link.Link, err error) {
	for name, program := range objects.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			for _, l := range links {
				l.Close()
			}
			return nil, explain("attaching to tracepoint "+name, err)
		}
		links = append(links, l)
	}
	return links, nil
}

// explain names the cause where it is a known one, by the errors that the engine's callers know.
func explain(attempt string, err error) error {
	var refused *ebpf.VerifierError
	switch {
	case errors.As(err, &refused) && len(refused.Log) > 2: // with too few rights there is no log to speak of
		return fmt.Errorf("%s: %w: its verifier refuses it: %w", attempt, mace.ErrKernel, err)
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		return fmt.Errorf("%s: %w: %w", attempt, mace.ErrPrivilege, err)
	case errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s: %w: %w", attempt, mace.ErrKernel, err)
	}
	return fmt.Errorf("%s: %w", attempt, err)
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

func asUint32(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
