package hops

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Timeline keeps single packets, to be drawn along the time in ui.perfetto.dev or chrome://tracing.
type Timeline struct {
	container string
	packets   []timelinePacket
	left      int // how many more were not kept
}

// maxTimeline bounds the file: that many packets are some 20 MB, which a browser still opens at once.
const maxTimeline = 10000

type timelinePacket struct {
	direction  Direction
	title      string
	startNS    int64
	endNS      int64
	incomplete Reason
	read       bool
	pid        uint32
	len        int
	hops       []timelineHop
}

type timelineHop struct {
	name, from, to  string
	startNS, endNS  int64
	inside, isTimed bool
	spentNS         int64
	device          string
}

// NewTimeline returns an empty one.
func NewTimeline(container string) *Timeline { return &Timeline{container: container} }

// Add keeps a trace, complete or not.
func (l *Timeline) Add(t *Trace) {
	if len(l.packets) >= maxTimeline {
		l.left++
		return
	}
	p := timelinePacket{
		direction: t.Direction, title: title(t), startNS: t.Points[0].TimeNS, endNS: t.Points[0].TimeNS,
		incomplete: t.Incomplete, read: t.Read, pid: t.PID, len: t.Len,
	}
	for i := 1; i < len(t.Points); i++ {
		from, to := t.Points[i-1], t.Points[i]
		// A stamp is good for a few dozen ns, and slices must not go back in time.
		from.TimeNS = max(from.TimeNS, p.endNS)
		to.TimeNS = max(to.TimeNS, from.TimeNS)
		p.endNS = to.TimeNS
		name, ok := hopName(from, to)
		if !ok {
			name = from.String() + " → " + to.String()
		}
		p.hops = append(p.hops, timelineHop{
			name: name, from: from.String(), to: to.String(), device: hopDevice(from, to),
			startNS: from.TimeNS, endNS: to.TimeNS, spentNS: from.SpentNS, isTimed: t.Timed,
			inside: t.Incomplete == "" && i > t.From && i <= t.To,
		})
	}
	l.packets = append(l.packets, p)
}

// title names a packet by what a person knows it by.
func title(t *Trace) string {
	p := &t.Packet
	name := p.ProtocolName()
	switch {
	case name == "":
		return fmt.Sprintf("protocol %d", p.Protocol)
	case p.EchoRequest():
		return fmt.Sprintf("%s echo request %d", name, p.Seq)
	case p.EchoReply():
		return fmt.Sprintf("%s echo reply %d", name, p.Seq)
	case p.SrcPort != 0 || p.DstPort != 0:
		return fmt.Sprintf("%s %d > %d", name, p.SrcPort, p.DstPort)
	}
	return name
}

// event is one of the Trace Event Format. Times are in us, and the file says that they are shown in ns.
type event struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	TimeUs   json.Number    `json:"ts,omitempty"`
	Duration json.Number    `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// number is a time in us with all of its ns.
func number(ns int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%03d", ns/1000, ns%1000))
}

// Write writes the file. Each direction is a process, and packets that are under way at the same time are on threads of
// their own, as slices of one thread must not overlap.
func (l *Timeline) Write(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprint(w, `{"displayTimeUnit":"ns","otherData":`)
	other, err := json.Marshal(map[string]any{"container": l.container, "packets": len(l.packets), "packets_left_out": l.left})
	if err != nil {
		return err
	}
	w.Write(other)
	fmt.Fprint(w, `,"traceEvents":[`)
	first := true
	put := func(e event) {
		text, marshalErr := json.Marshal(e)
		if marshalErr != nil && err == nil {
			err = marshalErr
		}
		if !first {
			w.WriteByte(',')
		}
		first = false
		w.WriteByte('\n')
		w.Write(text)
	}
	slices.SortStableFunc(l.packets, func(a, b timelinePacket) int { return cmp.Compare(a.startNS, b.startNS) })
	var busyUntil [2][]int64
	for i := range l.packets {
		p := &l.packets[i]
		lanes := &busyUntil[p.direction&1]
		lane := slices.IndexFunc(*lanes, func(until int64) bool { return until <= p.startNS })
		if lane < 0 {
			lane = len(*lanes)
			*lanes = append(*lanes, 0)
		}
		(*lanes)[lane] = p.endNS
		p.write(put, l.packets[0].startNS, lane+1)
	}
	for direction, lanes := range busyUntil {
		name := []string{"out of ", "into "}[direction] + l.container
		put(event{Name: "process_name", Phase: "M", Process: direction + 1, Args: map[string]any{"name": name}})
		put(event{Name: "process_sort_index", Phase: "M", Process: direction + 1, Args: map[string]any{"sort_index": direction}})
		for lane := range lanes {
			put(event{Name: "thread_name", Phase: "M", Process: direction + 1, Thread: lane + 1, Args: map[string]any{"name": "packets"}})
		}
	}
	fmt.Fprint(w, "\n]}\n")
	if err != nil {
		return err
	}
	return w.Flush()
}

func (p *timelinePacket) write(put func(event), originNS int64, lane int) {
	args := map[string]any{"bytes": p.len, "pid": p.pid, "read": p.read}
	if p.incomplete != "" {
		args["incomplete"] = string(p.incomplete)
	}
	process := int(p.direction&1) + 1
	put(event{Name: p.title, Phase: "X", Category: "packet", TimeUs: number(p.startNS - originNS), Duration: number(p.endNS - p.startNS),
		Process: process, Thread: lane, Args: args})
	for _, h := range p.hops {
		args := map[string]any{"from": h.from, "to": h.to, "subtracted": h.inside}
		if h.isTimed {
			args["tracer_ns"] = h.spentNS
		}
		name := h.name
		if h.device != "" && !strings.Contains(name, "→") {
			name += " " + h.device
		}
		put(event{Name: name, Phase: "X", Category: "hop", TimeUs: number(h.startNS - originNS), Duration: number(h.endNS - h.startNS),
			Process: process, Thread: lane, Args: args})
	}
}
