package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NIC is a device by which a target's packets leave the host.
type NIC struct {
	Name      string
	Index     int
	NetNSPath string // where the device is: the host's network namespace, in the target's view
}

// ErrNoNIC means that no outer device could be told; the message lists what there is to choose from.
var ErrNoNIC = errors.New("which device the packets leave by cannot be told: name it with --nic")

// maxNICs is how many devices are watched at once; with more, the ones with a default route are preferred.
const maxNICs = 4

// NICs finds the devices of the target's host by which its packets leave, or checks the given names. The host's
// network namespace is found by following the target's own devices: a veth's peer and a macvlan's lower device are
// there.
func (t Target) NICs(names []string) ([]NIC, error) {
	host, err := t.hostNetNS()
	if err != nil {
		return nil, fmt.Errorf("finding the NIC of %s: %w", t, err)
	}
	links, defaults, err := linksAndDefaults(host)
	if err != nil {
		return nil, fmt.Errorf("finding the NIC of %s: %w", t, err)
	}
	var nics []NIC
	if len(names) > 0 {
		for _, name := range names {
			i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == name })
			if i < 0 {
				return nil, fmt.Errorf("no device %q in the host's network namespace; there are %s", name, linkNames(links))
			}
			nics = append(nics, NIC{name, links[i].Attrs().Index, host})
		}
		if len(nics) > maxNICs {
			return nil, fmt.Errorf("%d NICs are named, and at most %d can be watched", len(nics), maxNICs)
		}
		return nics, nil
	}
	for _, link := range links {
		if canLeaveHost(link, host) {
			nics = append(nics, NIC{link.Attrs().Name, link.Attrs().Index, host})
		}
	}
	slices.SortStableFunc(nics, func(a, b NIC) int {
		return boolOrder(slices.Contains(defaults, a.Index), slices.Contains(defaults, b.Index))
	})
	if len(nics) == 0 {
		return nil, fmt.Errorf("%w; there are %s", ErrNoNIC, linkNames(links))
	}
	return nics[:min(len(nics), maxNICs)], nil
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func linkNames(links []netlink.Link) string {
	var names []string
	for _, link := range links {
		if link.Attrs().Name != "lo" {
			names = append(names, link.Attrs().Name)
		}
	}
	return strings.Join(names, ", ")
}

// canLeaveHost tells NICs from what only leads to other containers: a device that is up and routes by itself, not
// as a port of a bridge, and neither a bridge nor a tunnel, whose packets pass another device after it.
func canLeaveHost(link netlink.Link, host string) bool {
	attrs := link.Attrs()
	if attrs.Name == "lo" || attrs.OperState == netlink.OperDown || attrs.RawFlags&1 == 0 || attrs.MasterIndex != 0 {
		return false
	}
	switch link.Type() {
	case "bridge", "vxlan", "geneve", "gre", "gretap", "ipip", "sit", "ip6tnl", "dummy", "ifb", "vlan", "macvlan", "ipvlan":
		return false
	}
	addresses := 0
	inside(host, func(h *netlink.Handle) error {
		all, err := h.AddrList(link, netlink.FAMILY_ALL)
		for _, a := range all {
			if a.IP.IsGlobalUnicast() {
				addresses++
			}
		}
		return err
	})
	return addresses > 0
}

// inside calls fn with a netlink socket of the network namespace.
func inside(path string, fn func(*netlink.Handle) error) error {
	var handle *netlink.Handle
	// Not netlink.NewHandleAt, which makes text of the kernel's error: a caller must know a missing privilege by it.
	err := InNetNS(path, func() (err error) {
		handle, err = netlink.NewHandle(unix.NETLINK_ROUTE) // the others of netlink, a kernel may lack
		return err
	})
	if err != nil {
		return fmt.Errorf("asking the kernel about %s: %w", path, err)
	}
	defer handle.Close()
	return fn(handle)
}

