package load

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tare/bench/arm"
)

func init() {
	w := Workload{
		Name: "icmp", Summary: "ICMP echo with iputils ping, each as soon as the last was answered; read by ping in whole us",
		Unit: RTT, Tools: []string{"ping"}, MinSize: 16, MaxSize: 65507, DefaultSize: 56, Check: needTools("ping"),
	}
	w.Start = func(ctx context.Context, link *arm.Link, p Params) (Session, error) {
		if err := w.Check(ctx); err != nil {
			return nil, err
		}
		p, err := p.withDefaults(w)
		if err != nil {
			return nil, err
		}
		if link.NoICMP != "" {
			return nil, fmt.Errorf("an echo request would not measure this arm: %s", link.NoICMP)
		}
		return &pingSession{link, p}, nil
	}
	register(50, w)
}

// pingSession needs no server: the kernel at the other end answers.
type pingSession struct {
	link   *arm.Link
	params Params
}

func (s *pingSession) Close() error { return nil }

func (s *pingSession) Warm(ctx context.Context) error {
	_, err := s.run(ctx, 50*time.Millisecond)
	return err
}

func (s *pingSession) run(ctx context.Context, d time.Duration) (*finished, error) {
	// -A: one request in flight, the next one when its reply is there. SIGINT ends it with its statistics.
	return runClient(ctx, s.link, nil, d, d, "ping", "-A", "-n", "-s", fmt.Sprint(s.params.Size), s.link.ServerAddr.String())
}

func (s *pingSession) Round(ctx context.Context, d time.Duration) (Sample, error) {
	if err := lost(s.link); err != nil {
		return Sample{}, err
	}
	reading := readHost(s.link, nil)
	done, err := s.run(ctx, d)
	if err != nil {
		return Sample{}, err
	}
	host := reading.since()
	host.Client = usageOf(done)
	result, err := parsePing(string(done.output))
	if err != nil {
		return Sample{}, fmt.Errorf("reading ping's output: %w", err)
	}
	sample := Sample{RTT: result.rtt, Messages: result.replies, Lost: result.sent - min(result.sent, result.received), Wall: result.wall, Host: host}
	sample.RequestsPerSecond = ratio(float64(result.replies), result.wall.Seconds())
	sample.Checks = []Check{
		checkSome(result.replies),
		checkMost(result.sum, result.wall),
		checkSame("ping's number of replies against its lines", "messages", "duplicates and errors have no time", float64(result.replies), float64(result.received), 0),
	}
	return sample, nil
}

type pingResult struct {
	rtt            *hdrhistogram.Histogram // ns
	replies        uint64                  // lines with a time
	sum            time.Duration
	sent, received uint64 // of the statistics
	wall           time.Duration
}

var (
	pingReply   = regexp.MustCompile(`icmp_seq=[0-9]+ .*time=([0-9.]+) ms$`)
	pingSummary = regexp.MustCompile(`^([0-9]+) packets transmitted, ([0-9]+) received,.* time ([0-9]+)ms$`)
)

// parsePing reads the output of iputils ping.
func parsePing(output string) (*pingResult, error) {
	result := &pingResult{rtt: newHistogram()}
	summed := false
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if m := pingSummary.FindStringSubmatch(line); m != nil {
			var err1, err2, err3 error
			var ms uint64
			result.sent, err1 = strconv.ParseUint(m[1], 10, 64)
			result.received, err2 = strconv.ParseUint(m[2], 10, 64)
			ms, err3 = strconv.ParseUint(m[3], 10, 40)
			if err := errors.Join(err1, err2, err3); err != nil {
				return nil, fmt.Errorf("the line %q: %w", line, err)
			}
			result.wall, summed = time.Duration(ms)*time.Millisecond, true
		}
		m := pingReply.FindStringSubmatch(line)
		if m == nil || strings.HasSuffix(line, "(DUP!)") {
			continue
		}
		ms, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, fmt.Errorf("the line %q: %w", line, err)
		}
		rtt := time.Duration(ms*float64(time.Millisecond) + 0.5)
		if err := result.rtt.RecordValue(rtt.Nanoseconds()); err != nil {
			return nil, fmt.Errorf("the line %q: %w", line, err)
		}
		result.replies++
		result.sum += rtt
	}
	if !summed {
		return nil, errors.New("no statistics of iputils ping in it (\"N packets transmitted, N received, ... time N ms\"): is this another ping?")
	}
	// The time goes from the first request to the last, and the last reply comes after that.
	if result.replies > 0 {
		result.wall += time.Duration(result.rtt.Max()) + time.Millisecond // and is printed without its fraction
	}
	return result, nil
}
