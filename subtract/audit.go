package subtract

import (
	"fmt"
	"io"
	"time"
)

// Audit compares what the programs saw with what devices and protocols counted by themselves, by direction and at both
// ends of a packet's way. Where the programs saw less, the kernel has kept packets from them: the missing samples are no
// losses of the network.
type Audit struct {
	// Of the container, both directions.
	DevicePackets uint64 `json:"device_packets"`
	Seen          uint64 `json:"seen"`
	// Segmented: the container sent packets that its device may have cut in several behind the programs' backs, so the
	// counts need not be equal.
	Segmented bool `json:"segmented,omitempty"`
	// Unseen is how many packets went unseen at the least, everywhere.
	Unseen uint64       `json:"missing"`
	Counts []AuditCount `json:"counts"`
	// Incomplete are the windows of time in which packets are known to have gone unseen.
	Incomplete []AuditWindow `json:"incomplete,omitempty"`
}

// AuditCount is one comparison over the whole run.
type AuditCount struct {
	Where     string `json:"where"` // container, or the NIC's name
	Direction string `json:"direction"`
	By        string `json:"by"` // devices, or protocols where GRO or XDP keep the devices' counts from being comparable
	Counted   uint64 `json:"counted"`
	Seen      uint64 `json:"seen"`
	Missing   uint64 `json:"missing"` // at the least
	// AtMost is the other bound, where segmentation or traffic during the reading leave it open.
	AtMost uint64 `json:"missing_at_most,omitempty"`
	// Loose: the device's counts are not kept packet by packet, so that a difference means nothing.
	Loose bool `json:"loose,omitempty"`
}

// AuditWindow is the time between two readings.
type AuditWindow struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Where     string    `json:"where"`
	Direction string    `json:"direction"`
	Missing   uint64    `json:"missing"`
}

// Missing is how many packets the programs did not see, as far as the counts can tell.
func (a Audit) Missing() uint64 { return a.Unseen }

// writeDoubts tells what went unseen, each line behind a prefix.
func (a Audit) writeDoubts(out io.Writer, prefix string) {
	for _, c := range a.Counts {
		if c.Missing == 0 || c.Loose {
			continue
		}
		place := c.Where
		if place == "container" {
			place = "the container"
		}
		fmt.Fprintf(out, "%saudit: %s at %s: its %s counted %d packets, the programs saw %d: %d went unseen\n", prefix,
			c.Direction, place, c.By, c.Counted, c.Seen, c.Missing)
	}
	if a.Unseen == 0 {
		return
	}
	const clock = "15:04:05"
	if n := len(a.Incomplete); n > 0 {
		fmt.Fprintf(out, "%saudit: incomplete windows: %d, from %s to %s; what is told of packets there is right, but others lack\n",
			prefix, n, a.Incomplete[0].From.Format(clock), a.Incomplete[n-1].To.Format(clock))
	}
	fmt.Fprintf(out, "%saudit: this kernel kept programs from running; the network has not lost these packets ('tare doctor' says more)\n", prefix)
}

// auditEvery is a window's length when nobody asks for one earlier.
const auditEvery = time.Second

// auditPause is the shortest time between two readings: each costs some 0.3 ms of one CPU, though none of a packet's.
const auditPause = 100 * time.Millisecond

// maxWindows bounds the list of incomplete windows; what comes later makes the last one longer.
const maxWindows = 1000

// auditor follows the counts of a session.
type auditor struct {
	counter  *counter
	first    reading
	last     reading
	windows  []AuditWindow
	previous bool // the window before the last one was incomplete
	current  bool // ... and the last one
}

func newAuditor(s *Session) (*auditor, error) {
	c, err := newCounter(s)
	if err != nil {
		return nil, err
	}
	a := &auditor{counter: c}
	if a.first, err = c.read(); err != nil {
		c.close()
		return nil, err
	}
	a.last = a.first
	return a, nil
}

// advance ends the present window.
func (a *auditor) advance() error {
	now, err := a.counter.read()
	if err != nil {
		return err
	}
	incomplete := false
	for _, p := range a.compared(now) {
		if missing := a.missing(p, a.last, now); missing.low > 0 && !a.loose(p) {
			incomplete = true
			a.note(AuditWindow{a.last.at, now.at, a.where(p), direction(p), uint64(missing.low)})
		}
	}
	a.previous, a.current = a.current, incomplete
	a.last = now
	return nil
}

