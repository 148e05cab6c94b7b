package lab

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxContainers bounds a lab: 64 containers and their addresses fit below the remote's .254.
const MaxContainers = 64

// IPv6 needs links of 1280 bytes (RFC 8200, section 5); 65535 is the most that the kernel's veth takes.
const (
	minMTU     = 1280
	maxMTU     = 65535
	defaultMTU = 1500
)

// Network is the kind of network that joins the containers to the NIC.
type Network string

// The kinds of network.
const (
	// NetworkBridge is Docker's default: a veth pair per container, a bridge, forwarding and masquerading.
	NetworkBridge Network = "bridge"
	// NetworkVXLAN is an overlay: the bridge has a VXLAN device as its uplink and the remote host is in the overlay's
	// subnet, so packets between container and remote are encapsulated at the NIC.
	NetworkVXLAN Network = "vxlan"
	// NetworkMacvlan gives each container a macvlan device on the NIC and an address of the NIC's own network.
	NetworkMacvlan Network = "macvlan"
)

// Networks lists the kinds of network.
var Networks = []Network{NetworkBridge, NetworkVXLAN, NetworkMacvlan}

// Toggle is a switch that may also be left as the kernel has it.
type Toggle string

// The positions of a Toggle. The zero value leaves the kernel's default: on a veth TSO and GSO on, GRO off.
const (
	Unchanged Toggle = ""
	On        Toggle = "on"
	Off       Toggle = "off"
)

// ParseToggle reads "on", "off", "true", "false", or "" for Unchanged.
func ParseToggle(s string) (Toggle, error) {
	switch strings.ToLower(s) {
	case "on", "true", "1":
		return On, nil
	case "off", "false", "0":
		return Off, nil
	case "":
		return Unchanged, nil
	}
	return Unchanged, fmt.Errorf("%w: %q is neither on nor off", ErrInvalid, s)
}

// Offloads are the segmentation offloads of a device.
type Offloads struct {
	TSO Toggle `json:"tso,omitempty"` // TCP segmentation in the device
	GSO Toggle `json:"gso,omitempty"` // segmentation late in the kernel's transmit path
	GRO Toggle `json:"gro,omitempty"` // merging of received segments; on a veth it switches NAPI on
}

// Options describe a lab. The zero value is one container on Docker's default network, named DefaultName.
type Options struct {
	Name       string  `json:"name"`
	Containers int     `json:"containers"` // 1 to MaxContainers; 0 means 1
	Network    Network `json:"network"`
	MTU        int     `json:"mtu"` // of the NIC's network, in bytes; 0 means 1500

	// RPS spreads received packets over all CPUs on every device, so that one flow's events happen on several.
	RPS bool `json:"rps,omitempty"`
	// Publish forwards TCP port PublishedPort of the NIC to port PublishedTarget of the first container.
	Publish bool `json:"publish,omitempty"`

	NICOffloads       Offloads `json:"nic_offloads"`
	ContainerOffloads Offloads `json:"container_offloads"`
	// RemoteOffloads belong to the NIC's peer. A wire carries no packet larger than the MTU: switch TSO and GSO off
	// here where the NIC is to receive what a real one would.
	RemoteOffloads Offloads `json:"remote_offloads"`

	Delays []Delay `json:"delays,omitempty"`
}

// PublishedPort on the NIC leads to PublishedTarget in the first container, where Options.Publish is set.
const (
	PublishedPort   = 8080
	PublishedTarget = 80
)

// A name ends up in file names and namespace names; no dot and no slash, and short enough to read.
var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%w: the name %q must be 1 to 32 of a-z, 0-9 and -, and not begin with -", ErrInvalid, name)
	}
	return nil
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Containers == 0 {
		o.Containers = 1
	}
	if o.Network == "" {
		o.Network = NetworkBridge
	}
	if o.MTU == 0 {
		o.MTU = defaultMTU
	}
	return o
}

// Check says what is wrong with the options, as an ErrInvalid; nil if nothing is.
func (o Options) Check() error {
	o = o.withDefaults()
	if err := checkName(o.Name); err != nil {
		return err
	}
	if o.Containers < 1 || o.Containers > MaxContainers {
		return fmt.Errorf("%w: %d containers: 1 to %d are possible", ErrInvalid, o.Containers, MaxContainers)
	}
	least := minMTU
	switch o.Network {
	case NetworkBridge:
	case NetworkVXLAN:
		least += vxlanOverheadBytes
	case NetworkMacvlan:
		if o.Publish {
			return fmt.Errorf("%w: a macvlan container has its own address on the NIC's network: there is no port to publish", ErrInvalid)
		}
	default:
		return fmt.Errorf("%w: unknown network %q: use bridge, vxlan or macvlan", ErrInvalid, o.Network)
	}
	if o.MTU < least || o.MTU > maxMTU {
		return fmt.Errorf("%w: an MTU of %d: %d to %d are possible on %s", ErrInvalid, o.MTU, least, maxMTU, o.Network)
	}
	for _, offloads := range []Offloads{o.NICOffloads, o.ContainerOffloads, o.RemoteOffloads} {
		for _, toggle := range []Toggle{offloads.TSO, offloads.GSO, offloads.GRO} {
			if toggle != Unchanged && toggle != On && toggle != Off {
				return fmt.Errorf("%w: offload %q is neither on nor off", ErrInvalid, toggle)
			}
		}
	}
	return o.checkDelays()
}

// containerMTU is what is left for a container's packets.
func (o Options) containerMTU() int {
	if o.Network == NetworkVXLAN {
		return o.MTU - vxlanOverheadBytes
	}
	return o.MTU
}

func (o Options) hosts() []string {
	hosts := []string{Host, Remote}
	for i := 1; i <= o.Containers; i++ {
		hosts = append(hosts, Container(i))
	}
	return hosts
}
