// Package lab builds Docker's default network out of network namespaces, without Docker: containers behind a bridge,
// masquerading, a NIC, and a remote host. It is made for development, tests and demonstrations.
//
//	tare-<lab>-c1        tare-<lab>-host                             tare-<lab>-remote
//	+----------+        +---------------------------------------+        +----------+
//	| eth0 ----+-- veth-+- veth1 -- br0 -- masquerade -- nic0 --+- veth -+---- eth0 |
//	| .77.0.2  |        |  10.77.0.1, fd77::1      10.78.0.1    |        | .78.0.2  |
//	+----------+        +---------------------------------------+        +----------+
//
// Nothing in the namespace of the caller is changed: the "host" is a namespace of its own. A lab is known by its name,
// outlives the process that made it, and is described by a state file written before its first part exists, so that
// whatever kills a process half-way, the next Up or Down of that name finishes the job.
package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Errors that callers branch on. All but ErrInvalid follow the words "lab" and its name.
var (
	ErrNotFound   = errors.New("does not exist")
	ErrExists     = errors.New("is up already")
	ErrBusy       = errors.New("is being made or removed by another process")
	ErrIncomplete = errors.New("is half-made")
	ErrInvalid    = errors.New("invalid argument")
)

// DefaultName is the lab that is meant when none is named.
const DefaultName = "lab"

// Hosts and devices. Container i (from 1) is Container(i).
const (
	Host   = "host"
	Remote = "remote"

	NIC             = "nic0"   // the host's NIC, in Host
	Bridge          = "br0"    // the containers' bridge, in Host
	VXLANDevice     = "vxlan0" // the tunnel's end, in Host and Remote of a VXLAN lab
	ContainerDevice = "eth0"   // in each container
	RemoteDevice    = "eth0"   // in Remote, the NIC's peer
)

// Container returns the host name of container i, from 1.
func Container(i int) string { return "c" + strconv.Itoa(i) }

// HostVeth returns the device in Host that is the peer of container i's eth0, from 1.
func HostVeth(i int) string { return "veth" + strconv.Itoa(i) }

// Lab is a network that exists.
type Lab struct {
	options Options
	created time.Time
}

// Open finds a lab that is up. It fails with ErrNotFound, or with ErrIncomplete where a process died making it
// or a namespace is gone.
func Open(name string) (*Lab, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	st, err := readState(name)
	if err != nil {
		return nil, err
	}
	if st.Phase != phaseUp {
		return nil, fmt.Errorf("lab %q %w", name, ErrIncomplete)
	}
	l := &Lab{options: st.Options, created: st.Created}
	for _, host := range l.Hosts() {
		if path := l.NetNSPath(host); !isNetNS(path) { // say after `ip netns del`
			return nil, fmt.Errorf("lab %q %w: its namespace %s is gone", name, ErrIncomplete, path)
		}
	}
	return l, nil
}

// List returns the names of all labs that have a state file, complete or not, sorted.
func List() ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(stateDir, "*"+stateSuffix))
	if err != nil {
		return nil, fmt.Errorf("listing labs in %s: %w", stateDir, err)
	}
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), stateSuffix)
		if checkName(name) == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, nil
}

// Name returns the lab's name.
func (l *Lab) Name() string { return l.options.Name }

// Options returns what the lab was made from, defaults filled in.
func (l *Lab) Options() Options { return l.options }

// Containers returns the number of containers.
func (l *Lab) Containers() int { return l.options.Containers }

// Hosts returns all hosts: Host, Remote, then the containers.
func (l *Lab) Hosts() []string { return l.options.hosts() }

// NetNSName returns the name of host's namespace as `ip netns` knows it.
func (l *Lab) NetNSName(host string) string { return netnsName(l.options.Name, host) }

// NetNSPath returns the file that holds host's namespace open, for setns and for `nsenter --net=`.
func (l *Lab) NetNSPath(host string) string { return netnsPath(l.NetNSName(host)) }

// checkHost makes sure that host is one of the lab's.
func (l *Lab) checkHost(host string) error {
	for _, known := range l.Hosts() {
		if host == known {
			return nil
		}
	}
	return fmt.Errorf("%w: lab %q has no host %q: it has %s, %s and %s to %s", ErrInvalid, l.Name(), host,
		Host, Remote, Container(1), Container(l.Containers()))
}

// Do runs fn on a thread that is inside host's network namespace, and returns its error. Sockets that fn opens stay in
// that namespace and may be used from anywhere afterwards (net.Dial and net.Listen with literal addresses open theirs on
// this thread). Goroutines that fn starts are NOT inside.
func (l *Lab) Do(host string, fn func() error) error {
	if err := l.checkHost(host); err != nil {
		return err
	}
	return inNetNS(l.NetNSPath(host), fn)
}
