package hops

// A hop is what lies between two points that follow each other. Its name says what the kernel does there; what has no
// name here is shown by its points, and counts as unexplained.

// hopName names what happens between two points, and reports whether it is known.
func hopName(from, to Point) (string, bool) {
	a, b := from.Device, to.Device
	same := a == b
	switch {
	case to.Event == SysExit:
		return "copy, return", from.Event == SKBCopy
	case to.Event == SKBCopy:
		return "socket, wake-up", from.Event == NetifReceiveSKB
	case from.Event == SysEnter:
		return "socket, IP stack", to.Event == NetDevQueue
	case same && from.Event == NetDevQueue && to.Event == NetDevStartXmit:
		return "qdisc", true
	case same && from.Event == NetDevStartXmit && to.Event == NetDevStartXmit:
		return "qdisc, driver busy", true
	case same && from.Event == NetDevStartXmit && to.Event == NetDevXmit:
		return "driver", true
	case same && arrives(from.Event) && to.Event == NetifReceiveSKB:
		return received[from.Event], true
	case same && from.Event < Stamp && to.Event == Stamp, same && from.Event == Stamp && arrives(to.Event):
		return received[from.Event], arrives(from.Event)
	case from.Event == NetDevStartXmit && a.Kind == "veth" && b.Kind == "veth" && (arrives(to.Event) || to.Event == NetifReceiveSKB):
		return "veth", true
	case from.Event == NetDevStartXmit && to.Event == NetDevQueue && stacked[a.Kind]:
		return a.Kind, true // what the device does before it gives the packet to the one below it
	case from.Event == NetifReceiveSKB && (arrives(to.Event) || to.Event == NetifReceiveSKB) && stacked[b.Kind] && !same:
		return b.Kind, true // and what it does to get it from there
	case from.Event == NetifReceiveSKB && to.Event == NetDevQueue && !same:
		return forwardName(a, b)
	}
	return "", false
}

// forwardName tells bridging from routing.
func forwardName(a, b *Device) (string, bool) {
	switch {
	case a.Master == 0:
		return "netfilter, routing", a.Kind != ""
	case a.Master == b.Master && b.Kind != "":
		return "bridge", true
	}
	return "", false // by way of a device on which it was not seen
}

// arrives tells the events by which a packet comes to a device, before it is received there.
func arrives(e Event) bool { return received[e] != "" }

// received is what happens from there until it is received.
var received = map[Event]string{
	NAPIGROReceive: "GRO", NAPIGROFrags: "GRO", NetifRx: "backlog", NetifReceiveSKBEntry: "backlog, RPS", Stamp: "backlog",
}

// stacked are the kinds of devices that give their packets to other devices of the same host, and take them from there.
var stacked = map[string]bool{
	"bridge": true, "vxlan": true, "macvlan": true, "ipvlan": true, "vlan": true, "bond": true, "team": true, "geneve": true,
	"gre": true, "gretap": true, "ipip": true, "sit": true, "ip6tnl": true, "wireguard": true, "vrf": true, "macvtap": true,
}

// hopDevice says where a hop leads: to another device, or within one.
func hopDevice(from, to Point) string {
	switch {
	case to.Device == none:
		return "" // to the program, which the name says
	case from.Device == to.Device || from.Device == none && to.Device.InContainer:
		return to.Device.Name
	}
	return "→ " + to.Device.Name
}
