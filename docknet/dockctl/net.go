// Package dockctl commands dockdaemon: it starts and ends it, speaks its control language (JSON-RPC 2.0, one request
// per line over a Unix socket), and runs commands in containers of their own with one of its pipes.
package dockctl

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// DefaultName is the name of the net that commands mean when they name none.
const DefaultName = "default"

// stateDir has a directory for each net. It is on a tmpfs: no net outlives a reboot.
const stateDir = "/run/tare/net"

var (
	// ErrInvalid marks wrong arguments.
	ErrInvalid = errors.New("invalid argument")
	// ErrNotUp means that no dockdaemon answers for this net.
	ErrNotUp = errors.New("is not up")
	// ErrUp means that a dockdaemon runs already.
	ErrUp = errors.New("is up already")
	// ErrNoDaemon means that there is no dockdaemon program.
	ErrNoDaemon = errors.New("dockdaemon is not built")
	// ErrNotFound means that the net has no such pipe.
	ErrNotFound = errors.New("does not exist")
	// ErrInUse means that the name or an address of a pipe is another one's.
	ErrInUse = errors.New("in use")
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// Net is a dockdaemon with its pipes, running or not.
type Net struct {
	name string
	dir  string
}

// Open names a net. Whether it is up shows when it is used.
func Open(name string) (*Net, error) {
	if !namePattern.MatchString(name) {
		return nil, fmt.Errorf("%w: the name %q must be 1 to 32 of a-z, 0-9 and -, and not begin with -", ErrInvalid, name)
	}
	return &Net{name: name, dir: filepath.Join(stateDir, name)}, nil
}

// Name is the net's name.
func (n *Net) Name() string { return n.name }

// Directory is where the daemon's sockets, state and log are.
func (n *Net) Directory() string { return n.dir }

// LogPath is the daemon's log.
func (n *Net) LogPath() string { return filepath.Join(n.dir, "dockdaemon.log") }

func (n *Net) controlPath() string { return filepath.Join(n.dir, "control.sock") }

// PipeDirectory is what a container needs of a pipe: it is mounted into the container, by default at PipeMount.
func (n *Net) PipeDirectory(pipe string) string { return filepath.Join(n.dir, "pipes", pipe) }

// PipeMount is where the library looks for its pipe if DOCKNET_PIPE does not say otherwise.
const PipeMount = "/run/docknet/pipe"
