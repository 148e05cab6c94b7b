package load

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"tare/bench/arm"
)

// sockperf's own bounds, and what it leaves out of a run: 400 ms at the start and 50 ms at the end.
const (
	sockperfMinSize = 14
	sockperfMaxSize = 65507
	// Before a run it sleeps for two seconds and calibrates its clock.
	sockperfStart = 3 * time.Second
)

func init() {
	for i, protocol := range []string{"tcp", "udp"} {
		w := Workload{
			Name:    "sockperf-" + protocol,
			Summary: "sockperf's ping-pong over " + protocol + ", every message's time read from its full log",
			Unit:    RTT, Tools: []string{"sockperf"}, MinSize: sockperfMinSize, MaxSize: sockperfMaxSize, DefaultSize: 64,
			Check: needTools("sockperf"),
		}
		w.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
			return startSockperf(ctx, w, protocol, link, p)
		}
		register(30+10*i, w)
	}
}

type sockperfSession struct {
	link     *arm.Link
	params   Params
	protocol string
	server   *server
}

func sockperfProtocol(protocol string) []string {
	if protocol == "tcp" {
		return []string{"--tcp"}
	}
	return nil // UDP is its default and has no flag
}

func startSockperf(ctx context.Context, w Workload, protocol string, link *arm.Link, p Params) (Session, error) {
	if err := w.Check(ctx); err != nil {
		return nil, err
	}
	p, err := p.withDefaults(w)
	if err != nil {
		return nil, err
	}
	args := append([]string{"server", "-i", link.ListenAddr.String(), "-p", fmt.Sprint(p.Port)}, sockperfProtocol(protocol)...)
	s, err := startServer(ctx, link.Server, protocol, p.Port, "sockperf", args...)
	if err != nil {
		return nil, err
	}
	return &sockperfSession{link, p, protocol, s}, nil
}

func (s *sockperfSession) Close() error {
	s.server.close()
	return nil
}

// Warm does nothing: sockperf does not count the first 400 ms of any run.
func (s *sockperfSession) Warm(ctx context.Context) error { return ctx.Err() }

// Round runs sockperf for d, up to whole seconds, of which 0.55 s less than d is measured.
func (s *sockperfSession) Round(ctx context.Context, d time.Duration) (Sample, error) {
	seconds := int(max(1, math.Ceil(d.Seconds())))
	path := filepath.Join(s.link.Dir, "sockperf.csv")
	defer os.Remove(path)
	args := append([]string{"ping-pong", "-i", s.link.ServerAddr.String(), "-p", fmt.Sprint(s.link.ServerPort(s.params.Port)),
		"-t", fmt.Sprint(seconds), "-m", fmt.Sprint(s.params.Size), "--full-rtt", "--full-log", path}, sockperfProtocol(s.protocol)...)
	reading := readHost(s.link, s.server)
	done, err := runClient(ctx, s.link, s.server, time.Duration(seconds)*time.Second+sockperfStart, 0, "sockperf", args...)
	if err != nil {
		return Sample{}, err
	}
	host := reading.since()
	host.Client = usageOf(done)
	file, err := os.Open(path)
	if err != nil {
		// It exits with 0 whatever happens; what it says is all there is.
		return Sample{}, fmt.Errorf("the sockperf client at %s wrote no log: %s", s.link.Client, oneLine(append(done.output, done.said...)))
	}
	defer file.Close()
	log, err := parseSockperf(file)
	if err != nil {
		return Sample{}, fmt.Errorf("reading sockperf's log: %w", err)
	}
	return log.sample(host), nil
}

// sample makes a sample of a log and holds its three accounts of time against each other: every message's, the summary's,
// and the clock's.
func (l *sockperfLog) sample(host Host) Sample {
	wall := l.last - l.first
	sample := Sample{RTT: l.rtt, Messages: l.messages, Lost: l.dropped, Wall: wall, Host: host}
	sample.RequestsPerSecond = ratio(float64(l.messages), wall.Seconds())
	mean := ratio(float64(l.sum.Nanoseconds()), float64(l.messages))
	busy := checkSum(l.sum, wall, leastBusy)
	if l.dropped > 0 {
		busy = checkMost(l.sum, wall)
	}
	sample.Checks = []Check{
		checkSome(l.messages),
		busy,
		checkSame("units: sockperf's average against the mean of its log", "us", "a half round trip, as sockperf prints without --full-rtt, would be half",
			l.averageUS, mean/1000, sameWithin),
		checkSame("sockperf's number of observations against its log's lines", "messages", "each line is a message",
			float64(l.messages), float64(l.observations), 0),
	}
	return sample
}
