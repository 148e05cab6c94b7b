package hops

import (
	"fmt"
	"time"
)

// Account says where all of the container's packets went, and proves by the devices' own counts that all were seen.
type Account struct {
	DeviceTx uint64 `json:"device_tx"` // that the programs saw the container send
	DeviceRx uint64 `json:"device_rx"` // ... and receive
	// Counted by the devices themselves. More than seen: the kernel has kept packets from the programs.
	CountedTx uint64 `json:"counted_tx"`
	CountedRx uint64 `json:"counted_rx"`
	// OnlyRead: DeviceRx is of packets that programs have read. A macvlan device takes its packets from the NIC unseen.
	OnlyRead bool `json:"only_read,omitempty"`

	EgressStarted    uint64 `json:"egress_started"`
	EgressFinished   uint64 `json:"egress_finished"`
	EgressReplaced   uint64 `json:"egress_replaced"`
	EgressRejected   uint64 `json:"egress_rejected"`
	IngressTraced    uint64 `json:"ingress_traced"`
	IngressUnstarted uint64 `json:"ingress_unstarted"`
	Delivered        uint64 `json:"delivered"`
	PendingOverflow  uint64 `json:"pending_overflow"`
	Malformed        uint64 `json:"malformed"`
	RingDropped      uint64 `json:"ring_dropped"`
	// SkippedRuns of programs: the kernel runs none on top of itself, when a packet's interrupt comes while another
	// packet is at the same event. That point is missing in a trace then.
	SkippedRuns uint64 `json:"skipped_runs"`
}

// Account reads the counts of a finished session.
func (s *Session) Account() (Account, error) {
	var perCPU []bpfHopsCounters
	if err := s.objects.Maps["hops_counts"].Lookup(uint32(0), &perCPU); err != nil {
		return Account{}, fmt.Errorf("reading counters: %w", err)
	}
	a := Account{CountedTx: s.ended.tx - min(s.began.tx, s.ended.tx), CountedRx: s.ended.rx - min(s.began.rx, s.ended.rx), OnlyRead: s.sharing}
	for _, c := range perCPU {
		a.DeviceTx += c.DeviceTx
		a.DeviceRx += c.DeviceRx
		a.EgressStarted += c.EgressStarted
		a.EgressFinished += c.EgressFinished
		a.EgressReplaced += c.EgressReplaced
		a.EgressRejected += c.EgressRejected
		a.IngressTraced += c.IngressTraced
		a.IngressUnstarted += c.IngressUnstarted
		a.Delivered += c.Delivered
		a.PendingOverflow += c.PendingOverflow
		a.Malformed += c.Malformed
		a.RingDropped += c.RingDropped
	}
	for name, program := range s.objects.Programs {
		stats, err := program.Stats()
		if err != nil {
			return a, fmt.Errorf("reading statistics of the program at %s: %w", name, err)
		}
		a.SkippedRuns += stats.RecursionMisses
	}
	return a, nil
}

// Report sums up a finished session, whose traces w has; as is the path's name in it.
func (s *Session) Report(w *Waterfall, as string) (*Report, error) {
	account, err := s.Account()
	if err != nil {
		return nil, err
	}
	r := &Report{
		Container: s.target.Name, NICs: s.NICNames(), Path: as, Seconds: s.finished.Sub(s.opened).Round(time.Millisecond).Seconds(),
		Egress: w.Summary(Egress), Ingress: w.Summary(Ingress), Account: account,
	}
	// These have no trace: only the programs have counted them.
	if n := int(account.IngressUnstarted); n > 0 {
		r.Ingress.Unexplained.Incomplete[ReasonUnstarted] = n
	}
	return r, nil
}

// audit compares the counts. The programs are there a little longer than between the two readings of the devices'
// counts, so that more seen than counted is nothing.
func (a Account) audit() string {
	counted, saw := a.CountedTx, min(a.DeviceTx, a.CountedTx)
	if !a.OnlyRead {
		counted, saw = counted+a.CountedRx, saw+min(a.DeviceRx, a.CountedRx)
	}
	return fmt.Sprintf("audit: devices counted %d packets, programs saw %d; lost: %d traces, %d points", counted, saw, a.RingDropped, a.SkippedRuns)
}
