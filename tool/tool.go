// Package tool understands what measurement tools print: which round trips a
// line of ping, fping or traceroute shows, and how to write beside each of
// them what the container's network added to it.
//
// It is text only. Who knows the corrections hands them in as a function; who
// runs the tool hands in its output as it comes. Everything that a tool prints
// is treated as hostile: hop names come from foreign DNS servers, and the tool
// itself belongs to the container.
package tool

import "net/netip"

// Kind says what sort of probe an RTT belongs to.
type Kind int

const (
	Echo  Kind = iota // ping, fping: a request and its reply
	Probe             // traceroute: one probe of one hop
)

// Reply is one RTT that a tool printed.
type Reply struct {
	Kind Kind

	// Seq is the sequence number as the tool prints it, or -1. For ping,
	// of iputils as of busybox, it is also the one on the wire. For fping it
	// is an index per target, from 0; the wire's number is not printed. For
	// traceroute -I it is the sequence number on the wire, worked out from
	// Probe.
	Seq int

	// Hop is traceroute's TTL. Probe is the probe's ordinal in the order of
	// sending, from 0, with the lost ones counted; -1 when it cannot be told
	// (--mtu sends some probes more than once).
	// Column is which of its hop's probes it is, from 0.
	Hop, Probe, Column int
	Proto              string // "icmp", "udp", "tcp", or "" for anything else
	Port               int    // UDP destination port, where it tells the probes of traceroute apart; otherwise 0

	// From is who answered, if the line says so by address. fping names
	// only its target, whoever answers, and so leaves this zero.
	From       netip.Addr
	Target     string     // the target, by the name that the tool shows
	TargetAddr netip.Addr // its address, if the tool shows that

	RTTUs        float64 // in microseconds
	ResolutionUs float64 // worth of the last digit printed: 1 for "0.123 ms", 100 for "12.3 ms"; the error is up to half of it

	Duplicate bool // the tool says that it is a duplicate
	Uncounted bool // the tool leaves it out of its own statistics
}

// Stats is what a tool says about a whole run, or about a target of it.
type Stats struct {
	Target                   string
	Sent, Received           int // replies, without duplicates
	Duplicates, Errors       int
	HasRTT, HasMdev          bool
	MinUs, AvgUs, MaxUs      float64 // if HasRTT
	MdevUs                   float64 // if HasMdev; iputils' mdev is the standard deviation of the population
	Interim                  bool    // asked for with SIGQUIT, the run goes on (fping's cannot be told from its last)
	avgResolutionUs          float64 // ping prints its average finer than its replies
	duplicatesAreInTheirMean bool    // ping's min/avg/max take duplicates in, fping's do not
	prefix                   string  // of further lines about it: fping's "ADDR : "
}

// Measured is the number of RTTs that the tool's own min/avg/max are made of.
func (s Stats) Measured() int {
	if s.duplicatesAreInTheirMean {
		return s.Received + s.Duplicates
	}
	return s.Received
}

// Line is what one line of output says. The zero Line says nothing.
type Line struct {
	Replies []Reply
	Stats   *Stats

	// A line that shows several RTTs has a column for each probe: its index
	// in Replies, or -1 where the tool printed NoAnswer ("*" or "-") instead.
	Columns  []int
	NoAnswer string

	// AgainLater: a Recap may show these RTTs once more.
	AgainLater bool
	// Recap: these RTTs were on earlier lines already (fping -C prints each
	// twice) and must not be counted again.
	Recap bool
}

// Parser reads the output of one run of a tool, line by line. It is not safe
// for concurrent use; Annotator is.
type Parser interface {
	// Parse reads a line without its line ending. It never fails: a line
	// that it does not know says nothing.
	Parse(line string) Line
	// Finish returns what only the end of the output makes certain:
	// statistics of a run that has no RTT to show.
	Finish() Line
}
