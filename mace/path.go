package mace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Event is a set of tracepoints; a point of a path names one, or several of which the first to happen counts.
type Event uint32

// The events that a path can name. Their values are those of enum tare_event in bpf/tare.h.
const (
	NetDevQueue Event = 1 << iota
	NetDevStartXmit
	NetDevXmit
	NAPIGROReceive
	NAPIGROFrags
	NetifRx
	NetifReceiveSKB
	SKBCopy
	SysEnter
	SysExit
	// Stamp is no tracepoint but skb->tstamp, the time that SO_TIMESTAMP reports.
	Stamp
)

var eventNames = map[string]Event{
	"net_dev_queue":           NetDevQueue,
	"net_dev_start_xmit":      NetDevStartXmit,
	"net_dev_xmit":            NetDevXmit,
	"napi_gro_receive_entry":  NAPIGROReceive,
	"napi_gro_frags_entry":    NAPIGROFrags,
	"netif_rx":                NetifRx,
	"netif_receive_skb":       NetifReceiveSKB,
	"skb_copy_datagram_iovec": SKBCopy,
	"sys_enter":               SysEnter,
	"sys_exit":                SysExit,
	"stamp":                   Stamp,
}

func (e Event) String() string {
	var names []string
	for name, event := range eventNames {
		if e&event != 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return int(eventNames[a]) - int(eventNames[b]) })
	return strings.Join(names, "|")
}

// Role says on whose device an event counts.
type Role uint8

// The roles of a point.
const (
	Task      Role = iota // no device: a thread of the container
	Container             // any device in the container's network namespace, but for lo
	NIC                   // the host's device at the path's outer end
)

// Point is one end of an interval.
type Point struct {
	Role  Role
	Event Event
}

func (p Point) String() string {
	switch p.Role {
	case Container:
		return "container:" + p.Event.String()
	case NIC:
		return "nic:" + p.Event.String()
	}
	return p.Event.String()
}

// Interval is what a path subtracts in one direction, named by its ends: the inner one is the container's.
type Interval struct {
	Inner, Outer Point
}

// Path says where the latency of a container's packets begins and ends, as in the poster "Dynamic Measurement of
// Container Network Latency with MACE" (table in its figure 2).
type Path struct {
	Name    string
	Egress  Interval
	Ingress Interval
	// Stamped replaces Ingress for packets that are read from a socket which takes its time from skb->tstamp
	// (SO_TIMESTAMP and its kin); nil: all sockets are alike.
	Stamped *Interval
}

// The built-in paths. inner-dev, max-dev and syscalls are the poster's; net_dev_start_xmit stands for its
// net_dev_xmit where state begins, since the skb may be freed when that one fires. bare-metal and wire are what
// `tare run --as` means: see the guide docs/subtract.md.
var builtin = map[string]string{
	"inner-dev": `egress=container:net_dev_start_xmit,nic:net_dev_start_xmit
		ingress=nic:netif_receive_skb,container:netif_receive_skb`,
	"max-dev": `egress=container:net_dev_queue,nic:net_dev_xmit
		ingress=nic:napi_gro_receive_entry|napi_gro_frags_entry|netif_rx|netif_receive_skb,container:netif_receive_skb`,
	"syscalls": `egress=sys_enter,nic:net_dev_xmit
		ingress=nic:netif_receive_skb,sys_exit`,
	"bare-metal": `egress=container:net_dev_queue,nic:net_dev_queue
		ingress=nic:netif_receive_skb,container:netif_receive_skb
		stamped=nic:stamp,container:stamp`,
	"wire": `egress=sys_enter,nic:net_dev_start_xmit
		ingress=nic:napi_gro_receive_entry|napi_gro_frags_entry|stamp,sys_exit
		stamped=nic:napi_gro_receive_entry|napi_gro_frags_entry|stamp,container:stamp`,
}

// ErrPath is wrapped by every complaint about a path's text.
var ErrPath = errors.New("event path")

// ErrHardwareStamps says why there is no path that ends at the NIC's own stamps. A received packet has its stamp in the
// skb; that of a sent one goes to the error queue of the socket that has sent it, and passes no tracepoint.
var ErrHardwareStamps = fmt.Errorf("%w \"hw\": there is none: the kernel tells the hardware's stamps of sent packets to the "+
	"sending socket alone, which is the container's; the nearest is wire, which ends at the NIC's driver", ErrPath)

