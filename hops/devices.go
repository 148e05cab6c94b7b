package hops

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"tare/container"
)

// Device is a network device of the container or of the host.
type Device struct {
	Name        string
	Kind        string // as `ip -d link` says: veth, bridge, vxlan, ..., device for hardware
	Index       int
	Master      int // index of the bridge or bond that it is a port of; 0: none
	InContainer bool
	NIC         bool // the path's outer end
}

// none is the device of points that have none: system calls.
var none = &Device{}

// devices knows the devices of the container and its host, also those that come later. It is for one goroutine at a time.
type devices struct {
	containerPath, hostPath string
	nics                    []container.NIC

	known map[deviceKey]*Device
	asked time.Time
}

type deviceKey struct {
	inContainer bool
	index       int
}

func newDevices(containerPath, hostPath string, nics []container.NIC) *devices {
	return &devices{containerPath: containerPath, hostPath: hostPath, nics: nics, known: map[deviceKey]*Device{}}
}

// read asks the kernel for all devices.
func (d *devices) read() error {
	d.asked = time.Now()
	for _, inContainer := range []bool{true, false} {
		path := d.hostPath
		if inContainer {
			path = d.containerPath
		}
		links, err := linksOf(path)
		if err != nil {
			return fmt.Errorf("listing devices in %s: %w", path, err)
		}
		for _, link := range links {
			a := link.Attrs()
			device := Device{Name: a.Name, Kind: link.Type(), Index: a.Index, Master: a.MasterIndex, InContainer: inContainer}
			device.NIC = !inContainer && slices.ContainsFunc(d.nics, func(n container.NIC) bool { return n.Index == a.Index })
			// In place: hops are told apart by the devices' addresses.
			if known := d.known[deviceKey{inContainer, a.Index}]; known != nil {
				*known = device
			} else {
				d.known[deviceKey{inContainer, a.Index}] = &device
			}
		}
	}
	return nil
}

func linksOf(path string) (links []netlink.Link, err error) {
	err = container.InNetNS(path, func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer handle.Close()
		links, err = handle.LinkList()
		return err
	})
	return links, err
}

// device is the one that an event was on. One that is gone before it could be asked for has no name but its number.
func (d *devices) device(inContainer bool, index int) *Device {
	if index == 0 {
		return none
	}
	key := deviceKey{inContainer, index}
	if device := d.known[key]; device != nil {
		return device
	}
	if time.Since(d.asked) > time.Second && d.read() == nil && d.known[key] != nil {
		return d.known[key]
	}
	device := &Device{Name: fmt.Sprintf("if%d", index), Index: index, InContainer: inContainer}
	d.known[key] = device
	return device
}

// shareNIC reports whether a device of the container takes its packets from the NIC by itself.
func (d *devices) shareNIC() bool {
	for _, device := range d.known {
		if device.InContainer && (device.Kind == "macvlan" || device.Kind == "ipvlan") {
			return true
		}
	}
	return false
}

// deviceCounts is what the container's devices have counted themselves.
type deviceCounts struct{ tx, rx uint64 }

func (s *Session) countDevices() (sum deviceCounts, err error) {
	all, err := container.Devices(s.target.NetNSPath)
	if errors.Is(err, os.ErrNotExist) {
		return sum, nil // it has stopped: the account says what was seen
	}
	for _, d := range all {
		sum.tx += d.TxPackets
		sum.rx += d.RxPackets
	}
	if err != nil {
		return sum, fmt.Errorf("counting the container's packets: %w", err)
	}
	return sum, nil
}
