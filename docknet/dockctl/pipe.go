package dockctl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
)

// Identities of pipes are drawn from numbers that no user of the host has (systemd's UIDS-GIDS: containers' range).
const (
	firstIdentity = 1_000_000_000
	identities    = 800_000_000
)

// AddPipe makes a pipe and opens it to one identity: user and group of the container that will have it. A negative
// identity draws one. It returns the identity.
func (n *Net) AddPipe(config PipeConfig, identity int) (int, error) {
	client, err := n.Dial()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.AddPipe(config); err != nil {
		return 0, err
	}
	if identity < 0 {
		identity = firstIdentity + rand.IntN(identities)
	}
	// The daemon made the directory with mode 0710: the group may pass through it, to the socket.
	if err := os.Chown(n.PipeDirectory(config.Name), -1, identity); err != nil {
		_ = client.RemovePipe(config.Name)
		return 0, fmt.Errorf("giving pipe %q to group %d: %w", config.Name, identity, err)
	}
	return identity, nil
}

// Identity is the user and group to which a pipe is open.
func (n *Net) Identity(pipe string) (int, error) {
	info, err := os.Stat(n.PipeDirectory(pipe))
	if os.IsNotExist(err) {
		return 0, fmt.Errorf("pipe %q of net %q %w", pipe, n.name, ErrNotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("looking at pipe %q: %w", pipe, err)
	}
	return int(info.Sys().(*syscall.Stat_t).Gid), nil
}

// DockerArgs are the arguments of docker run or podman run that give a container the pipe.
func (n *Net) DockerArgs(pipe string) []string {
	return []string{"-v", n.PipeDirectory(pipe) + ":" + PipeMount, "-e", "DOCKNET_PIPE=" + PipeMount}
}