// PathNames lists the built-in paths.
func PathNames() []string {
	return slices.Sorted(maps.Keys(builtin))
}

// ParsePath reads a built-in path's name, or a path's text: words KEY=POINT,POINT separated by white space, where
// KEY is egress (inner end first), ingress (outer end first) or, if sockets with kernel stamps are to be treated
// apart, stamped. From # to the end of a line is comment.
func ParsePath(text string) (Path, error) {
	name := strings.TrimSpace(text)
	if definition, ok := builtin[name]; ok {
		path, err := parsePath(definition)
		path.Name = name
		return path, err
	}
	if name == "hw" {
		return Path{}, ErrHardwareStamps
	}
	if !strings.Contains(text, "=") {
		return Path{}, fmt.Errorf("%w %q: not one of %s, nor egress=POINT,POINT ingress=POINT,POINT",
			ErrPath, name, strings.Join(PathNames(), ", "))
	}
	path, err := parsePath(text)
	path.Name = path.String()
	return path, err
}

func parsePath(text string) (Path, error) {
	var path Path
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(word, "=")
			first, second, ok := strings.Cut(value, ",")
			if !ok {
				return Path{}, fmt.Errorf("%w: %q is not KEY=POINT,POINT", ErrPath, word)
			}
			if seen[key] {
				return Path{}, fmt.Errorf("%w: %s is given twice", ErrPath, key)
			}
			seen[key] = true
			a, err := parsePoint(first)
			if err != nil {
				return Path{}, err
			}
			b, err := parsePoint(second)
			if err != nil {
				return Path{}, err
			}
			switch key {
			case "egress":
				path.Egress = Interval{Inner: a, Outer: b}
			case "ingress":
				path.Ingress = Interval{Outer: a, Inner: b}
			case "stamped":
				path.Stamped = &Interval{Outer: a, Inner: b}
			default:
				return Path{}, fmt.Errorf("%w: %q is none of egress, ingress, stamped", ErrPath, key)
			}
		}
	}
	if !seen["egress"] || !seen["ingress"] {
		return Path{}, fmt.Errorf("%w: both egress= and ingress= are needed", ErrPath)
	}
	return path, path.validate()
}

func parsePoint(text string) (Point, error) {
	var point Point
	names := text
	if role, rest, ok := strings.Cut(text, ":"); ok {
		names = rest
		switch role {
		case "container":
			point.Role = Container
		case "nic":
			point.Role = NIC
		default:
			return Point{}, fmt.Errorf("%w: %q in %q is neither container nor nic", ErrPath, role, text)
		}
	}
	for name := range strings.SplitSeq(names, "|") {
		event, ok := eventNames[name]
		if !ok {
			known := slices.Sorted(maps.Keys(eventNames))
			return Point{}, fmt.Errorf("%w: unknown event %q; known: %s", ErrPath, name, strings.Join(known, ", "))
		}
		point.Event |= event
	}
	return point, nil
}

// What each end may be. A container's net_dev_xmit cannot begin a state, and netif_rx at the container is where its
// kernel stamp is taken, so both have a better name.
var allowed = []struct {
	where string
	role  Role
	any   Event
	many  bool
	of    func(Path) *Point
}{
	{"egress inner end", Container, NetDevQueue | NetDevStartXmit, false, func(p Path) *Point { return &p.Egress.Inner }},
	{"egress inner end", Task, SysEnter, false, func(p Path) *Point { return &p.Egress.Inner }},
	{"egress outer end", NIC, NetDevQueue | NetDevStartXmit | NetDevXmit, false, func(p Path) *Point { return &p.Egress.Outer }},
	{"ingress outer end", NIC, NAPIGROReceive | NAPIGROFrags | NetifRx | NetifReceiveSKB | Stamp, true, func(p Path) *Point { return &p.Ingress.Outer }},
	{"ingress inner end", Container, NetifRx | NetifReceiveSKB | Stamp, false, func(p Path) *Point { return &p.Ingress.Inner }},
	{"ingress inner end", Task, SKBCopy | SysExit, false, func(p Path) *Point { return &p.Ingress.Inner }},
	{"stamped outer end", NIC, NAPIGROReceive | NAPIGROFrags | NetifRx | NetifReceiveSKB | Stamp, true, stampedOuter},
	{"stamped inner end", Container, Stamp, false, stampedInner},
}

