package arm

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
)

func init() {
	register(30, Arm{
		Name: "veth", Summary: "two network namespaces joined by a veth pair, nothing between them",
		Check: func(context.Context) error { return needRoot() },
		Up:    upVeth,
	})
}

var (
	vethClientAddr = netip.MustParsePrefix("10.79.0.1/24")
	vethServerAddr = netip.MustParsePrefix("10.79.0.2/24")
)

const vethDevice = "eth0"

func upVeth(_ context.Context, o Options) (*Link, error) {
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	client, server, err := vethPair(o)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Link{
		Client:     netnsPlace{name: "client's namespace", path: client.path(), cpu: o.ClientCPU},
		Server:     netnsPlace{name: "server's namespace", path: server.path(), cpu: o.ServerCPU},
		ListenAddr: vethServerAddr.Addr(), ServerAddr: vethServerAddr.Addr(), ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"path": "eth0 - veth - eth0", "mtu": "1500", "softirq": softirqText(o)},
		Close: sync.OnceValue(func() error {
			client.close()
			server.close()
			return os.RemoveAll(dir)
		}),
	}, nil
}

func vethPair(o Options) (client, server *namespace, err error) {
	if client, err = newNamespace(); err != nil {
		return nil, nil, err
	}
	if server, err = newNamespace(); err != nil {
		client.close()
		return nil, nil, err
	}
	err = joinByVeth(client, vethDevice, server, vethDevice)
	if err == nil {
		err = errors.Join(client.raise(vethDevice, vethClientAddr), server.raise(vethDevice, vethServerAddr))
	}
	if err == nil {
		err = errors.Join(client.waitCarrier(vethDevice), server.waitCarrier(vethDevice),
			pinSoftirq(client.path(), o.SoftirqCPU), pinSoftirq(server.path(), o.SoftirqCPU),
			delayOn(client.nl, vethDevice, o.Delay))
	}
	if err != nil {
		client.close()
		server.close()
		return nil, nil, err
	}
	return client, server, nil
}
