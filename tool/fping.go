package tool

import "strings"

// fping reads fping 5. Replies come on stdout, the summary on stderr, lines of
// several targets interleaved, each beginning with its target, padded to the
// longest: "10.78.0.2   : [0], 64 bytes, 0.037 ms (0.037 avg, 0% loss)".
type fping struct {
	columns bool // -C: the summary repeats every RTT
	quiet   bool // replies are not printed when they come
	terse   bool // -a -e: "ADDR (0.043 ms)" for "ADDR is alive (0.043 ms)"
}

func newFping(args []string) *fping {
	o := options(args, "bBcCfHIikOpQrSTtxX", map[string]byte{
		"alive": 'a', "elapsed": 'e', "fast-reachable": 'X', "quiet": 'q', "reachable": 'x',
		"squiet": 'Q', "unreach": 'u', "vcount": 'C',
	})
	given := func(flags string) bool {
		for i := range len(flags) {
			if _, ok := o[flags[i]]; ok {
				return true
			}
		}
		return false
	}
	return &fping{
		columns: given("C"),
		quiet:   given("qQauxX"),
		terse:   given("a") && given("e"),
	}
}

func (p *fping) Finish() Line { return Line{} }

func (p *fping) Parse(line string) Line {
	line = untimestamped(line)
	label, rest, ok := strings.Cut(line, " : ")
	if !ok {
		return p.alive(line)
	}
	// fping reports "[<- ADDR]", a reply from another address, on stderr and
	// without a newline: it runs into whatever stderr gets next.
	for range 64 {
		at := strings.IndexByte(label, ']')
		if !strings.HasPrefix(label, " [<- ") || at < 0 {
			break
		}
		label = label[at+1:]
	}
	prefix := label + " : "
	label = strings.TrimRight(label, " ")

	if len(label) > maxName {
		return Line{}
	}

	if again, ok := strings.CutPrefix(rest, "duplicate for "); ok {
		reply, ok := p.reply(label, again)
		reply.Duplicate, reply.Uncounted = true, true
		return one(reply, ok)
	}
	if strings.HasPrefix(rest, "[") {
		line := one(p.reply(label, rest))
		line.AgainLater = p.columns && !p.quiet
		return line
	}
	if counts, ok := strings.CutPrefix(rest, "xmt/rcv/%"); ok {
		return p.summary(label, prefix, counts)
	}
	if p.columns {
		return p.vcount(label, prefix, rest)
	}
	return Line{}
}

func one(r Reply, ok bool) Line {
	if !ok {
		return Line{}
	}
	return Line{Replies: []Reply{r}}
}

// echo is a reply without its time. Under -A -n a label is "name (address)".
func echo(label string, seq int) Reply {
	_, addr := host(label)
	return Reply{Kind: Echo, Proto: "icmp", Seq: seq, Probe: -1, Target: label, TargetAddr: addr}
}

// reply reads "[0], 64 bytes, 0.037 ms (0.037 avg, 0% loss)".
func (p *fping) reply(label, s string) (Reply, bool) {
	seq, rest, ok := leadingInt(strings.TrimPrefix(s, "["))
	if !ok {
		return Reply{}, false
	}
	rest, ok = strings.CutPrefix(rest, "], ")
	if !ok {
		return Reply{}, false
	}
	_, rest, ok = strings.Cut(rest, " bytes, ")
	if !ok { // "timed out (NaN avg, 100% loss)"
		return Reply{}, false
	}
	token, _, ok := strings.Cut(rest, " ms")
	if !ok {
		return Reply{}, false
	}
	r := echo(label, seq)
	r.RTTUs, r.ResolutionUs, ok = millis(token)
	return r, ok
}

// alive reads the one answer of fping -e: "far.lab is alive (0.028 ms)". How
// many retries it took, and so its sequence number, is not said.
func (p *fping) alive(line string) Line {
	rest, ok := strings.CutSuffix(line, " ms)")
	if !ok {
		return Line{}
	}
	open := strings.LastIndexByte(rest, '(')
	if open < 1 || open > maxName || rest[open-1] != ' ' {
		return Line{}
	}
	label, isAlive := strings.CutSuffix(rest[:open-1], " is alive")
	if !isAlive && !p.terse {
		return Line{}
	}
	r := echo(label, -1)
	r.RTTUs, r.ResolutionUs, ok = millis(rest[open+1:])
	return one(r, ok)
}

// summary reads "loss = 3/3/0%, outage(ms) = 0, min/avg/max = 0.026/0.046/0.057".
// fping -o and -Q say "return" in place of "loss" when it is certain.
func (p *fping) summary(label, prefix, s string) Line {
	_, s, ok := strings.Cut(s, " = ")
	if !ok {
		return Line{}
	}
	sent, s, ok := leadingInt(s)
	if !ok || !strings.HasPrefix(s, "/") {
		return Line{}
	}
	received, s, ok := leadingInt(s[1:])
	if !ok {
		return Line{}
	}
	stats := &Stats{Target: label, Sent: sent, Received: received, prefix: prefix}
	if _, values, ok := strings.Cut(s, "min/avg/max = "); ok {
		stats.HasRTT = stats.setTimes(values) && !stats.HasMdev
		stats.HasMdev = false
	}
	return Line{Stats: stats}
}

// vcount reads the summary of fping -C: "0.043 - 0.056". These RTTs were
// printed before, unless fping was quiet about them.
func (p *fping) vcount(label, prefix, s string) Line {
	line := Line{NoAnswer: "-", Recap: !p.quiet}
	for i, token := range strings.Fields(s) {
		if token == "-" {
			line.Columns = append(line.Columns, -1)
			continue
		}
		r := echo(label, i)
		var ok bool
		if r.RTTUs, r.ResolutionUs, ok = millis(token); !ok {
			return Line{}
		}
		line.Columns = append(line.Columns, len(line.Replies))
		line.Replies = append(line.Replies, r)
	}
	line.Stats = &Stats{Target: label, Sent: len(line.Columns), Received: len(line.Replies), prefix: prefix}
	return line
}
