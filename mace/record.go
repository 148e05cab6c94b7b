package mace

import (
	"time"
)

// Kind says what a record tells.
type Kind uint8

// The kinds of records; the values are those of enum tare_record_kind.
const (
	Egress   Kind = iota + 1 // a packet has left by a NIC
	Ingress                  // a packet has reached a device of the container
	Delivery                 // ... and the program that reads it; its Token is the Ingress record's
)

func (k Kind) String() string {
	return [...]string{"", "egress", "ingress", "delivery"}[k&3]
}

// Status says how much is known of a packet. An uncorrected value never passes as a corrected one: only Matched
// carries latencies.
type Status uint8

// The values up to Unstarted are those of enum tare_status.
const (
	Matched    Status = iota // seen at both ends, and the same packet at both
	Ambiguous                // seen at both ends, but the state about it cannot be trusted, or fits two packets
	Merged                   // GRO or GSO has made one of several packets, or several of one
	Unstarted                // reached the inner end without having been seen at the outer one: it came from this host
	Unfinished               // entered the path and did not leave it: dropped, or delivered on this host
	NoSyscall                // the path ends at a system call, and the kernel itself sent it or none has read it
	Unseen                   // the programs did not see it at all
	statusCount
)

var statusNames = [statusCount]string{"matched", "ambiguous", "merged", "unstarted", "unfinished", "no-syscall", "unseen"}

func (s Status) String() string { return statusNames[s%statusCount] }

// Flags of a record; the values are those of enum tare_flags.
const (
	flagGSO         = 1 << 0
	flagKernelStamp = 1 << 1
	flagSyscall     = 1 << 2
)

// Record is what a program in the kernel tells of one packet: times in ns of CLOCK_MONOTONIC, 0 where there is none.
type Record struct {
	Kind   Kind
	Status Status
	PID    uint32 // who sent or received it, in the host's numbers; 0: the kernel
	Len    uint32 // bytes from the IP header on
	GSO    bool   // Len is that of several packets that travel as one
	// KernelStamp: the socket that got it takes its time from skb->tstamp.
	KernelStamp bool
	Token       uint64
	InnerNS     int64 // at the container's device
	OuterNS     int64 // at the NIC
	SyscallNS   int64 // start of the sending system call, end of the receiving one
	// skb->tstamp at the container's device and at the NIC.
	InnerStampNS, OuterStampNS int64
	Header                     []byte // IP header without options, and what follows it; valid as long as the record

	wall   time.Time
	header [len(bpfTareRecord{}.Header)]byte // what Header is of, in a record that was kept
}

// keep copies a record that is valid during a call only into one that stays.
func (r *Record) keep(to *Record) {
	*to = *r
	to.Header = to.header[:copy(to.header[:], r.Header)]
}

// read fills the record from what a program has written.
func (r *Record) read(raw *bpfTareRecord, c *clock) {
	*r = Record{
		Kind: Kind(raw.Kind), Status: Status(raw.Status), PID: raw.Pid, Len: raw.Len,
		GSO:         raw.Flags&flagGSO != 0,
		KernelStamp: raw.Flags&flagKernelStamp != 0,
		Token:       raw.Token,
		InnerNS:     int64(raw.InnerNs),
		OuterNS:     int64(raw.OuterNs),
		SyscallNS:   int64(raw.SyscallNs),
		Header:      raw.Header[:min(int(raw.HeaderLen), len(raw.Header))],
		wall:        c.wall(raw.InnerNs),
	}
	if raw.InnerStampNs != 0 {
		r.InnerStampNS = c.monotonic(raw.InnerStampNs)
	}
	if raw.OuterStampNs != 0 {
		r.OuterStampNS = c.monotonic(raw.OuterStampNs)
	}
}

// readDelivery is the same for the second record of a received packet.
func (r *Record) readDelivery(raw *bpfTareDelivery, c *clock) {
	*r = Record{
		Kind: Kind(raw.Kind), Token: raw.Token, PID: raw.Pid, SyscallNS: int64(raw.SyscallNs),
		KernelStamp: raw.Flags&flagKernelStamp != 0,
	}
	if raw.InnerStampNs != 0 {
		r.InnerStampNS = c.monotonic(raw.InnerStampNs)
	}
}
