package hops

import (
	"fmt"
	"time"

	"tare/mace"
)

// Event is what happens to a packet at a point.
type Event uint8

// The values are those of enum hops_event; the ones after NetifReceiveSKB have no program of their own.
const (
	SysEnter Event = iota + 1
	NetDevQueue
	NetDevStartXmit
	NetDevXmit
	NAPIGROReceive
	NAPIGROFrags
	NetifRx
	NetifReceiveSKBEntry
	NetifReceiveSKB
	Stamp   // skb->tstamp, as SO_TIMESTAMP reports it
	SKBCopy // a program's buffer has it, or is about to
	SysExit
	eventCount
)

const (
	eventMask       = 0x3f // HOPS_EVENT_MASK
	eventContainer  = 0x80 // HOPS_IN_CONTAINER
	flagTimed       = 1 << 0
	flagChecked     = 1 << 1
	flagKernelStamp = 1 << 2
)

// enum hops_status
const (
	statusComplete = iota
	statusUnfinished
	statusTorn
	statusMerged
)

var eventNames = [eventCount]string{"", "sys_enter", "net_dev_queue", "net_dev_start_xmit", "net_dev_xmit", "napi_gro_receive",
	"napi_gro_frags", "netif_rx", "netif_receive_skb_entry", "netif_receive_skb", "stamp", "skb_copy", "sys_exit"}

func (e Event) String() string {
	if e == 0 || e >= eventCount {
		return fmt.Sprintf("event%d", uint8(e))
	}
	return eventNames[e]
}

// Point is an event that a packet was seen at.
type Point struct {
	Event  Event
	Device *Device // without a name for system calls
	TimeNS int64   // CLOCK_MONOTONIC
	// SpentNS is what the tracer itself took from then on, of the hop that begins here; only in traces that are Timed.
	SpentNS int64
}

func (p Point) String() string {
	if p.Device.Name == "" {
		return p.Event.String()
	}
	return p.Event.String() + "@" + p.Device.Name
}

// Direction says which way a packet goes.
type Direction uint8

// The directions, as the container sees them.
const (
	Egress Direction = iota
	Ingress
)

func (d Direction) String() string { return [...]string{"egress", "ingress"}[d&1] }

// Trace is one packet's way through the host.
type Trace struct {
	Direction Direction
	Packet    mace.Packet // as the container sent or got it; zero if it could not be parsed
	Time      time.Time   // of the first point
	Len       int         // bytes from the IP header on
	PID       uint32      // of the program that sent or read it, in the host's numbers; 0: the kernel, or nobody
	Points    []Point     // in the order of their times
	Timed     bool        // the tracer's share was measured
	Read      bool        // a program has read it
	// KernelStamp: the socket that got it takes its time from skb->tstamp.
	KernelStamp bool
	// LostPoints is how many more there were than a trace has room for.
	LostPoints int
	// From and To index Points: the ends of the path's interval, in the order of time. Both are valid if Incomplete is "".
	From, To   int
	Incomplete Reason
}

// CorrectionNS is the time between the ends of the path: what would be subtracted from a round trip for this packet.
func (t *Trace) CorrectionNS() int64 {
	if t.Incomplete != "" {
		return 0
	}
	return t.Points[t.To].TimeNS - t.Points[t.From].TimeNS
}

// Reason says why a trace does not tell the time between the path's ends; empty: it does.
type Reason string

// The reasons; where package mace has the same, its status is named alike.
const (
	ReasonUnfinished Reason = "unfinished"
	ReasonUnstarted  Reason = "unstarted"
	ReasonTorn       Reason = "torn"
	ReasonMerged     Reason = "merged"
	ReasonNoSyscall  Reason = "no-syscall"
	ReasonNoEnd      Reason = "no-end"
)

// Text is the reason for a person, behind the number of packets.
func (r Reason) Text() string {
	switch r {
	case ReasonUnfinished:
		return "never came to the NIC: local, dropped, or by another device"
	case ReasonUnstarted:
		return "not seen at the NIC: local, or by another device"
	case ReasonTorn:
		return "torn: two CPUs wrote one trace at once"
	case ReasonMerged:
		return "merged: GRO has made one packet of several on the way"
	case ReasonNoSyscall:
		return "without a system call: the kernel's own, or read by nobody"
	case ReasonNoEnd:
		return "without one end of the path in their trace"
	}
	return string(r)
}