func stampedOuter(p Path) *Point {
	if p.Stamped == nil {
		return nil
	}
	return &p.Stamped.Outer
}

func stampedInner(p Path) *Point {
	if p.Stamped == nil {
		return nil
	}
	return &p.Stamped.Inner
}

func (p Path) validate() error {
	fits := map[string]bool{}
	var complaints []string
	for _, rule := range allowed {
		point := rule.of(p)
		if point == nil {
			continue
		}
		single := point.Event&(point.Event-1) == 0
		ok := point.Role == rule.role && point.Event&^rule.any == 0 && (single || rule.many)
		if !ok && !fits[rule.where] {
			complaints = append(complaints, fmt.Sprintf("%s %s must be in %s", rule.where, point, Point{rule.role, rule.any}))
		}
		fits[rule.where] = fits[rule.where] || ok
	}
	for _, rule := range allowed { // the first end that does not fit, the same one each time
		if ok, has := fits[rule.where]; ok || !has {
			continue
		}
		mine := slices.DeleteFunc(complaints, func(c string) bool { return !strings.HasPrefix(c, rule.where) })
		return fmt.Errorf("%w: %s", ErrPath, strings.Join(mine, ", or "))
	}
	if s := p.Stamped; s != nil && s.Outer != p.Ingress.Outer && s.Outer != (Point{NIC, Stamp}) {
		return fmt.Errorf("%w: stamped must begin where ingress does, or at nic:stamp", ErrPath)
	}
	return nil
}

// String gives the path's text, which ParsePath reads.
func (p Path) String() string {
	text := fmt.Sprintf("egress=%s,%s ingress=%s,%s", p.Egress.Inner, p.Egress.Outer, p.Ingress.Outer, p.Ingress.Inner)
	if p.Stamped != nil {
		text += fmt.Sprintf(" stamped=%s,%s", p.Stamped.Outer, p.Stamped.Inner)
	}
	return text
}

// plan is the path as the eBPF programs know it: the constants of bpf/path.h.
type plan struct {
	egressStart       Event
	egressEnd         Event
	egressFromSyscall bool
	ingressStart      Event
	ingressOuterStamp bool
	ingressEnd        Event
	ingressInner      Event
	bySocket          bool
	stampPair         bool
	delivery          Event
}

func (p Path) plan() plan {
	var l plan
	l.egressStart = p.Egress.Inner.Event
	if l.egressStart == SysEnter {
		// The call's packet is first seen when it is queued on the container's device.
		l.egressStart, l.egressFromSyscall = NetDevQueue, true
	}
	l.egressEnd = p.Egress.Outer.Event

	l.ingressStart = p.Ingress.Outer.Event
	if l.ingressStart&Stamp != 0 {
		// Where the stamp is set has no tracepoint; the next event finds it in the skb.
		l.ingressStart, l.ingressOuterStamp = l.ingressStart&^Stamp|NetifReceiveSKB, true
	}
	l.ingressInner = p.Ingress.Inner.Event
	l.ingressEnd = NetifReceiveSKB
	if l.ingressInner == NetifRx {
		l.ingressEnd = NetifRx
	}
	if l.ingressInner&(SKBCopy|SysExit) != 0 {
		l.delivery = l.ingressInner
	}
	if p.Stamped != nil {
		l.bySocket = true
		l.stampPair = p.Stamped.Outer.Event == Stamp && p.Ingress.Outer.Event != Stamp
		if l.delivery == 0 {
			l.delivery = SKBCopy
		}
	}
	return l
}

// tracepoints lists the programs of bpf/tare.bpf.c that the plan needs; they bear their tracepoint's name.
func (l plan) tracepoints() Event {
	events := l.egressStart | l.egressEnd | l.ingressStart | l.ingressEnd
	if l.egressEnd == NetDevXmit {
		events |= NetDevStartXmit // where its packet's identity is checked
	}
	if l.egressFromSyscall {
		events |= SysEnter | SysExit
	}
	switch l.delivery {
	case SKBCopy:
		events |= SKBCopy
	case SysExit:
		events |= SKBCopy | SysEnter | SysExit
	}
	return events
}

// usesStamp says whether skb->tstamp is needed, which the kernel sets only while somebody asks for it.
func (p Path) usesStamp() bool {
	return p.Stamped != nil || (p.Ingress.Outer.Event|p.Ingress.Inner.Event)&Stamp != 0
}
