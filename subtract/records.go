package subtract

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"tare/container"
	"tare/mace"
)

// recordLine is one packet's passage, in JSON. Text and CSV are renderings of it.
type recordLine struct {
	Time      time.Time `json:"time"`
	NetNS     uint64    `json:"netns"`
	Container string    `json:"container"`
	Direction string    `json:"direction"`
	Path      string    `json:"path"`
	Proto     string    `json:"proto"`
	Src       string    `json:"src"`
	Dst       string    `json:"dst"`
	ID        uint16    `json:"id"` // of ICMP echo; otherwise 0
	Seq       uint32    `json:"seq"`
	Len       uint32    `json:"len"`
	PID       uint32    `json:"pid"`
	Status    string    `json:"status"`
	LatencyNS *int64    `json:"latency_ns"` // null unless matched
}

// RecordWriter writes passages as text, JSON or CSV. It is not safe for concurrent use.
type RecordWriter struct {
	out       *bufio.Writer
	write     func(recordLine) error
	container string
	cookie    uint64
	path      string
	header    func() error // of a table; nil once written
	count     int
}

// NewRecordWriter returns a writer for format text, json or csv.
func NewRecordWriter(format string, out io.Writer, target container.Target, path mace.Path) (*RecordWriter, error) {
	w := &RecordWriter{out: bufio.NewWriter(out), container: target.Name, path: path.Name}
	w.cookie, _ = container.NetNSCookie(target.NetNSPath) // a target that is gone is found out when it is opened
	switch format {
	case "text":
		w.write = w.text
	case "json":
		encoder := json.NewEncoder(w.out)
		w.write = func(line recordLine) error { return encoder.Encode(line) }
	case "csv":
		table := csv.NewWriter(w.out)
		w.header = func() error { return writeRow(table, recordHeader) }
		w.write = func(line recordLine) error { return writeRow(table, line.row()) }
	default:
		return nil, fmt.Errorf("-o %s: it is text, json or csv", format)
	}
	return w, nil
}

// Count is how many passages have been written.
func (w *RecordWriter) Count() int { return w.count }

// Write writes one passage and hands it on at once: whoever watches wants to see it now.
func (w *RecordWriter) Write(p *mace.Passage) error {
	line := recordLine{
		Time: p.Time, NetNS: w.cookie, Container: w.container, Direction: p.Direction.String(), Path: w.path,
		Proto: p.ProtocolName(), Src: p.Src.String(), Dst: p.Dst.String(), Seq: p.Seq, Len: p.Len, PID: p.PID,
		Status: p.Status.String(),
	}
	switch {
	case p.EchoRequest() || p.EchoReply():
		line.ID = p.SrcPort
	case p.SrcPort != 0 || p.DstPort != 0:
		line.Src = joinHostPort(line.Src, p.SrcPort)
		line.Dst = joinHostPort(line.Dst, p.DstPort)
	}
	if line.Proto == "" {
		line.Proto = strconv.Itoa(int(p.Protocol))
	}
	if p.Status == mace.Matched {
		latency := p.LatencyNS()
		line.LatencyNS = &latency
	}
	w.count++
	if err := w.writeHeader(); err != nil {
		return err
	}
	if err := w.write(line); err != nil {
		return err
	}
	return w.out.Flush()
}

func joinHostPort(host string, port uint16) string {
	for i := range len(host) {
		if host[i] == ':' {
			return "[" + host + "]:" + strconv.Itoa(int(port))
		}
	}
	return host + ":" + strconv.Itoa(int(port))
}

// Close writes what is left: of a table without records its header.
func (w *RecordWriter) Close() error {
	if err := w.writeHeader(); err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *RecordWriter) writeHeader() error {
	header := w.header
	w.header = nil
	if header == nil {
		return nil
	}
	return header()
}

func (w *RecordWriter) text(line recordLine) error {
	latency := line.Status
	if line.LatencyNS != nil {
		latency = fmt.Sprintf("%.3f us", float64(*line.LatencyNS)/1e3)
	}
	details := ""
	switch {
	case line.ID != 0:
		details = fmt.Sprintf(" id %d seq %d", line.ID, line.Seq)
	case line.Seq != 0:
		details = fmt.Sprintf(" seq %d", line.Seq)
	}
	_, err := fmt.Fprintf(w.out, "%s %-7s %12s  %s %s > %s%s len %d\n", line.Time.Format("15:04:05.000000"),
		line.Direction, latency, line.Proto, line.Src, line.Dst, details, line.Len)
	return err
}

var recordHeader = []string{
	"time", "netns", "container", "direction", "path", "proto", "src", "dst", "id", "seq", "len", "pid", "status", "latency_ns",
}

func (line recordLine) row() []string {
	latency := ""
	if line.LatencyNS != nil {
		latency = strconv.FormatInt(*line.LatencyNS, 10)
	}
	return []string{
		line.Time.Format(time.RFC3339Nano), strconv.FormatUint(line.NetNS, 10), line.Container, line.Direction, line.Path,
		line.Proto, line.Src, line.Dst, strconv.Itoa(int(line.ID)), strconv.FormatUint(uint64(line.Seq), 10),
		strconv.FormatUint(uint64(line.Len), 10), strconv.FormatUint(uint64(line.PID), 10), line.Status, latency,
	}
}

func writeRow(table *csv.Writer, row []string) error {
	table.Write(row)
	table.Flush()
	return table.Error()
}

// WriteAccount tells where every packet went, and what was lost on the way to the reader.
func (s *Session) WriteAccount(out io.Writer) error {
	c, err := s.Counters()
	if err != nil {
		return err
	}
	egress, ingress, err := s.Aggregates()
	if err != nil {
		return err
	}
	unfinished := c.EgressStarted - c.EgressMatched - c.EgressAmbiguous
	gso := c.EgressStartedGSO - c.EgressMatchedGSO
	fmt.Fprintf(out, "egress:  %d packets: %d matched, %d ambiguous, %d merged, %d unfinished%s\n", c.EgressStarted,
		c.EgressMatched, c.EgressAmbiguous, min(gso, unfinished), unfinished-min(gso, unfinished), quantiles(egress))
	fmt.Fprintf(out, "ingress: %d packets: %d matched, %d ambiguous, %d merged, %d unstarted%s\n", c.DeviceRx,
		c.IngressMatched, c.IngressAmbiguous, c.IngressMerged, c.IngressUnstarted, quantiles(ingress))
	if c.Malformed > 0 {
		fmt.Fprintf(out, "neither IPv4 nor IPv6: %d packets\n", c.Malformed)
	}
	fmt.Fprintf(out, "records lost: %d\n", c.RingDropped)
	audit, err := s.Audit()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "audit: devices counted %d packets, programs saw %d\n", audit.DevicePackets, audit.Seen)
	audit.writeDoubts(out, "")
	return nil
}

func quantiles(a mace.Aggregate) string {
	if a.Count == 0 {
		return ""
	}
	us := func(q float64) float64 { return float64(a.QuantileNS(q)) / 1e3 }
	return fmt.Sprintf("; p50 %.1f us, p99 %.1f us", us(.5), us(.99))
}
