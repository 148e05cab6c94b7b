package subtract

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tare/mace"
	"tare/tool"
)

func isTerminal(file *os.File) bool {
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// replyLine is one RTT that the tool printed, in JSON.
type replyLine struct {
	Type        string   `json:"type"`
	Seq         int      `json:"seq"`
	Hop         int      `json:"hop,omitempty"`
	Src         string   `json:"src,omitempty"`
	Dst         string   `json:"dst,omitempty"`
	RTTUs       float64  `json:"rtt_us"`
	EgressUs    *float64 `json:"egress_us"`
	IngressUs   *float64 `json:"ingress_us"`
	CorrectedUs *float64 `json:"corrected_us"`
	As          string   `json:"as"`
	Path        string   `json:"path"`
	Status      string   `json:"status"`
	// Incomplete: packets are known to have gone unseen at about that time. What is here is right, but others may lack.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Summary is the last line of JSON output.
type Summary struct {
	Type        string         `json:"type"`
	Sent        int            `json:"sent"`
	Received    int            `json:"received"`
	Matched     int            `json:"matched"`
	Coverage    float64        `json:"coverage"`
	RTTUs       *Distribution  `json:"rtt_us"`
	AddedUs     *Distribution  `json:"added_us"`
	CorrectedUs *Distribution  `json:"corrected_us"`
	EgressUs    *Distribution  `json:"egress_us"`
	IngressUs   *Distribution  `json:"ingress_us"`
	As          string         `json:"as"`
	Path        string         `json:"path"`
	NICs        []string       `json:"nics"`
	Status      map[string]int `json:"status"`
	Audit       Audit          `json:"audit"`
	Dropped     uint64         `json:"records_dropped"`
}

// reporter shows a run in one of the output formats.
type reporter interface {
	reply(tool.Reply, tool.Correction)
	stats(tool.Stats, tool.Report)
	finish() error
}

func newReporter(r *run) reporter {
	base := baseReport{run: r}
	switch {
	case r.options.JSON:
		return &jsonReport{base, json.NewEncoder(r.options.Stdout)}
	case r.options.CSV:
		return &csvReport{baseReport: base, out: csv.NewWriter(r.options.Stdout)}
	}
	return &textReport{base}
}

type baseReport struct {
	run            *run
	sent, received int  // as the tool says
	final          bool // it has said so
}

func (b *baseReport) reply(tool.Reply, tool.Correction) {}

func (b *baseReport) stats(st tool.Stats, _ tool.Report) {
	if !st.Interim {
		b.final = true
		b.sent += st.Sent
		b.received += st.Received
	}
}

// summary puts together what is known at the end.
func (b *baseReport) summary() (line Summary, err error) {
	r := b.run
	line = Summary{
		Type: "summary", As: r.options.As, Path: r.options.Path.Name, NICs: r.session.NICNames(),
		Status: map[string]int{},
	}
	if line.Audit, err = r.session.Audit(); err != nil && r.options.Target.Alive() {
		return line, err
	}
	counters, err := r.session.Counters()
	if err != nil {
		return line, err
	}
	line.Dropped = counters.RingDropped
	line.EgressUs, line.IngressUs = r.totals.egress.distribution(), r.totals.ingress.distribution()
	defer func() {
		if line.Received > 0 {
			line.Coverage = float64(line.Matched) / float64(line.Received)
		}
	}()
	if r.annotator == nil {
		r.totals.fill(&line)
		return line, nil
	}
	total := r.annotator.Summary().Total()
	line.Sent, line.Received, line.Matched = b.sent, b.received, total.Corrected
	for status, n := range total.Uncorrected {
		line.Status[status] = n
	}
	line.Status[mace.Matched.String()] = total.Corrected
	line.RTTUs, line.AddedUs, line.CorrectedUs = distribution(total.RTT), distribution(total.Added), distribution(total.CorrectedRTT)
	if total.Replies == 0 && b.received > 0 {
		// ping -f and -q print no replies: what was seen in the kernel stands for them.
		r.totals.fill(&line)
		line.Sent, line.Received = b.sent, b.received
	}
	line.Received = max(line.Received, total.Replies)
	line.Sent = max(line.Sent, line.Received)
	return line, nil
}

type jsonReport struct {
	baseReport
	out *json.Encoder
}

func (j *jsonReport) reply(r tool.Reply, c tool.Correction) {
	j.out.Encode(j.run.replyLine(r, c))
}

func (j *jsonReport) finish() error {
	line, err := j.summary()
	if err != nil {
		return err
	}
	return j.out.Encode(line)
}

func (r *run) replyLine(reply tool.Reply, c tool.Correction) replyLine {
	line := replyLine{
		Type: "rtt", Seq: reply.Seq, Hop: reply.Hop, RTTUs: us(reply.RTTUs), As: r.options.As,
		Path: r.options.Path.Name, Status: c.Status, Dst: reply.Target, Incomplete: r.session.Incomplete(),
	}
	if reply.TargetAddr.IsValid() {
		line.Dst = reply.TargetAddr.String()
	}
	if trip, ok := r.trips.last(); ok && c.OK {
		egress, ingress := us(float64(trip.egressNS)/1e3), us(float64(trip.ingressNS)/1e3)
		corrected := us(c.CorrectedUs)
		line.Src = trip.flow.Src.String()
		line.EgressUs, line.IngressUs, line.CorrectedUs = &egress, &ingress, &corrected
		line.Status = mace.Matched.String()
	}
	return line
}

type csvReport struct {
	baseReport
	out    *csv.Writer
	header bool
}

func (c *csvReport) writeHeader() {
	if !c.header {
		c.header = true
		c.out.Write([]string{"seq", "hop", "src", "dst", "rtt_us", "egress_us", "ingress_us", "corrected_us", "as", "path", "status"})
	}
}

func (c *csvReport) reply(r tool.Reply, correction tool.Correction) {
	c.writeHeader()
	line := c.run.replyLine(r, correction)
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', -1, 64)
	}
	c.out.Write([]string{
		strconv.Itoa(line.Seq), strconv.Itoa(line.Hop), line.Src, line.Dst, number(&line.RTTUs),
		number(line.EgressUs), number(line.IngressUs), number(line.CorrectedUs), line.As, line.Path, line.Status,
	})
	c.out.Flush()
}

// finish leaves nothing but the table on standard output; the rest is for whoever looks on.
func (c *csvReport) finish() error {
	c.writeHeader()
	c.out.Flush()
	if err := c.out.Error(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return c.conclude(c.run.options.Stderr)
}

// textReport adds to the tool's own text, which the annotator has corrected, what it leaves open.
type textReport struct{ baseReport }

func (t *textReport) finish() error { return t.conclude(t.run.options.Stdout) }

// conclude tells what the tool's own text, corrected, leaves open: all, where it was not understood, or where a signal
// ended the tool before its statistics.
func (b *baseReport) conclude(out io.Writer) error {
	line, err := b.summary()
	if err != nil {
		return err
	}
	if b.run.annotator == nil || b.run.killed && !b.final {
		writeSummary(out, line)
	}
	writeDoubts(b.run.options.Stderr, line)
	path := b.run.options.Path
	if path.Stamped == nil && path.Ingress.Inner.Event == mace.SysExit && b.run.totals.stamped > 0 {
		b.run.note("the tool takes its time from kernel stamps, before this path ends: too much was subtracted; --as wire is right for it")
	}
	return nil
}

// writeSummary is what `tare run` says at the end of a tool whose text it does not know.
func writeSummary(out io.Writer, line Summary) {
	fmt.Fprintf(out, "\n--- tare: %s, between the container and %s ---\n", line.As, strings.Join(line.NICs, ", "))
	if line.EgressUs == nil && line.IngressUs == nil {
		fmt.Fprintf(out, "no packet passed between the container and %s\n", strings.Join(line.NICs, ", "))
		return
	}
	fmt.Fprintf(out, "%-9s %10s %10s %10s %10s %10s %10s  us\n", "", "min", "p50", "p90", "p99", "max", "mean")
	for _, row := range []struct {
		name string
		d    *Distribution
	}{
		{"egress", line.EgressUs}, {"ingress", line.IngressUs},
		{"gross RTT", line.RTTUs}, {"tare", line.AddedUs}, {"net RTT", line.CorrectedUs},
	} {
		if row.d != nil {
			d := row.d
			fmt.Fprintf(out, "%-9s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f\n", row.name, d.Min, d.P50, d.P90, d.P99, d.Max, d.Mean)
		}
	}
	if line.Received > 0 {
		fmt.Fprintf(out, "round trips: %d, %.1f%% of them corrected\n", line.Received, 100*line.Coverage)
	}
}

// Why a reply was not corrected, in words. The statuses are mace's.
var reasons = map[mace.Status]string{
	mace.Ambiguous:  "its packets, or which of several they were, cannot be told for certain",
	mace.Merged:     "GRO or GSO has made one packet of several, or several of one",
	mace.Unstarted:  "it did not come in by %s: it came from this host, or by another device (--nic)",
	mace.Unfinished: "it did not pass %s: it stayed on this host, or went by another device (--nic)",
	mace.NoSyscall:  "no system call of the container was seen to send or to read it",
	mace.Unseen:     "its packets were not seen",
}

// writeDoubts says what keeps the figures from being complete.
func writeDoubts(out io.Writer, line Summary) {
	for status := mace.Ambiguous; status <= mace.Unseen; status++ {
		if n := line.Status[status.String()]; n > 0 {
			reason := strings.ReplaceAll(reasons[status], "%s", strings.Join(line.NICs, ", "))
			fmt.Fprintf(out, "tare: %d not corrected, %s: %s\n", n, status, reason)
		}
	}
	if line.Dropped > 0 {
		fmt.Fprintf(out, "tare: %d records were lost because the ring was full; counts and aggregates are complete\n", line.Dropped)
	}
	line.Audit.writeDoubts(out, "tare: ")
}

// ReadSummary finds the summary in a run's JSON output.
func ReadSummary(output io.Reader) (Summary, error) {
	decoder := json.NewDecoder(output)
	for {
		var line json.RawMessage
		if err := decoder.Decode(&line); err != nil {
			return Summary{}, fmt.Errorf("reading the summary of a run: %w", err)
		}
		var kind struct{ Type string }
		if err := json.Unmarshal(line, &kind); err != nil || kind.Type != "summary" {
			continue
		}
		var summary Summary
		err := json.Unmarshal(line, &summary)
		return summary, err
	}
}
