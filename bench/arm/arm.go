// Package arm makes the networks that a benchmark compares: from the loopback device to Docker's published ports. Each
// arm is one file, which puts itself into the table that All returns.
//
// An arm joins two places, a client's and a server's. The same binaries of the host run at both, in every arm, so that
// arms differ by their network, and, where a place is a real container, by what its runtime does to every process in it
// (seccomp, control groups). An arm that cannot be made here says why; nothing ever stands in for it.
package arm

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"time"
)

// Arm is one kind of network to compare.
type Arm struct {
	Name    string // lower case, with dashes: a word for --arms
	Summary string // one line: what a packet passes
	// Check returns nil where the arm can be made on this host, else the reason in one line.
	Check func(ctx context.Context) error
	// Up makes the network. What a killed process left of an earlier one is removed first.
	Up func(ctx context.Context, o Options) (*Link, error)

	rank int
}

// Unpinned is the number of no CPU.
const Unpinned = -1

// Options say how a link is to be made.
type Options struct {
	ClientCPU  int // where tools at the client's place run; Unpinned: anywhere
	ServerCPU  int // where tools at the server's place run; Unpinned: anywhere
	SoftirqCPU int // where received packets are processed; Unpinned: on the sender's CPU, as virtual devices do by default
	// Port is what servers will listen on; DefaultPort if 0. An arm that must know ports beforehand (publishing one)
	// prepares this one only.
	Port uint16
	// Delay is added to every request on its way to the server, where the arm can: a known effect to be found.
	Delay time.Duration
}

// DefaultPort is sockperf's.
const DefaultPort = 11111

// port is Port with its default.
func (o Options) port() uint16 { return cmp.Or(o.Port, DefaultPort) }

// Link is a network that exists.
type Link struct {
	Client, Server Place
	ListenAddr     netip.Addr // what a server binds to
	ServerAddr     netip.Addr // what a client connects to
	// ServerPort translates the port that a server listens on to the one that a client connects to.
	ServerPort func(listening uint16) uint16
	// Dir is an empty directory that exists under this path at both places, for configuration files and logs.
	Dir string
	// NoICMP says why an echo request would not measure this arm; "" where it does.
	NoICMP string
	// Describe says what was made, for the report: devices, versions, addresses.
	Describe map[string]string
	// Lost is closed when a part of the link has gone away by itself, a container that died for instance, and LostWhat
	// says which. It is nil where nothing can.
	Lost     <-chan struct{}
	LostWhat string
	// Close removes all of it. It may be called more than once.
	Close func() error
}

// Place is where tools run: a network namespace or a container.
type Place interface {
	// Command prepares a tool of the host, pinned to the place's CPU. Its standard streams are the caller's to set
	// before Start, with which it is to be started. The tool dies with this process.
	Command(ctx context.Context, name string, args ...string) *exec.Cmd
	// PID returns the process ID of a started Command's tool, as this host sees it: it may not be a child.
	PID(ctx context.Context, cmd *exec.Cmd) (int, error)
	// NetNS is a path that opens the place's network namespace, as long as the link is up.
	NetNS() string
	// CPU is what tools are pinned to, or Unpinned.
	CPU() int
	String() string
}

var table []Arm

// register adds an arm to the table. Ranks give the order in which arms are listed: simple ones first.
func register(rank int, a Arm) {
	a.rank = rank
	table = append(table, a)
}

// All returns every arm that tare knows, whether or not it can be made here, simple ones first.
func All() []Arm {
	arms := slices.Clone(table)
	slices.SortStableFunc(arms, func(a, b Arm) int { return cmp.Compare(a.rank, b.rank) })
	return arms
}

// Find returns the arm of that name.
func Find(name string) (Arm, error) {
	for _, a := range table {
		if a.Name == name {
			return a, nil
		}
	}
	names := []string{}
	for _, a := range All() {
		names = append(names, a.Name)
	}
	return Arm{}, fmt.Errorf("no arm is named %q: there are %v", name, names)
}
