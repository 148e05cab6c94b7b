package hops

import "tare/mace"

// asTraced are the events of paths by the names that traces have for them.
var asTraced = map[Event]mace.Event{
	SysEnter: mace.SysEnter, NetDevQueue: mace.NetDevQueue, NetDevStartXmit: mace.NetDevStartXmit, NetDevXmit: mace.NetDevXmit,
	NAPIGROReceive: mace.NAPIGROReceive, NAPIGROFrags: mace.NAPIGROFrags, NetifRx: mace.NetifRx, NetifReceiveSKB: mace.NetifReceiveSKB,
	Stamp: mace.Stamp, SKBCopy: mace.SKBCopy, SysExit: mace.SysExit,
}

// names reports whether the path has an end at this event.
func names(path mace.Path, event mace.Event) bool {
	all := path.Egress.Inner.Event | path.Egress.Outer.Event | path.Ingress.Inner.Event | path.Ingress.Outer.Event
	if path.Stamped != nil {
		all |= path.Stamped.Inner.Event | path.Stamped.Outer.Event
	}
	return all&event != 0
}

// is reports whether a point is the one that a path means.
func (p Point) is(wanted mace.Point) bool {
	if asTraced[p.Event]&wanted.Event == 0 {
		return false
	}
	switch wanted.Role {
	case mace.Container:
		return p.Device.InContainer
	case mace.NIC:
		return p.Device.NIC
	}
	return true
}

// find is the index of the first point that a path means, from index from on; -1: none.
func (t *Trace) find(wanted mace.Point, from int) int {
	for i := from; i < len(t.Points); i++ {
		if t.Points[i].is(wanted) {
			return i
		}
	}
	return -1
}

// interval finds the ends of the path in a trace, as the engine of package mace would take them.
func interval(path mace.Path, t *Trace) (from, to int, why Reason) {
	first, last := path.Egress.Inner, path.Egress.Outer
	if t.Direction == Ingress {
		first, last = path.Ingress.Outer, path.Ingress.Inner
		if s := path.Stamped; s != nil && t.KernelStamp {
			first, last = s.Outer, s.Inner
			// Without a stamp at the NIC it would have been taken in the IP layer, just behind where ingress begins.
			if first.Event == mace.Stamp && t.find(first, 0) < 0 {
				first = path.Ingress.Outer
			}
		}
		// macvlan: the packet changes from the NIC to the container without an event.
		if last.Role == mace.Container && last.Event == mace.NetifReceiveSKB && t.onlyNIC() {
			last.Role = mace.NIC
		}
		if last.Event == mace.Stamp && t.onlyNIC() {
			last.Role = mace.NIC
		}
	}
	from = t.find(first, 0)
	if from < 0 {
		return 0, 0, missing(first)
	}
	if to = t.find(last, from); to < 0 {
		return 0, 0, missing(last)
	}
	return from, to, ""
}

func missing(p mace.Point) Reason {
	if p.Role == mace.Task {
		return ReasonNoSyscall
	}
	return ReasonNoEnd
}

// onlyNIC reports whether no device but the NIC was seen.
func (t *Trace) onlyNIC() bool {
	for _, p := range t.Points {
		if p.Device != none && !p.Device.NIC {
			return false
		}
	}
	return true
}
