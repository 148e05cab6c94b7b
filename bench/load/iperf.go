package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"tare/bench/arm"
)

func init() {
	w := Workload{
		Name: "throughput", Summary: "bulk TCP in one stream with iperf3, counted at the receiver",
		Unit: BytesPerSecond, Tools: []string{"iperf3"}, Check: needTools("iperf3"),
	}
	w.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
		if err := w.Check(ctx); err != nil {
			return nil, err
		}
		p, err := p.withDefaults(w)
		if err != nil {
			return nil, err
		}
		s, err := startServer(ctx, link.Server, "tcp", p.Port, "iperf3", "--server", "--bind", link.ListenAddr.String(), "--port", fmt.Sprint(p.Port))
		if err != nil {
			return nil, err
		}
		return &iperfSession{link, p, s}, nil
	}
	register(70, w)
}

type iperfSession struct {
	link   *arm.Link
	params Params
	server *server
}

func (s *iperfSession) Close() error {
	s.server.close()
	return nil
}

// Warm sends a little, which takes less than iperf3's shortest run of a second.
func (s *iperfSession) Warm(ctx context.Context) error {
	_, err := s.run(ctx, time.Second, "--bytes", "16M")
	return err
}

func (s *iperfSession) run(ctx context.Context, d time.Duration, how ...string) (*finished, error) {
	args := append([]string{"--client", s.link.ServerAddr.String(), "--port", fmt.Sprint(s.link.ServerPort(s.params.Port)), "--json",
		"--connect-timeout", "5000"}, how...)
	return runClient(ctx, s.link, s.server, d, 0, "iperf3", args...)
}

// Round runs iperf3 for d, up to whole seconds.
func (s *iperfSession) Round(ctx context.Context, d time.Duration) (Sample, error) {
	seconds := int(max(1, math.Ceil(d.Seconds())))
	reading := readHost(s.link, s.server)
	done, err := s.run(ctx, time.Duration(seconds)*time.Second, "--time", fmt.Sprint(seconds))
	if err != nil {
		return Sample{}, err
	}
	host := reading.since()
	host.Client = usageOf(done)
	result, err := parseIperf(done.output)
	if err != nil {
		return Sample{}, err
	}
	return result.sample(host), nil
}

// iperfResult is the part of iperf3's JSON that is used.
type iperfResult struct {
	Error string `json:"error"`
	End   struct {
		Sent     iperfSum `json:"sum_sent"`
		Received iperfSum `json:"sum_received"`
	} `json:"end"`
}

type iperfSum struct {
	Seconds       float64 `json:"seconds"`
	Bytes         float64 `json:"bytes"`
	BitsPerSecond float64 `json:"bits_per_second"`
	Retransmits   uint64  `json:"retransmits"`
}

func parseIperf(text []byte) (*iperfResult, error) {
	var r iperfResult
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading iperf3's JSON: %w", err)
	}
	// It ends with 0 all the same.
	if r.Error != "" {
		return nil, fmt.Errorf("iperf3 says: %s", r.Error)
	}
	if r.End.Received.Bytes <= 0 || r.End.Received.Seconds <= 0 || r.End.Received.Seconds > maxSeconds {
		return nil, fmt.Errorf("reading iperf3's JSON: no bytes received (end.sum_received)")
	}
	return &r, nil
}

// maxSeconds is more than any round takes; it keeps nonsense out of time.Duration.
const maxSeconds = 1e6

func (r *iperfResult) sample(host Host) Sample {
	received := r.End.Received
	sample := Sample{BytesPerSecond: received.Bytes / received.Seconds, Retransmits: r.End.Sent.Retransmits,
		Wall: time.Duration(received.Seconds * float64(time.Second)), Host: host}
	sample.Checks = []Check{
		checkSame("units: bytes over time against iperf3's rate", "bytes/s", "the rate is in bits", sample.BytesPerSecond, received.BitsPerSecond/8, sameWithin),
		// What is on its way at the end was sent and not received.
		checkSame("bytes received against bytes sent", "bytes", "the rest is in buffers", received.Bytes, r.End.Sent.Bytes, 0.2),
	}
	return sample
}
