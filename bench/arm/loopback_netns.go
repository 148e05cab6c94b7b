package arm

import (
	"context"
	"os"
	"sync"
)

func init() {
	register(20, Arm{
		Name: "loopback-netns", Summary: "client and server in one network namespace, over its loopback device",
		Check: func(context.Context) error { return needRoot() },
		Up:    upLoopbackNetNS,
	})
}

func upLoopbackNetNS(_ context.Context, o Options) (*Link, error) {
	if err := cannotDelay(o); err != nil {
		return nil, err
	}
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	ns, err := newNamespace()
	if err == nil {
		if err = pinSoftirq(ns.path(), o.SoftirqCPU); err != nil {
			ns.close()
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Link{
		Client:     netnsPlace{name: "namespace", path: ns.path(), cpu: o.ClientCPU},
		Server:     netnsPlace{name: "namespace", path: ns.path(), cpu: o.ServerCPU},
		ListenAddr: localhost, ServerAddr: localhost, ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"path": "socket - lo - socket, in a namespace", "softirq": softirqText(o)},
		Close: sync.OnceValue(func() error {
			ns.close()
			return os.RemoveAll(dir)
		}),
	}, nil
}