// note adds a window, or lengthens the one before it that it continues.
func (a *auditor) note(w AuditWindow) {
	for i := len(a.windows) - 1; i >= 0; i-- {
		other := &a.windows[i]
		if other.Where != w.Where || other.Direction != w.Direction {
			continue
		}
		if other.To.Equal(w.From) || len(a.windows) >= maxWindows {
			other.To = w.To
			other.Missing += w.Missing
			return
		}
		break
	}
	a.windows = append(a.windows, w)
}

// missing is how many packets went unseen between two readings, within bounds.
func (a *auditor) missing(p place, from, to reading) offset {
	m := offset{to.offsets[p].low - from.offsets[p].high, to.offsets[p].high - from.offsets[p].low}
	// With segmentation or merging in between a device may count each segment, or not.
	extra := int64(to.extra[p] - from.extra[p])
	switch {
	case p == containerOut && !a.counter.segmentedOut:
	case p >= firstNIC && direction(p) == egress && !a.counter.segmentedAtNIC && !a.loose(p):
	default:
		m.low -= extra
	}
	return m
}

const egress, ingress = "egress", "ingress"

func direction(p place) string {
	if p == containerOut || p >= firstNIC && (p-firstNIC)%placesPerNIC == 0 {
		return egress
	}
	return ingress
}

func (a *auditor) where(p place) string {
	if p < firstNIC {
		return "container"
	}
	return a.counter.session.nics[(p-firstNIC)/placesPerNIC].Name
}

// loose reports whether the count of a place does not follow each packet at once: a NIC's hardware counts by itself, and
// its driver asks it now and then.
func (a *auditor) loose(p place) bool {
	return p >= firstNIC && !a.counter.exactNICs[(p-firstNIC)/placesPerNIC]
}

// compared are the places whose counts can be compared up to a reading.
func (a *auditor) compared(now reading) []place {
	places := []place{containerOut}
	s := a.counter.session
	switch {
	case !s.rxCounts: // arrivals are known only when they are read
	case s.xdp || now.extra[containerIn] > a.first.extra[containerIn]:
		places = append(places, containerInIP)
	default:
		places = append(places, containerIn)
	}
	for i := range s.nics {
		p := firstNIC + placesPerNIC*place(i)
		if now.counted[p]+now.counted[p+1] > 0 {
			places = append(places, p, p+1)
		}
	}
	return places
}

// report compares the counts since the session began. A difference that may come from traffic in the instant of the
// readings is none.
func (a *auditor) report() Audit {
	audit := Audit{Incomplete: a.windows, Segmented: a.last.extra[containerOut] > a.first.extra[containerOut]}
	for _, p := range a.compared(a.last) {
		counted, seen := a.last.counted[p]-a.first.counted[p], a.last.seen[p]-a.first.seen[p]
		missing := a.missing(p, a.first, a.last)
		c := AuditCount{
			Where: a.where(p), Direction: direction(p), By: "devices", Counted: counted, Seen: seen, Loose: a.loose(p),
			Missing: uint64(max(0, missing.low)), AtMost: uint64(max(0, missing.high)),
		}
		if p == containerInIP {
			c.By = "protocols"
		}
		if c.AtMost == c.Missing {
			c.AtMost = 0
		}
		if missing.low <= 0 && missing.high >= 0 && a.last.extra[p] == a.first.extra[p] {
			c.Seen, c.AtMost = counted, 0 // what passed in the instant of the readings
		}
		audit.Counts = append(audit.Counts, c)
		if p < firstNIC {
			audit.DevicePackets += c.Counted
			audit.Seen += c.Seen
		}
		if !c.Loose {
			audit.Unseen += c.Missing
		}
	}
	return audit
}

// Audit compares the counts since the session began.
func (s *Session) Audit() (Audit, error) {
	s.auditMu.Lock()
	defer s.auditMu.Unlock()
	if err := s.auditor.advance(); err != nil {
		return s.auditor.report(), fmt.Errorf("comparing what was seen with what was counted: %w", err)
	}
	return s.auditor.report(), nil
}

// auditRegularly ends a window every second.
func (s *Session) auditRegularly(done <-chan struct{}) {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			s.auditMu.Lock()
			_ = s.auditor.advance() // a target that is gone is told of at the end
			s.auditMu.Unlock()
		}
	}
}

// Incomplete reports whether packets are known to have gone unseen lately: in the window that ends now, or in the one
// before it.
func (s *Session) Incomplete() bool {
	s.auditMu.Lock()
	defer s.auditMu.Unlock()
	if a := s.auditor; time.Since(a.last.at) >= auditPause {
		_ = a.advance()
	}
	return s.auditor.current || s.auditor.previous
}
