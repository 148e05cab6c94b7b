package tool

import (
	"net/netip"
	"strings"
)

// ping reads ping of iputils and of busybox; on Alpine the second goes by the
// name of the first, so the line decides, not the name. The forms of
// GNU inetutils are near enough to be read as well.
type ping struct {
	target string
	addr   netip.Addr
	counts *Stats // "N packets transmitted, ..." was read, its RTTs were not
}

func (p *ping) Parse(line string) Line {
	switch {
	case strings.HasPrefix(line, "PING "):
		p.header(line[len("PING "):])
	case strings.HasPrefix(line, "--- ") && strings.HasSuffix(line, " ping statistics ---"):
		p.counts = nil
	case strings.HasPrefix(line, "rtt min/"), strings.HasPrefix(line, "round-trip min/"):
		return p.times(line)
	case strings.Contains(line, " packets transmitted, "):
		p.transmitted(line)
	case strings.Contains(line, " packets, ") && strings.Contains(line, "% loss"):
		return p.interim(line)
	default:
		if reply, ok := p.reply(line); ok {
			return Line{Replies: []Reply{reply}}
		}
	}
	return Line{}
}

func (p *ping) Finish() Line {
	counts := p.counts
	p.counts = nil
	return Line{Stats: counts}
}

// header reads "far (10.78.0.2) 56(84) bytes of data.", busybox' "far
// (10.78.0.2): 56 data bytes", and for IPv6 "fd77:1::2(fd77:1::2) 56 data
// bytes" or "far(far (fd77:1::2)) 56 data bytes".
func (p *ping) header(s string) {
	end := strings.IndexAny(s, " (")
	if end <= 0 || end > maxName {
		return
	}
	p.target, p.addr = strings.Clone(s[:end]), netip.Addr{}
	for range 3 { // the address is in the first or second parenthesis
		_, after, ok := strings.Cut(s, "(")
		if !ok {
			return
		}
		if end := strings.IndexByte(after[:min(len(after), 80)], ')'); end >= 0 {
			if p.addr = address(after[:end]); p.addr.IsValid() {
				return
			}
		}
		s = after
	}
}

// reply reads "64 bytes from far (10.78.0.2): icmp_seq=1 ttl=63 time=0.048 ms".
// A reply too small to carry a time has none, and "time<1 ms" is a bound and
// no RTT: neither is reported.
func (p *ping) reply(line string) (Reply, bool) {
	_, rest, ok := leadingInt(untimestamped(line))
	if !ok {
		return Reply{}, false
	}
	rest, ok = strings.CutPrefix(rest, " bytes from ")
	if !ok {
		return Reply{}, false
	}
	from, rest, ok := strings.Cut(rest, ": ")
	if !ok {
		return Reply{}, false
	}
	seq, rest, ok := leadingInt(strings.TrimPrefix(strings.TrimPrefix(rest, "icmp_"), "seq="))
	if !ok {
		return Reply{}, false
	}
	_, rest, ok = strings.Cut(rest, " time=")
	if !ok {
		return Reply{}, false
	}
	token, rest, ok := strings.Cut(rest, " ms")
	if !ok {
		return Reply{}, false
	}
	us, resolution, ok := millis(token)
	if !ok {
		return Reply{}, false
	}
	_, addr := host(from)
	return Reply{
		Kind: Echo, Proto: "icmp", Seq: seq, Probe: -1,
		From: addr, Target: p.target, TargetAddr: p.addr,
		RTTUs: us, ResolutionUs: resolution,
		Duplicate: strings.Contains(rest, "(DUP!)"),
		// iputils prints the time of a reply with a bad checksum, but
		// does not add it up.
		Uncounted: strings.Contains(rest, "(BAD CHECKSUM!)"),
	}, true
}

// transmitted reads "3 packets transmitted, 3 received, +2 duplicates, +1
// errors, 0% packet loss, time 408ms" and busybox' "3 packets transmitted, 3
// packets received, 2 duplicates, 0% packet loss".
func (p *ping) transmitted(line string) {
	s := &Stats{Target: p.target, duplicatesAreInTheirMean: true}
	for i, field := range strings.SplitN(line, ", ", 8) {
		n, what, ok := leadingInt(strings.TrimPrefix(field, "+"))
		switch {
		case !ok && i == 0:
			return
		case !ok:
		case what == " packets transmitted":
			s.Sent = n
		case what == " received", what == " packets received":
			s.Received = n
		case what == " duplicates":
			s.Duplicates = n
		case what == " errors":
			s.Errors = n
		}
	}
	p.counts = s
}

// times reads "rtt min/avg/max/mdev = 0.048/0.055/0.059/0.004 ms, pipe 3" and
// busybox' "round-trip min/avg/max = 0.057/0.077/0.100 ms".
func (p *ping) times(line string) Line {
	s := p.counts
	if s == nil {
		return Line{}
	}
	_, values, ok := strings.Cut(line, " = ")
	values, _, inMs := strings.Cut(values, " ms")
	if !ok || !inMs {
		return Line{}
	}
	if !s.setTimes(values) {
		return Line{}
	}
	p.counts = nil
	return Line{Stats: s}
}

// setTimes reads "min/avg/max" or "min/avg/max/mdev".
func (s *Stats) setTimes(values string) bool {
	to := [...]*float64{&s.MinUs, &s.AvgUs, &s.MaxUs, &s.MdevUs}
	tokens := strings.SplitN(values, "/", len(to)+1)
	if len(tokens) != 3 && len(tokens) != 4 {
		return false
	}
	for i, token := range tokens {
		us, resolution, ok := millis(token)
		if !ok {
			return false
		}
		*to[i] = us
		if i == 1 {
			s.avgResolutionUs = resolution
		}
	}
	s.HasRTT, s.HasMdev = true, len(tokens) == 4
	return true
}

// interim reads what iputils answers to SIGQUIT on stderr:
// "4/4 packets, 0% loss, min/avg/ewma/max = 0.031/0.052/0.040/0.062 ms".
func (p *ping) interim(line string) Line {
	received, rest, ok := leadingInt(line)
	if !ok || !strings.HasPrefix(rest, "/") {
		return Line{}
	}
	sent, rest, ok := leadingInt(rest[1:])
	if !ok || !strings.HasPrefix(rest, " packets, ") {
		return Line{}
	}
	s := &Stats{Target: p.target, Sent: sent, Received: received, Interim: true, duplicatesAreInTheirMean: true}
	if _, values, ok := strings.Cut(rest, "min/avg/ewma/max = "); ok {
		values, _, inMs := strings.Cut(values, " ms")
		if inMs && s.setTimes(values) && s.HasMdev {
			// The third value is the moving average, not the maximum.
			s.MaxUs, s.MdevUs, s.HasMdev = s.MdevUs, 0, false
		} else {
			s.HasRTT = false
		}
	}
	return Line{Stats: s}
}
