package mace

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// echoHeader is a record's header: an echo request or reply of this number.
func echoHeader(t testing.TB, direction Kind, seq uint16) []byte {
	if direction == Egress {
		return wire(t, fmt.Sprintf("4500 0054 0000 4000 40 01 0000 0a4d0002 0a4e0002 0800 0000 0102 %04x", seq))
	}
	return wire(t, fmt.Sprintf("4500 0054 0000 4000 40 01 0000 0a4e0002 0a4d0002 0000 0000 0102 %04x", seq))
}

// join gives records to a joiner of this path and returns its passages, the last ones by Flush.
func join(t *testing.T, path string, records ...Record) []Passage {
	t.Helper()
	parsed, err := ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	var passages []Passage
	j := NewJoiner(parsed, func(p *Passage) { passages = append(passages, *p) })
	for i := range records {
		r := records[i]
		if r.Header == nil && r.Kind != Delivery {
			r.Header = echoHeader(t, r.Kind, uint16(i))
		}
		r.Len = 84
		j.Add(&r)
	}
	j.Flush()
	if len(j.waiting) != 0 || len(j.order) != 0 {
		t.Errorf("after Flush %d records wait", len(j.waiting))
	}
	return passages
}

func TestJoinerEnds(t *testing.T) {
	arrival := Record{Kind: Ingress, Token: 1, OuterNS: 100, InnerNS: 110, OuterStampNS: 95, InnerStampNS: 108}
	with := func(change func(*Record)) Record { r := arrival; change(&r); return r }
	delivery := Record{Kind: Delivery, Token: 1, SyscallNS: 150, PID: 7}
	stamped := Record{Kind: Delivery, Token: 1, SyscallNS: 150, PID: 7, KernelStamp: true, InnerStampNS: 108}
	stampedAt := func(ns int64) Record { r := stamped; r.InnerStampNS = ns; return r }
	departure := Record{Kind: Egress, InnerNS: 100, OuterNS: 130, SyscallNS: 80, PID: 7}
	for _, tt := range []struct {
		name, path   string
		records      []Record
		status       Status
		latency      int64
		inner, outer int64
		delivered    bool
	}{
		{"egress at devices", "inner-dev", []Record{departure}, Matched, 30, 100, 130, false},
		{"egress from a call", "syscalls", []Record{departure}, Matched, 50, 80, 130, false},
		{"egress by the kernel itself", "syscalls", []Record{{Kind: Egress, InnerNS: 100, OuterNS: 130}}, NoSyscall, 0, 0, 130, false},
		{"egress torn", "syscalls", []Record{{Kind: Egress, Status: Ambiguous, InnerNS: 100, OuterNS: 130}}, Ambiguous, 0, 0, 130, false},
		{"egress back in time", "inner-dev", []Record{{Kind: Egress, InnerNS: 131, OuterNS: 130}}, Ambiguous, 0, 131, 130, false},

		{"ingress at devices", "inner-dev", []Record{arrival}, Matched, 10, 110, 100, false},
		{"ingress to a call", "syscalls", []Record{arrival, delivery}, Matched, 50, 150, 100, true},
		{"ingress that nobody reads", "syscalls", []Record{arrival}, NoSyscall, 0, 110, 100, false},
		{"ingress read by no call", "syscalls", []Record{arrival, {Kind: Delivery, Token: 1}}, NoSyscall, 0, 110, 100, true},
		{"ingress not seen at the NIC", "syscalls", []Record{{Kind: Ingress, Status: Unstarted, InnerNS: 110}, delivery}, Unstarted, 0, 110, 0, false},
		{"ingress merged", "syscalls", []Record{with(func(r *Record) { r.Status = Merged }), delivery}, Merged, 0, 110, 100, true},
		{"ingress back in time", "inner-dev", []Record{with(func(r *Record) { r.InnerNS = 99 })}, Ambiguous, 0, 99, 100, false},

		{"wire to userspace", "wire", []Record{arrival, delivery}, Matched, 50, 150, 100, true},
		{"wire to a stamp", "wire", []Record{arrival, stamped}, Matched, 8, 108, 100, true},
		{"wire to a stamp that was not made", "wire", []Record{arrival, stampedAt(0)}, Ambiguous, 0, 0, 100, true},
		{"wire to a stamp before its start", "wire", []Record{arrival, stampedAt(90)}, Ambiguous, 0, 90, 100, true},
		{"wire to a stamp that was made behind the device", "wire", []Record{with(func(r *Record) { r.InnerStampNS = 0 }), stamped}, Matched, 8, 108, 100, true},
		{"bare metal, userspace", "bare-metal", []Record{arrival, delivery}, Matched, 10, 110, 100, true},
		{"bare metal, nobody reads", "bare-metal", []Record{arrival}, Matched, 10, 110, 100, false},
		{"bare metal, stamp", "bare-metal", []Record{arrival, stamped}, Matched, 13, 108, 95, true},
		// It would have been made just behind the event at the NIC.
		{"bare metal, no stamp at the NIC", "bare-metal", []Record{with(func(r *Record) { r.OuterStampNS = 0 }), stamped}, Matched, 8, 108, 100, true},
		// A stamp in another clock, as local TCP leaves it: ingress_latency refuses what is longer than max_age_ns.
		{"bare metal, decades", "bare-metal", []Record{with(func(r *Record) { r.OuterStampNS = -17e17 }), stamped}, Ambiguous, 0, 108, -17e17, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := join(t, tt.path, tt.records...)
			if len(got) != 1 {
				t.Fatalf("%d passages, want 1", len(got))
			}
			p := got[0]
			if p.Status != tt.status || p.LatencyNS() != tt.latency || p.Delivered != tt.delivered {
				t.Errorf("%s, %d ns, delivered %t; want %s, %d ns, %t", p.Status, p.LatencyNS(), p.Delivered, tt.status, tt.latency, tt.delivered)
			}
			if p.Status == Matched && (p.InnerNS != tt.inner || p.OuterNS != tt.outer) {
				t.Errorf("ends %d and %d, want %d and %d", p.InnerNS, p.OuterNS, tt.inner, tt.outer)
			}
			if p.Status == Matched && p.Direction == Ingress && p.Delivered && p.PID != 7 {
				t.Errorf("read by process %d, want 7", p.PID)
			}
		})
	}
}

