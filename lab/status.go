package lab

import (
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Status is what there is of a lab. Its JSON form is what `tare lab status -o json` prints.
type Status struct {
	Name       string            `json:"name"`
	Complete   bool              `json:"complete"` // false: half-made, remove it with Down
	Created    time.Time         `json:"created"`
	Options    Options           `json:"options"`
	Namespaces []NamespaceStatus `json:"namespaces"`
	Processes  []Process         `json:"processes"` // background traffic, and what makes delays, that is running
}

// NamespaceStatus is one host of a lab.
type NamespaceStatus struct {
	Host    string         `json:"host"`
	Name    string         `json:"name"`
	Cookie  uint64         `json:"cookie"` // the kernel's SO_NETNS_COOKIE
	Devices []DeviceStatus `json:"devices"`
}

// DeviceStatus is one device, as the kernel says.
type DeviceStatus struct {
	Name      string   `json:"name"`
	Index     int      `json:"ifindex"`
	Kind      string   `json:"kind"`
	MAC       string   `json:"mac"`
	MTU       int      `json:"mtu"`
	Running   bool     `json:"running"`
	Master    string   `json:"master,omitempty"` // the bridge it is a port of
	Addresses []string `json:"addresses"`        // without IPv6 link-local ones
	RPS       string   `json:"rps_cpus"`         // mask in hexadecimal; 0 is off
	Offloads  Offloads `json:"offloads"`
}

// ReadStatus describes the lab of that name, complete or not. It needs the rights that Up needs.
func ReadStatus(name string) (Status, error) {
	if err := checkName(name); err != nil {
		return Status{}, err
	}
	st, err := readState(name)
	if err != nil {
		return Status{}, err
	}
	status := Status{Name: name, Complete: st.Phase == phaseUp, Created: st.Created, Options: st.Options, Processes: runningOf(st.Processes)}
	for _, host := range st.Options.hosts() {
		path := netnsPath(netnsName(name, host))
		if !isNetNS(path) {
			status.Complete = false
			continue
		}
		namespace, err := readNamespace(path)
		if err != nil {
			return Status{}, fmt.Errorf("reading %s of lab %q: %w", host, name, err)
		}
		namespace.Host, namespace.Name = host, netnsName(name, host)
		status.Namespaces = append(status.Namespaces, namespace)
	}
	return status, nil
}

// NetNSCookie returns the kernel's number of host's namespace, which is never given out twice.
func (l *Lab) NetNSCookie(host string) (cookie uint64, err error) {
	err = l.Do(host, func() error {
		cookie, err = ownNetNSCookie()
		return err
	})
	return cookie, err
}

func ownNetNSCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("asking for the namespace's cookie (Linux 5.14): %w", err)
	}
	return cookie, nil
}

func readNamespace(path string) (NamespaceStatus, error) {
	var status NamespaceStatus
	err := inNetNSWithSysfs(path, func() (err error) {
		if status.Cookie, err = ownNetNSCookie(); err != nil {
			return err
		}
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("opening netlink: %w", err)
		}
		defer handle.Close()
		status.Devices, err = readDevices(handle)
		return err
	})
	return status, err
}

// readDevices describes every device but the loopback device, in a namespace entered by inNetNSWithSysfs.
func readDevices(handle *netlink.Handle) ([]DeviceStatus, error) {
	links, err := handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing devices: %w", err)
	}
	masks, err := readRPS()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	devices := []DeviceStatus{}
	for _, link := range links {
		attrs := link.Attrs()
		if attrs.Flags&net.FlagLoopback != 0 {
			continue
		}
		device := DeviceStatus{Name: attrs.Name, Index: attrs.Index, Kind: link.Type(), MAC: attrs.HardwareAddr.String(),
			MTU: attrs.MTU, Running: attrs.RawFlags&unix.IFF_RUNNING != 0, Master: names[attrs.MasterIndex],
			Addresses: []string{}, RPS: masks[attrs.Name]}
		addrs, err := handle.AddrList(link, netlink.FAMILY_ALL)
		if err != nil {
			return nil, fmt.Errorf("listing the addresses of %s: %w", attrs.Name, err)
		}
		for _, addr := range addrs {
			if !addr.IP.IsLinkLocalUnicast() {
				device.Addresses = append(device.Addresses, addr.IPNet.String())
			}
		}
		if device.Offloads, err = readOffloads(attrs.Name); err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}
