package tool

import (
	"net/netip"
	"strings"
)

// traceroute reads traceroute for Linux 2.1 and busybox'. A line is a hop and
// grows probe by probe: " 1  router.lab (10.77.0.254)  0.017 ms * 10.77.1.254
// (10.77.1.254)  0.006 ms !X".
type traceroute struct {
	perHop   int // probes per hop (-q)
	first    int // the first hop (-f)
	proto    string
	port     int // UDP destination port of probe 0, or 0 where the port does not tell probes apart
	seq      int // ICMP sequence number of probe 0, or -1
	unsure   bool
	seen     bool // the header
	target   string
	targetIP netip.Addr
}

func newTraceroute(name string, args []string, busybox bool) *traceroute {
	o := options(args, "fgilmMNOpPqstwz", map[string]byte{
		"first": 'f', "queries": 'q', "port": 'p', "icmp": 'I', "tcp": 'T', "udp": 'U', "dccp": 'D',
		"protocol": 'P', "module": 'M', "mtu": '_',
		// These take a value too, which must not be read as an option.
		"gateway": 'g', "interface": 'i', "flowlabel": 'l', "max-hops": 'm', "sim-queries": 'N',
		"options": 'O', "source": 's', "tos": 't', "wait": 'w', "sendwait": 'z',
	})
	has := func(flag byte) bool { _, ok := o[flag]; return ok }
	p := &traceroute{
		perHop: number(o['q'], 1, 255, 3),
		first:  number(o['f'], 1, 255, 1),
		seq:    -1,
	}
	_, p.unsure = o['_']
	module := o['M']
	switch {
	case busybox:
		// Debian's is built without ICMP and takes -I for UDP all the
		// same; others do send ICMP: only then nothing is claimed. Its
		// first probe goes to the port after the base.
		if !has('I') {
			p.proto, p.port = "udp", number(o['p'], 1, 65535, 33434)+1
		}
	case has('I') || module == "icmp":
		p.proto, p.seq = "icmp", number(o['p'], 0, 65535, 1)
	case has('T') || module == "tcp" || strings.HasPrefix(name, "tcp"):
		p.proto = "tcp" // a source port of its own for each probe, of the kernel's choice
	case has('U') || module == "udp":
		p.proto = "udp" // all to one port
	case has('D') || has('P') || (module != "" && module != "default"):
	default:
		p.proto, p.port = "udp", number(o['p'], 1, 65535, 33434)
	}
	return p
}

func (p *traceroute) Finish() Line { return Line{} }

func (p *traceroute) Parse(line string) Line {
	if rest, ok := strings.CutPrefix(line, "traceroute to "); ok {
		if to, _, ok := strings.Cut(rest, ", "); ok && len(to) <= maxName {
			p.target, p.targetIP = host(strings.Clone(to))
			p.seen = true
		}
		return Line{}
	}
	hop, rest, ok := leadingInt(strings.TrimLeft(line, " "))
	if !ok || !p.seen || hop < 1 || hop > 255 || !strings.HasPrefix(rest, " ") {
		return Line{}
	}
	return p.hop(hop, strings.Fields(rest))
}

// hop reads the fields after the hop's number. A time belongs to the last
// address before it. All other fields pass: host names, and notes such as
// "!X", "F=1500", "[AS7018]", "<MPLS:...>" and "'-2'".
func (p *traceroute) hop(hop int, fields []string) Line {
	line := Line{NoAnswer: "*"}
	var from netip.Addr
	for i := 0; i < len(fields); i++ {
		field := fields[i]
		if field == "*" {
			line.Columns = append(line.Columns, -1)
			continue
		}
		if i+1 < len(fields) && fields[i+1] == "ms" {
			if us, resolution, ok := millis(field); ok {
				r := p.probe(hop, len(line.Columns))
				r.From, r.RTTUs, r.ResolutionUs = from, us, resolution
				line.Columns = append(line.Columns, len(line.Replies))
				line.Replies = append(line.Replies, r)
				i++
				continue
			}
		}
		if i > 0 && fields[i-1] == "to" {
			continue // busybox -v: "54 bytes to 10.77.0.1", our own address
		}
		if addr := address(strings.TrimSuffix(strings.TrimPrefix(field, "("), ")")); addr.IsValid() {
			from = addr
		}
	}
	if len(line.Replies) == 0 || len(line.Columns) > 255 { // no traceroute sends that many
		return Line{}
	}
	return line
}

// probe is the reply to probe i of a hop, without its time.
func (p *traceroute) probe(hop, i int) Reply {
	r := Reply{
		Kind: Probe, Proto: p.proto, Seq: -1, Hop: hop, Probe: (hop-p.first)*p.perHop + i, Column: i,
		Target: p.target, TargetAddr: p.targetIP,
	}
	if p.unsure || r.Probe < 0 || i >= p.perHop {
		r.Probe, r.Column = -1, -1
		return r
	}
	if p.port > 0 && p.port+r.Probe <= 65535 {
		r.Port = p.port + r.Probe
	}
	if p.seq >= 0 {
		r.Seq = (p.seq + r.Probe) & 0xffff
	}
	return r
}
