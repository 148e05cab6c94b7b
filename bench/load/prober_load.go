package load

import (
	"context"
	"fmt"
	"os"
	"time"

	"tare/bench/arm"
	"tare/bench/load/prober"
)

func init() {
	for i, protocol := range []string{"tcp", "udp"} {
		w := Workload{
			Name: protocol, Summary: "ping-pong over " + protocol + " with tare's own prober: each message waits for the last one's reply",
			Unit: RTT, MinSize: prober.MinSize, MaxSize: prober.MaxSize, DefaultSize: 64, Paced: true, Check: canProbe,
		}
		w.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
			return startProber(ctx, w, protocol, link, p)
		}
		register(10+10*i, w)
	}
	rates := Workload{
		Name: "tcp-rr", Summary: "TCP requests at a fixed rate, 5 to 100000 a second: at low rates every message wakes sleeping CPUs",
		Unit: RTT, MinSize: prober.MinSize, MaxSize: prober.MaxSize, DefaultSize: 64, Paced: true, Check: canProbe,
	}
	rates.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
		if p.Rate == 0 {
			p.Rate = defaultRate
		}
		return startProber(ctx, rates, "tcp", link, p)
	}
	register(60, rates)
}

// Rates is the sweep of tcp-rr in messages per second, from idle wake-ups to near a hot loop. The hot loop itself is the
// workload tcp without a rate.
var Rates = []int{5, 50, 500, 5000}

const defaultRate = 100

// The part of a round that goes before it unrecorded, up to a bound.
const (
	warmPart = 10
	mostWarm = 20 * time.Millisecond
)

// proberPath is this program itself. Containers have it mounted.
func proberPath() (string, error) { return os.Executable() }

func canProbe(context.Context) error {
	_, err := proberPath()
	return err
}

type proberSession struct {
	link     *arm.Link
	params   Params
	protocol string
	path     string
	server   *server
}

func startProber(ctx context.Context, w Workload, protocol string, link *arm.Link, p Params) (Session, error) {
	p, err := p.withDefaults(w)
	if err != nil {
		return nil, err
	}
	path, err := proberPath()
	if err != nil {
		return nil, fmt.Errorf("finding tare's own program: %w", err)
	}
	s, err := startServer(ctx, link.Server, protocol, p.Port, path, prober.ServerArgs(protocol, link.ListenAddr.String(), p.Port, p.Size)...)
	if err != nil {
		return nil, err
	}
	return &proberSession{link, p, protocol, path, s}, nil
}

func (s *proberSession) Close() error {
	s.server.close()
	return nil
}

func (s *proberSession) Warm(ctx context.Context) error {
	_, err := s.run(ctx, 20*time.Millisecond, 0)
	return err
}

func (s *proberSession) run(ctx context.Context, d time.Duration, rate int) (*prober.Result, error) {
	warm := min(d/warmPart, mostWarm)
	if rate > 0 {
		warm = 0 // at low rates the first messages are the measurement
	}
	args := prober.ClientArgs(s.protocol, s.link.ServerAddr.String(), s.link.ServerPort(s.params.Port), s.params.Size, rate, d-warm, warm)
	done, err := runClient(ctx, s.link, s.server, d, 0, s.path, args...)
	if err != nil {
		return nil, err
	}
	return prober.ParseResult(done.output)
}

func (s *proberSession) Round(ctx context.Context, d time.Duration) (Sample, error) {
	reading := readHost(s.link, s.server)
	result, err := s.run(ctx, d, s.params.Rate)
	if err != nil {
		return Sample{}, err
	}
	host := reading.since()
	host.Client = Usage{true, result.Usage.VoluntarySwitches, result.Usage.InvoluntarySwitches, result.Usage.Migrations}
	sum, wall := time.Duration(result.SumNS), time.Duration(result.WallNS)
	sample := Sample{RTT: result.Histogram, Messages: result.Messages, Lost: result.Lost, Wall: wall, Host: host}
	sample.RequestsPerSecond = ratio(float64(result.Messages), wall.Seconds())
	sample.Checks = []Check{checkSome(result.Messages), proberSum(s.params.Rate, result.Lost, sum, wall)}
	if result.Messages > 0 {
		sample.Checks = append(sample.Checks, checkSame("units: mean of the histogram against the exact mean", "ns", "the histogram's bins are 0.1% wide",
			result.Histogram.Mean(), float64(result.SumNS)/float64(result.Messages), sameWithin))
	}
	return sample, nil
}

// proberSum is the check that fits: a loop that waits for its next turn, or for a datagram that was lost, is idle.
func proberSum(rate int, lost uint64, sum, wall time.Duration) Check {
	if rate > 0 || lost > 0 {
		return checkMost(sum, wall)
	}
	return checkSum(sum, wall, leastBusy)
}
