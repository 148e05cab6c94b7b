package containertest

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Remote is another machine, one wire away from the private host's only NIC. It knows no route to containers:
// they reach it through the runtime's NAT.
type Remote struct {
	Addr  string // its IPv4 address
	NetNS string // its network namespace, a name under /run/netns
	NIC   string // the private host's interface towards it
}

// StartRemote makes a remote machine, which goes with the test.
func StartRemote(t testing.TB) Remote {
	t.Helper()
	requireHost(t)
	remote := Remote{Addr: "10.80.0.2", NetNS: "remote", NIC: "nic0"}
	if err := remote.start(); err != nil {
		t.Fatalf("containertest: making the remote machine: %s", err)
	}
	t.Cleanup(func() {
		if nic, err := netlink.LinkByName(remote.NIC); err == nil {
			_ = netlink.LinkDel(nic)
		}
		_ = netns.DeleteNamed(remote.NetNS)
	})
	return remote
}

func (r Remote) start() error {
	namespace, err := newNamespace(r.NetNS)
	if err != nil {
		return err
	}
	defer namespace.Close()
	const peer = "eth0"
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: r.NIC, MTU: 1500}, PeerName: peer, PeerNamespace: netlink.NsFd(namespace),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("adding %s: %w", r.NIC, err)
	}
	here, err := netlink.NewHandle()
	if err != nil {
		return err
	}
	defer here.Close()
	there, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return err
	}
	defer there.Close()
	if _, err := raise(there, "lo", ""); err != nil {
		return err
	}
	if _, err := raise(there, peer, r.Addr+"/24"); err != nil {
		return err
	}
	nic, err := raise(here, r.NIC, "10.80.0.1/24")
	if err != nil {
		return err
	}
	if err := here.RouteAdd(&netlink.Route{LinkIndex: nic.Attrs().Index, Gw: net.ParseIP(r.Addr)}); err != nil {
		return fmt.Errorf("adding the default route: %w", err)
	}
	// The kernel tells of a carrier up to a second after it is there, and until then it is a NIC without a cable.
	for range 500 {
		if nic, err = here.LinkByName(r.NIC); err != nil {
			return err
		}
		if nic.Attrs().OperState == netlink.OperUp {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s stays %s", r.NIC, nic.Attrs().OperState)
}

// newNamespace makes a named network namespace without leaving the present one.
func newNamespace(name string) (netns.NsHandle, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		return 0, err
	}
	defer before.Close()
	namespace, err := netns.NewNamed(name)
	if err != nil {
		return 0, fmt.Errorf("making namespace %s: %w", name, err)
	}
	if err := netns.Set(before); err != nil {
		panic(fmt.Sprintf("a thread is lost in namespace %s: %s", name, err))
	}
	return namespace, nil
}

func raise(handle *netlink.Handle, name, address string) (netlink.Link, error) {
	link, err := handle.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", name, err)
	}
	if address != "" {
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return nil, err
		}
		if err := handle.AddrAdd(link, parsed); err != nil {
			return nil, fmt.Errorf("giving %s the address %s: %w", name, address, err)
		}
	}
	if err := handle.LinkSetUp(link); err != nil {
		return nil, fmt.Errorf("setting %s up: %w", name, err)
	}
	return link, nil
}
