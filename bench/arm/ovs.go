package arm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

func init() {
	register(140, Arm{
		Name: "ovs-userspace", Summary: "two namespaces joined by Open vSwitch's userspace datapath, as without its kernel module",
		Check: checkOVS, Up: upOVS,
	})
}

// ovsSchema is what a new database is made from; Debian's path, which is upstream's.
const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

func checkOVS(context.Context) error {
	if err := needRoot(); err != nil {
		return err
	}
	for _, name := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("%s is not installed: apt-get install openvswitch-switch", name)
		}
	}
	for _, path := range []string{ovsSchema, "/dev/net/tun"} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("the userspace datapath of Open vSwitch needs %s: %w", path, errors.Unwrap(err))
		}
	}
	return nil
}

func upOVS(ctx context.Context, o Options) (*Link, error) {
	if err := cannotDelay(o); err != nil {
		return nil, err
	}
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	client, server, middle, err := threeNamespaces()
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	closeAll := func() error {
		client.close()
		server.close()
		middle.close()
		return os.RemoveAll(dir)
	}
	if err := wireOVS(client, server, middle, o); err != nil {
		return nil, errors.Join(err, closeAll())
	}
	v, err := startVSwitch(ctx, middle, dir)
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	return &Link{
		Client:     netnsPlace{name: "client's namespace", path: client.path(), cpu: o.ClientCPU},
		Server:     netnsPlace{name: "server's namespace", path: server.path(), cpu: o.ServerCPU},
		ListenAddr: vethServerAddr.Addr(), ServerAddr: vethServerAddr.Addr(), ServerPort: samePort, Dir: dir,
		Describe: map[string]string{
			"path":     "eth0 - veth - ovs-vswitchd, a program - veth - eth0",
			"datapath": "netdev", "switch": v.version, "softirq": softirqText(o),
			"offloads": "checksums and segmentation off on the veths: a userspace switch sees frames as on a wire",
		},
		Lost: v.lost, LostWhat: "ovs-vswitchd or ovsdb-server",
		Close: sync.OnceValue(func() error {
			v.stop()
			return closeAll()
		}),
	}, nil
}

func threeNamespaces() (client, server, middle *namespace, err error) {
	var all [3]*namespace
	for i := range all {
		if all[i], err = newNamespace(); err != nil {
			for _, ns := range all[:i] {
				ns.close()
			}
			return nil, nil, nil, err
		}
	}
	return all[0], all[1], all[2], nil
}

// wireOVS joins each end to the switch's namespace by a veth pair.
func wireOVS(client, server, middle *namespace, o Options) error {
	for i, end := range []struct {
		ns   *namespace
		addr netip.Prefix
	}{{client, vethClientAddr}, {server, vethServerAddr}} {
		port := ovsPort(i)
		if err := joinByVeth(end.ns, vethDevice, middle, port); err != nil {
			return err
		}
		// The switch reads packets through a packet socket. Without a wire's checksum, or larger than one carries, they
		// would not get any further.
		if err := errors.Join(withoutOffloads(end.ns, vethDevice), withoutOffloads(middle, port)); err != nil {
			return err
		}
		err := errors.Join(end.ns.raise(vethDevice, end.addr), middle.raise(port, netip.Prefix{}))
		if err == nil {
			err = errors.Join(end.ns.waitCarrier(vethDevice), pinSoftirq(end.ns.path(), o.SoftirqCPU))
		}
		if err != nil {
			return err
		}
	}
	return pinSoftirq(middle.path(), o.SoftirqCPU)
}

func ovsPort(i int) string { return fmt.Sprintf("port%d", i+1) }

// withoutOffloads switches a device's transmit checksums and segmentation off.
func withoutOffloads(ns *namespace, device string) error {
	return inside(ns.path(), func() error {
		for _, feature := range []struct {
			name    string
			command uint32
		}{{"TSO", unix.ETHTOOL_STSO}, {"GSO", unix.ETHTOOL_SGSO}, {"transmit checksums", unix.ETHTOOL_STXCSUM}} {
			if err := ethtoolOff(device, feature.command); err != nil {
				return fmt.Errorf("switching %s off on %s: %w", feature.name, device, err)
			}
		}
		return nil
	})
}
