package hops

import (
	"slices"
	"strings"

	"tare/mace"
)

// Waterfall adds up traces, hop by hop. It is for one goroutine at a time.
type Waterfall struct {
	path mace.Path
	ways [2]way
}

// NewWaterfall returns an empty one for traces of sessions with this path.
func NewWaterfall(path mace.Path) *Waterfall {
	return &Waterfall{path: path}
}

// way is one direction.
type way struct {
	rows       []*row // in the packets' order
	byKey      map[hopKey]*row
	correction histogram
	tracer     sharedTime // of the whole interval
	incomplete map[Reason]int
	routes     map[string]int
}

type hopKey struct {
	from, to             Event
	fromDevice, toDevice *Device
}

// row is one hop of all packets.
type row struct {
	from, to    Point
	times       histogram
	insideNS    int64 // of the packets for which it lies between the path's ends
	insideCount int
	tracer      sharedTime
}

// sharedTime is a mean in the making.
type sharedTime struct {
	ns    int64
	count int
}

func (s sharedTime) mean() float64 {
	if s.count == 0 {
		return 0
	}
	return float64(s.ns) / float64(s.count)
}

// maxRoutes bounds how many different ways are told apart: what a container sends must not fill the memory.
const maxRoutes = 64

// maxRows bounds the rows in the same way. Beyond it hops are counted as the last row's.
const maxRows = 256

// Add adds a trace. Only one with both ends of the path has hops to add; the others are counted by what they lack.
func (w *Waterfall) Add(t *Trace) {
	d := &w.ways[t.Direction&1]
	if d.byKey == nil {
		d.byKey, d.incomplete, d.routes = map[hopKey]*row{}, map[Reason]int{}, map[string]int{}
	}
	if t.Incomplete != "" {
		d.incomplete[t.Incomplete]++
		return
	}
	d.correction.add(t.CorrectionNS())
	if route := t.route(); d.routes[route] > 0 || len(d.routes) < maxRoutes {
		d.routes[route]++
	} else {
		d.routes["others"]++
	}
	var last *row
	insideSpentNS := int64(0)
	for i := 1; i < len(t.Points); i++ {
		from, to := t.Points[i-1], t.Points[i]
		r := d.row(from, to, last, t.Points[i:])
		ns := to.TimeNS - from.TimeNS
		r.times.add(ns)
		inside := i > t.From && i <= t.To
		if inside {
			r.insideNS += ns
			r.insideCount++
		}
		if t.Timed {
			r.tracer.ns += from.SpentNS
			r.tracer.count++
			if inside {
				insideSpentNS += from.SpentNS
			}
		}
		last = r
	}
	if t.Timed {
		d.tracer.ns += insideSpentNS
		d.tracer.count++
	}
}

// row is that of a hop. A new one takes its place behind the one before it in this trace, or else before the first one
// after it that is known.
func (d *way) row(from, to Point, last *row, rest []Point) *row {
	key := hopKey{from.Event, to.Event, from.Device, to.Device}
	if r := d.byKey[key]; r != nil {
		return r
	}
	if len(d.rows) >= maxRows {
		return d.rows[len(d.rows)-1]
	}
	r := &row{from: from, to: to}
	d.byKey[key] = r
	at := len(d.rows)
	if last != nil {
		at = slices.Index(d.rows, last) + 1
	} else {
		for i := 1; i < len(rest); i++ {
			next := d.byKey[hopKey{rest[i-1].Event, rest[i].Event, rest[i-1].Device, rest[i].Device}]
			if next != nil {
				at = slices.Index(d.rows, next)
				break
			}
		}
	}
	d.rows = slices.Insert(d.rows, at, r)
	return r
}

// route is the chain of devices that a packet passed.
func (t *Trace) route() string {
	var names []string
	for i, p := range t.Points {
		if p.Device != none && (i == 0 || len(names) == 0 || names[len(names)-1] != p.Device.Name) {
			names = append(names, p.Device.Name)
		}
	}
	return strings.Join(names, " → ")
}

// Packets is how many packets have been added that have both ends of the path.
func (w *Waterfall) Packets() int { return w.ways[0].correction.count + w.ways[1].correction.count }
