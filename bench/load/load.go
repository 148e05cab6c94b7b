// Package load puts workloads on a link: it starts a server at one end, a client at the other, and returns what a round
// of some seconds measured, whole distributions and not just their averages. The tools are sockperf, ping, iperf3, wrk
// and nginx as the distribution has them, and a small prober of tare's own, against which they are checked.
//
// Every round is checked for its units: the times of all messages must add up to the time that the round took. A tool
// that prints half a round trip and calls it latency fails that.
package load

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/arm"
)

// Unit is what a workload measures.
type Unit string

// The units. Half a round trip is called one-way and nothing else.
const (
	RTT               Unit = "rtt"        // nanoseconds from sending a request to having its reply
	OneWay            Unit = "one-way"    // nanoseconds, half of an RTT
	BytesPerSecond    Unit = "bytes/s"    // payload received
	RequestsPerSecond Unit = "requests/s" // replies received
)

// Workload is one kind of traffic.
type Workload struct {
	Name    string
	Summary string // one line
	// Unit is the workload's main result. A Sample of RequestsPerSecond has a distribution of RTTs as well.
	Unit  Unit
	Tools []string // binaries of the host that it runs
	// MinSize, MaxSize and DefaultSize bound Params.Size; all 0 where the workload has no message size.
	MinSize, MaxSize, DefaultSize int
	// Paced workloads take Params.Rate.
	Paced bool
	// Check returns nil where the tools are there, else what is missing, in one line.
	Check func(ctx context.Context) error
	// Start starts the server and returns when it listens.
	Start func(ctx context.Context, link *arm.Link, p Params) (Session, error)
}

// Params choose a workload's variant.
type Params struct {
	Size int    `json:"size_bytes,omitempty"`      // of a message's payload, both ways; 0: the workload's default
	Rate int    `json:"rate_per_second,omitempty"` // messages sent per second; 0: each as soon as the last was answered
	Port uint16 `json:"port,omitempty"`            // what the server listens on; 0: arm.DefaultPort
}

// Session is a workload with its server up.
type Session interface {
	// Warm resolves neighbours, fills caches and connection tables. Nothing of it is reported.
	Warm(ctx context.Context) error
	// Round runs the client for about d and returns what it measured. An error means there is no sample; a sample with
	// a check that is not OK must not be used either.
	Round(ctx context.Context, d time.Duration) (Sample, error)
	// Close ends the server.
	Close() error
}

// Sample is what one round measured.
type Sample struct {
	// RTT has every message's round-trip time in ns, never half of it; nil for throughput.
	RTT      *hdrhistogram.Histogram
	Messages uint64        // answered; segments and the like are not messages
	Lost     uint64        // sent and not answered
	Wall     time.Duration // from the first message to the last reply
	// BytesPerSecond is payload received by the server, RequestsPerSecond the replies received by the client.
	BytesPerSecond    float64
	RequestsPerSecond float64
	Retransmits       uint64 // TCP segments sent again, where the tool tells
	Checks            []Check
	Host              Host
}

// Check is a consistency check of one round.
type Check struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	Got    float64 `json:"got"`
	Want   float64 `json:"want"`
	Unit   string  `json:"unit"`
	Detail string  `json:"detail"` // what was compared, and within which bounds
}

// Failed returns the first check that is not OK, as an error.
func (s Sample) Failed() error {
	for _, c := range s.Checks {
		if !c.OK {
			return fmt.Errorf("check %q failed: got %.4g %s, want %.4g: %s", c.Name, c.Got, c.Unit, c.Want, c.Detail)
		}
	}
	return nil
}

// Histograms hold 1 ns to 100 s; three digits keep a value of 20 us within 20 ns.
const (
	minRTT    = 1
	maxRTT    = int64(100 * time.Second)
	rttDigits = 3
)

// newHistogram returns the histogram that all workloads use, so that they can be merged.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(minRTT, maxRTT, rttDigits) }
