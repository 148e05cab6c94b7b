package arm

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace without a name: a descriptor of this process holds it open, and so do the tools
// inside, which die with this process. So the kernel removes it, whatever ends tare.
type namespace struct {
	file *os.File
	nl   *netlink.Handle
}

// newNamespace makes a namespace with its loopback device up.
func newNamespace() (*namespace, error) {
	var fd int
	err := onOwnThread(func() error {
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err != nil {
			return err
		}
		fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("making a network namespace: %w", err)
	}
	ns := &namespace{file: os.NewFile(uintptr(fd), "netns")}
	if ns.nl, err = handleAt(fd); err == nil {
		err = ns.raise("lo", netip.Prefix{})
	}
	if err != nil {
		ns.close()
		return nil, err
	}
	return ns, nil
}

// path opens the namespace, from any process of this user.
func (n *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

func (n *namespace) close() {
	if n.nl != nil {
		n.nl.Close()
		n.nl = nil
	}
	n.file.Close()
}

// raise gives a device an address, if one is given, and sets it up.
func (n *namespace) raise(device string, addr netip.Prefix) error {
	link, err := n.nl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", device, err)
	}
	if addr.IsValid() {
		parsed, err := netlink.ParseAddr(addr.String())
		if err != nil {
			return err
		}
		if err := n.nl.AddrAdd(link, parsed); err != nil {
			return fmt.Errorf("giving %s the address %s: %w", device, addr, err)
		}
	}
	if err := n.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting %s up: %w", device, err)
	}
	return nil
}

// joinByVeth makes a veth pair with an end in each namespace. Both are still down.
func joinByVeth(one *namespace, device string, other *namespace, peer string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = device, 1500
	err := one.nl.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(int(other.file.Fd()))})
	if err != nil {
		return fmt.Errorf("adding the veth pair %s and %s: %w", device, peer, err)
	}
	return nil
}

// waitCarrier returns when a device carries packets: a veth does a moment after both of its ends are up.
func (n *namespace) waitCarrier(device string) error {
	for range 1000 {
		link, err := n.nl.LinkByName(device)
		if err != nil {
			return fmt.Errorf("looking for %s: %w", device, err)
		}
		if link.Attrs().RawFlags&unix.IFF_RUNNING != 0 {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s has no carrier after 5 s", device)
}

// inside runs fn on a thread in the namespace that path opens.
func inside(path string, fn func() error) error {
	return onOwnThread(func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening namespace %s: %w", path, err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering namespace %s: %w", path, err)
		}
		return fn()
	})
}

// onOwnThread runs fn on a thread that dies with it, so that fn may change the thread's namespaces for good.
func onOwnThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errors.New("the function ended its goroutine")
		defer func() { done <- err }()
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread never dies and is what /proc/<pid>/ns shows of the process. It is occupied while this
			// goroutine waits, so the next attempt gets another one.
			defer runtime.UnlockOSThread()
			err = onOwnThread(fn)
			return
		}
		err = fn()
	}()
	return <-done
}

// handleAt opens netlink in the namespace of a descriptor.
func handleAt(fd int) (*netlink.Handle, error) {
	var handle *netlink.Handle
	err := inside(fmt.Sprintf("/proc/self/fd/%d", fd), func() error {
		var err error
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening netlink: %w", err)
	}
	return handle, nil
}

// needRoot is the Check of arms that make namespaces and devices.
func needRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root to make network namespaces: run with sudo")
	}
	return nil
}
