package mace

import (
	"time"
)

// Passage is one packet's way between the container and a NIC, as the engine's path measures it.
type Passage struct {
	Packet
	Direction   Kind // Egress or Ingress
	Status      Status
	Time        time.Time // at the container's device
	PID         uint32    // who sent or received it, in the host's numbers; 0: the kernel, or not known
	Len         uint32
	GSO         bool
	KernelStamp bool // ended at skb->tstamp, because the socket that got it takes its time there
	Delivered   bool // a program has read it
	// The path's ends, in ns of CLOCK_MONOTONIC. Unless Status is Matched they are only what was seen: 0 or a guess.
	InnerNS, OuterNS int64
}

// LatencyNS is the time between the path's ends; only a Matched passage has one.
func (p *Passage) LatencyNS() int64 {
	if p.Status != Matched {
		return 0
	}
	if p.Direction == Egress {
		return p.OuterNS - p.InnerNS
	}
	return p.InnerNS - p.OuterNS
}

// undeliveredAfter bounds how long a received packet waits for its program. ACKs and the like have none; a program
// that polls once in a while reads late, and its packet then counts as not delivered.
const undeliveredAfter = 5 * time.Second

// maxAgeNS is max_age_ns in bpf/path.h: no packet takes longer between two devices.
const maxAgeNS = int64(time.Second)

// maxUndelivered bounds how many such packets are remembered.
const maxUndelivered = 1 << 17

// Joiner makes passages out of a namespace's records: where the path asks for it, a received packet's two records
// become one.
type Joiner struct {
	path    Path
	plan    plan
	emit    func(*Passage)
	waiting map[uint64]*Record // by token
	order   []uint64           // tokens as they came; those joined meanwhile are skipped
	free    []*Record          // joined ones, to be used again: a flood must not keep the garbage collector busy
	passage Passage
}

// NewJoiner calls emit for each passage. A passage is valid during that call only.
func NewJoiner(path Path, emit func(*Passage)) *Joiner {
	return &Joiner{path: path, plan: path.plan(), emit: emit, waiting: map[uint64]*Record{}}
}

// Add takes the next record.
func (j *Joiner) Add(r *Record) {
	switch r.Kind {
	case Egress:
		j.finish(r, nil)
	case Ingress:
		// One that was not seen at a NIC has no delivery record either.
		if j.plan.delivery == 0 || r.Status == Unstarted {
			j.finish(r, nil)
			return
		}
		var kept *Record
		if n := len(j.free); n > 0 {
			kept, j.free = j.free[n-1], j.free[:n-1]
		} else {
			kept = new(Record)
		}
		r.keep(kept)
		j.waiting[r.Token] = kept
		j.order = append(j.order, r.Token)
		j.expire(r.InnerNS)
	case Delivery:
		// Several sockets may read one packet, and one socket may peek first: the first reading counts.
		if arrival := j.waiting[r.Token]; arrival != nil {
			j.join(arrival, r)
		}
	}
}

// join emits a received packet, whose delivery may be nil.
func (j *Joiner) join(arrival, delivery *Record) {
	delete(j.waiting, arrival.Token)
	j.finish(arrival, delivery)
	j.free = append(j.free, arrival)
}

func (j *Joiner) expire(nowNS int64) {
	for len(j.order) > 0 {
		arrival := j.waiting[j.order[0]]
		if arrival != nil {
			if len(j.waiting) <= maxUndelivered && nowNS-arrival.InnerNS < int64(undeliveredAfter) {
				return
			}
			j.join(arrival, nil)
		}
		j.order = j.order[1:]
	}
}

// Flush gives up waiting for deliveries.
func (j *Joiner) Flush() {
	for _, token := range j.order {
		if arrival := j.waiting[token]; arrival != nil {
			j.join(arrival, nil)
		}
	}
	j.order = j.order[:0]
}

// finish emits the passage of an egress record, or of an ingress record and its delivery, which may be nil.
func (j *Joiner) finish(r, delivery *Record) {
	p := &j.passage
	*p = Passage{Direction: r.Kind, Status: r.Status, Time: r.wall, PID: r.PID, Len: r.Len, GSO: r.GSO}
	packet, ok := ParsePacket(r.Header, int(r.Len))
	if !ok {
		return // the programs identified it by this header, so this cannot be
	}
	p.Packet = packet
	if r.Kind == Egress {
		p.InnerNS, p.OuterNS = r.InnerNS, r.OuterNS
		if j.plan.egressFromSyscall {
			p.InnerNS = r.SyscallNS
			if r.SyscallNS == 0 && p.Status == Matched {
				p.Status = NoSyscall
			}
		}
	} else {
		if delivery != nil {
			p.Delivered, p.PID, p.KernelStamp = true, delivery.PID, delivery.KernelStamp
		}
		j.ingressEnds(p, r, delivery)
	}
	if p.Status == Matched && p.LatencyNS() < 0 {
		p.Status = Ambiguous // the clock that stamps packets was set meanwhile
	}
	j.emit(p)
}

// ingressEnds is the twin of ingress_latency in bpf/ingress.h.
func (j *Joiner) ingressEnds(p *Passage, r, delivery *Record) {
	p.OuterNS, p.InnerNS = r.OuterNS, r.InnerNS
	if p.Status != Matched {
		return
	}
	stamped := j.plan.ingressInner == Stamp || j.plan.bySocket && p.KernelStamp
	switch {
	case stamped:
		p.InnerNS = r.InnerStampNS
		if delivery != nil {
			p.InnerNS = delivery.InnerStampNS // what the program was given
		}
		if j.plan.stampPair && r.OuterStampNS != 0 {
			p.OuterNS = r.OuterStampNS
		}
		if p.InnerNS == 0 || p.OuterNS == 0 || p.InnerNS-p.OuterNS > maxAgeNS {
			p.Status = Ambiguous // not stamped, or the clock was set: nobody knows what time the program was given
		}
	case j.plan.delivery == SysExit:
		if delivery == nil || delivery.SyscallNS == 0 {
			p.Status = NoSyscall
			return
		}
		p.InnerNS = delivery.SyscallNS
	}
}
