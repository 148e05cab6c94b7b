package arm

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync"
)

func init() {
	register(10, Arm{
		Name: "loopback", Summary: "client and server on the host, over its loopback device",
		Check: func(context.Context) error { return nil },
		Up:    upLoopback,
	})
}

var localhost = netip.MustParseAddr("127.0.0.1")

func upLoopback(_ context.Context, o Options) (*Link, error) {
	if err := errors.Join(cannotPinSoftirq(o), cannotDelay(o)); err != nil {
		return nil, err
	}
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	return &Link{
		Client: netnsPlace{name: "host", cpu: o.ClientCPU}, Server: netnsPlace{name: "host", cpu: o.ServerCPU},
		ListenAddr: localhost, ServerAddr: localhost, ServerPort: samePort, Dir: dir,
		Describe: map[string]string{"path": "socket - lo - socket", "softirq": softirqText(o)},
		Close:    sync.OnceValue(func() error { return os.RemoveAll(dir) }),
	}, nil
}
