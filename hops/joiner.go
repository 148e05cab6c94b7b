package hops

import (
	"math"
	"slices"
	"time"

	"tare/mace"
)

// joinFor is how long a received packet waits for the program that reads it. Those that take longer, and those that
// nobody reads, such as ACKs, are shown without.
const joinFor = time.Second

// joiner makes traces of what the programs tell: a received packet's two records become one trace.
type joiner struct {
	devices *devices
	clock   *clock
	path    mace.Path
	emit    func(*Trace)
	// Traces that begin earlier or end later are none: not all programs were there.
	sinceNS, untilNS int64
	waiting          map[uint64]*bpfHopsTrace
	order            []uint64
	current          Trace
}

func newJoiner(d *devices, c *clock, path mace.Path, emit func(*Trace)) *joiner {
	return &joiner{devices: d, clock: c, path: path, emit: emit, untilNS: math.MaxInt64, waiting: map[uint64]*bpfHopsTrace{}}
}

// trace takes a trace; raw is the caller's.
func (j *joiner) trace(raw *bpfHopsTrace) {
	if raw.Kind != kindIngress || raw.Token == 0 {
		j.finish(raw, nil)
		return
	}
	kept := *raw
	if _, twice := j.waiting[raw.Token]; !twice {
		j.order = append(j.order, raw.Token)
	}
	j.waiting[raw.Token] = &kept
}

func (j *joiner) delivery(raw *bpfHopsDelivery) {
	if arrival := j.waiting[raw.Token]; arrival != nil {
		delete(j.waiting, raw.Token)
		j.finish(arrival, raw)
	}
}

// expire gives up waiting for the readers of old packets. A token is the time at the container's device.
func (j *joiner) expire(nowNS int64) {
	n := 0
	for ; n < len(j.order) && nowNS-int64(j.order[n]) > int64(joinFor); n++ {
		j.giveUp(j.order[n])
	}
	j.order = slices.Delete(j.order, 0, n)
}

func (j *joiner) flush() {
	for _, token := range j.order {
		j.giveUp(token)
	}
	j.order = j.order[:0]
}

func (j *joiner) giveUp(token uint64) {
	if arrival := j.waiting[token]; arrival != nil {
		delete(j.waiting, token)
		j.finish(arrival, nil)
	}
}

const kindIngress = 2 // enum hops_kind

// finish emits the trace of a record and, for a received packet that was read, its delivery.
func (j *joiner) finish(raw *bpfHopsTrace, delivery *bpfHopsDelivery) {
	t := &j.current
	*t = Trace{Len: int(raw.Len), PID: raw.Pid, Timed: raw.Flags&flagTimed != 0, Points: t.Points[:0]}
	if raw.Kind == kindIngress {
		t.Direction = Ingress
	}
	header := raw.Header[:min(int(raw.HeaderLen), len(raw.Header))]
	t.Packet, _ = mace.ParsePacket(header, t.Len)
	torn := raw.Status == statusTorn || !j.points(t, raw, delivery)
	n := len(t.Points)
	if n == 0 || t.Points[0].TimeNS < j.sinceNS || t.Points[n-1].TimeNS > j.untilNS {
		return
	}
	t.Time = j.clock.wall(t.Points[0].TimeNS)
	if delivery != nil {
		t.Read, t.PID = true, delivery.Pid
		t.KernelStamp = delivery.Flags&flagKernelStamp != 0
	}
	switch {
	case torn:
		t.Incomplete = ReasonTorn
	case raw.Status == statusMerged:
		t.Incomplete = ReasonMerged
	default:
		t.From, t.To, t.Incomplete = interval(j.path, t)
		if t.Incomplete == ReasonNoEnd && raw.Status == statusUnfinished {
			t.Incomplete = ReasonUnfinished
		}
	}
	j.emit(t)
}

// points fills in the trace's points; false: they cannot all be of one packet.
func (j *joiner) points(t *Trace, raw *bpfHopsTrace, delivery *bpfHopsDelivery) bool {
	n := min(int(raw.Count), len(raw.Points))
	t.LostPoints = int(raw.Count) - n
	sane := true
	for i, p := range raw.Points[:n] {
		if p.Tag != raw.Tag || i > 0 && p.TimeNs < raw.Points[i-1].TimeNs {
			sane = false
		}
		point := Point{Event(p.Event & eventMask), j.device(p), int64(p.TimeNs), int64(p.SpentNs)}
		if t.Direction == Ingress {
			for which, stamp := range raw.StampNs {
				if stamp == 0 || int(raw.StampAt[which]) != i {
					continue
				}
				if which == 1 && delivery != nil && delivery.StampNs != 0 {
					stamp = delivery.StampNs // what the program is given
				}
				if j.stamp(t, &point, stamp) {
					break
				}
			}
		}
		if point.Event != 0 {
			t.Points = append(t.Points, point)
		}
	}
	if delivery != nil {
		t.Points = append(t.Points, Point{SKBCopy, none, int64(delivery.CopyNs), int64(delivery.SpentNs)})
		if delivery.ExitNs != 0 {
			t.Points = append(t.Points, Point{SysExit, none, int64(delivery.ExitNs), 0})
		}
	}
	return sane
}

// stampSlackNS is how far a stamp, converted from one clock to the other, may seem to lie outside of where it was taken.
const stampSlackNS = 1000

// stamp adds the point at which the kernel stamped a packet: between the last point and seen, the first one that saw
// the stamp. netif_rx is called right after its stamp is taken, by the same function, so that the two are one point.
func (j *joiner) stamp(t *Trace, seen *Point, stampNS uint64) bool {
	at := Point{Stamp, seen.Device, j.clock.monotonic(stampNS), 0}
	if at.TimeNS > seen.TimeNS+stampSlackNS {
		return false // the clock was set
	}
	if n := len(t.Points); n > 0 && at.TimeNS < t.Points[n-1].TimeNS-stampSlackNS {
		return false // the clock was set, or the stamp is an earlier one: macvlan keeps the NIC's
	}
	if seen.Event == NetifRx && !names(j.path, mace.NetifRx) {
		at.SpentNS = seen.SpentNS
		seen.Event = 0
	}
	t.Points = append(t.Points, at)
	return true
}

func (j *joiner) device(p bpfHopsPoint) *Device {
	return j.devices.device(p.Event&eventContainer != 0, int(p.Ifindex))
}