func linksAndDefaults(path string) (links []netlink.Link, defaults []int, err error) {
	err = inside(path, func(h *netlink.Handle) error {
		if links, err = h.LinkList(); err != nil {
			return fmt.Errorf("listing devices in %s: %w", path, err)
		}
		routes, err := h.RouteList(nil, netlink.FAMILY_ALL)
		for _, r := range routes {
			if r.Dst == nil || r.Dst.IP.IsUnspecified() {
				defaults = append(defaults, r.LinkIndex)
			}
		}
		return err
	})
	return links, defaults, err
}

// hostNetNS is the network namespace at the other end of the target's devices.
func (t Target) hostNetNS() (string, error) {
	if t.HostNetwork {
		return ownNetNS, nil
	}
	links, _, err := linksAndDefaults(t.NetNSPath)
	if err != nil {
		return "", err
	}
	for _, link := range links {
		attrs := link.Attrs()
		// Only devices that are tied to one elsewhere have these: veth, macvlan, ipvlan, vlan.
		if attrs.ParentIndex == 0 || attrs.NetNsID < 0 {
			continue
		}
		host, err := netNSByID(t.NetNSPath, attrs.NetNsID)
		if err != nil {
			return "", fmt.Errorf("the other end of its device %s: %w", attrs.Name, err)
		}
		return host, nil
	}
	for _, link := range links {
		if canLeaveHost(link, t.NetNSPath) {
			return t.NetNSPath, nil // it has a NIC of its own
		}
	}
	return "", fmt.Errorf("it has no device that leads out; there are only: %s", linkNames(links))
}

// netNSByID finds the network namespace that from knows by this ID, among those that something keeps open.
func netNSByID(from string, id int) (string, error) {
	candidates := []string{ownNetNS, "/proc/1/ns/net"}
	for _, pattern := range []string{filepath.Join(netnsDir, "*"), "/proc/[0-9]*/ns/net"} {
		found, _ := filepath.Glob(pattern)
		candidates = append(candidates, found...)
	}
	var result string
	err := inside(from, func(h *netlink.Handle) error {
		seen := map[string]bool{}
		for _, candidate := range candidates {
			if link, err := os.Readlink(candidate); err == nil && strings.HasPrefix(link, "net:") {
				if seen[link] {
					continue // as another process's
				}
				seen[link] = true
			}
			fd, err := openNetNS(candidate)
			if err != nil {
				continue // the process has ended, or is not ours to look at
			}
			found, err := h.GetNetNsIdByFd(fd)
			unix.Close(fd)
			if err == nil && found == id {
				result = candidate
				return nil
			}
		}
		return fmt.Errorf("no process and no name keeps its network namespace in reach")
	})
	return result, err
}

// Exists reports whether the device is still there.
func (n NIC) Exists() bool {
	return inside(n.NetNSPath, func(h *netlink.Handle) error {
		_, err := h.LinkByIndex(n.Index)
		return err
	}) == nil
}

// Device is a network device of a container, with its own counts since it was made.
type Device struct {
	Name                 string
	TxPackets, RxPackets uint64
	XDP                  bool // an XDP program is attached to it
	SharesNIC            bool // macvlan or ipvlan: received packets are the NIC's until a program reads them
}

// Devices lists the devices of a network namespace, but for lo.
func Devices(netnsPath string) ([]Device, error) {
	var devices []Device
	err := inside(netnsPath, func(h *netlink.Handle) error {
		links, err := h.LinkList()
		for _, link := range links {
			attrs := link.Attrs()
			if attrs.Name == "lo" || attrs.Statistics == nil {
				continue
			}
			devices = append(devices, Device{
				Name: attrs.Name, TxPackets: attrs.Statistics.TxPackets, RxPackets: attrs.Statistics.RxPackets,
				XDP:       attrs.Xdp != nil && attrs.Xdp.Attached,
				SharesNIC: link.Type() == "macvlan" || link.Type() == "ipvlan",
			})
		}
		return err
	})
	return devices, err
}
