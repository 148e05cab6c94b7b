package arm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func init() {
	register(120, Arm{
		Name: "docker-macvlan", Summary: "Docker container to Docker container on a macvlan network of Docker's",
		Check: func(ctx context.Context) error { return errors.Join(needRoot(), docker.check(ctx)) }, Up: upDockerMacvlan,
	})
}

// upDockerMacvlan has the client in a container, too: a host does not reach its own macvlan devices.
func upDockerMacvlan(ctx context.Context, o Options) (*Link, error) {
	dir, err := docker.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	parent, removeParent, err := macvlanParent()
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	network := "tare-" + newName()
	removeNetwork := func() error {
		_, err := docker.output(context.Background(), "network", "rm", network)
		removeParent()
		return errors.Join(err, os.RemoveAll(dir))
	}
	if _, err := docker.output(ctx, "network", "create", "--driver", "macvlan", "--opt", "parent="+parent,
		"--label", ownerLabel+"="+ownerTag(), network); err != nil {
		removeParent()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server, err := docker.start(ctx, o.ServerCPU, dir, "--network="+network)
	if err != nil {
		return nil, errors.Join(err, removeNetwork())
	}
	client, err := docker.start(ctx, o.ClientCPU, dir, "--network="+network)
	if err != nil {
		return nil, errors.Join(err, server.close(), removeNetwork())
	}
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		select {
		case <-server.ended:
		case <-client.ended:
		}
	}()
	return &Link{
		Client: client, Server: server, ListenAddr: server.addr, ServerAddr: server.addr, ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"path": "eth0 (macvlan) - its parent's macvlan port - eth0 (macvlan)", "runtime": docker.version(ctx), "softirq": softirqText(o)},
		Lost:     lost, LostWhat: "one of the two containers",
		Close: sync.OnceValue(func() error {
			return errors.Join(client.close(), server.close(), removeNetwork())
		}),
	}, nil
}

// macvlanParent makes a device on the host for macvlan devices to hang on: one end of a veth pair, whose other end is in
// a namespace without a name. So nothing that is sent gets out of this host, and the device goes when tare does. (Without
// a parent Docker makes a dummy device, which not every kernel has.)
func macvlanParent() (name string, remove func(), err error) {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return "", nil, err
	}
	defer nl.Close()
	far, err := newNamespace()
	if err != nil {
		return "", nil, err
	}
	// A device's name has up to 15 characters.
	name = fmt.Sprintf("tm%d-%d", os.Getpid(), linksMade.Add(1))
	host := &namespace{nl: nl}
	if err = joinByVeth(host, name, far, vethDevice); err == nil {
		err = errors.Join(host.raise(name, netip.Prefix{}), far.raise(vethDevice, netip.Prefix{}))
	}
	if err == nil {
		err = host.waitCarrier(name)
	}
	remove = func() {
		// The pair goes with its end in the namespace, but that happens some time later.
		if link, err := far.nl.LinkByName(vethDevice); err == nil {
			_ = far.nl.LinkDel(link)
		}
		far.close()
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}