// One packet may be read several times: by a peek, or by several raw sockets. The first reading counts.
func TestJoinerFirstReadingCounts(t *testing.T) {
	got := join(t, "syscalls",
		Record{Kind: Ingress, Token: 1, OuterNS: 100, InnerNS: 110},
		Record{Kind: Delivery, Token: 1, SyscallNS: 150, PID: 1},
		Record{Kind: Delivery, Token: 1, SyscallNS: 190, PID: 2},
		Record{Kind: Delivery, Token: 99, SyscallNS: 190, PID: 3}, // of before activation
		Record{Kind: Ingress, Token: 2, OuterNS: 200, InnerNS: 210},
		Record{Kind: Delivery, Token: 2, SyscallNS: 250, PID: 4})
	if len(got) != 2 || got[0].PID != 1 || got[0].LatencyNS() != 50 || got[1].PID != 4 || got[1].LatencyNS() != 50 {
		t.Errorf("%+v", got)
	}
}

func TestJoinerExpiry(t *testing.T) {
	path, err := ParsePath("syscalls")
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint32
	var statuses []Status
	j := NewJoiner(path, func(p *Passage) { seqs = append(seqs, p.Seq); statuses = append(statuses, p.Status) })
	add := func(kind Kind, token uint64, at time.Duration) {
		j.Add(&Record{Kind: kind, Token: token, OuterNS: int64(at) - 10, InnerNS: int64(at), SyscallNS: int64(at) + 10, Len: 84,
			Header: echoHeader(t, Ingress, uint16(token))})
	}
	add(Ingress, 1, time.Second)
	add(Ingress, 2, 2*time.Second)
	add(Delivery, 2, 2*time.Second)
	add(Ingress, 3, undeliveredAfter+time.Second-1)
	if !slices.Equal(seqs, []uint32{2}) {
		t.Errorf("before its time: %v", seqs)
	}
	add(Ingress, 4, undeliveredAfter+time.Second)
	if !slices.Equal(seqs, []uint32{2, 1}) || statuses[1] != NoSyscall {
		t.Errorf("at its time: %v %v", seqs, statuses)
	}
	add(Delivery, 1, undeliveredAfter+time.Second) // too late
	j.Flush()
	if !slices.Equal(seqs, []uint32{2, 1, 3, 4}) {
		t.Errorf("in the end: %v", seqs)
	}
}

// Packets that no program reads must not fill the memory, however fast they come.
func TestJoinerBound(t *testing.T) {
	path, err := ParsePath("syscalls")
	if err != nil {
		t.Fatal(err)
	}
	passages := 0
	j := NewJoiner(path, func(*Passage) { passages++ })
	header := echoHeader(t, Ingress, 1)
	const n = maxUndelivered + 1000
	for i := range n {
		j.Add(&Record{Kind: Ingress, Token: uint64(i) + 1, OuterNS: 1, InnerNS: 2, Len: 84, Header: header})
		if len(j.waiting) > maxUndelivered+1 {
			t.Fatalf("%d records wait", len(j.waiting))
		}
	}
	if passages != n-maxUndelivered {
		t.Errorf("%d passages of %d records, and %d may wait", passages, n, maxUndelivered)
	}
	j.Flush()
	if passages != n {
		t.Errorf("%d passages of %d records", passages, n)
	}
}

func TestStatusNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Matched; s < statusCount; s++ {
		if name := s.String(); name == "" || seen[name] {
			t.Errorf("status %d is named %q", s, name)
		}
		seen[s.String()] = true
	}
	if Status(math.MaxUint8).String() == "" || Kind(math.MaxUint8).String() == "" {
		t.Error("a value from a damaged record has no name")
	}
}
