package load

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// sockperfLog is what the file of sockperf's --full-log says.
type sockperfLog struct {
	rtt          *hdrhistogram.Histogram // ns
	messages     uint64                  // lines
	observations uint64                  // as the summary counts them
	dropped      uint64
	sum          time.Duration // of all round-trip times
	first, last  time.Duration // of the first message's sending, the last one's arrival, on sockperf's clock
	averageUS    float64       // of the summary
}

var (
	// "avg-rtt=" since 3.7 with --full-rtt and "avg-latency=" without it; "avg-lat=" in versions up to 3.6, which say
	// the same in both cases and have the difference in the last column's heading or nowhere.
	sockperfAverage  = regexp.MustCompile(`avg-(rtt|latency|lat)= *([0-9.]+)`)
	sockperfTotal    = regexp.MustCompile(`Total ([0-9]+) observations`)
	sockperfDropped  = regexp.MustCompile(`# dropped messages = ([0-9]+)`)
	sockperfTrouble  = regexp.MustCompile(`No (?:valid observations|messages) [^\n]*|ERROR: [^\n]*`)
	sockperfColumns  = regexp.MustCompile(`^packet, *txTime\(sec\), *rxTime\(sec\)`)
	errSockperfWords = errors.New("this version of sockperf words its output in another way than 3.x does")
)

// longestLine bounds a line of the log; real ones have some 50 bytes.
const longestLine = 4096

// parseSockperf reads the log as it comes: it may have millions of lines. The time of a message is the difference of its
// two stamps: that is a round trip in every version, whatever the last column and the summary show.
func parseSockperf(file io.Reader) (*sockperfLog, error) {
	log := &sockperfLog{rtt: newHistogram()}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, longestLine), longestLine)
	inMessages, kind := false, ""
	for lines.Scan() {
		line := lines.Text()
		switch {
		case inMessages && strings.HasPrefix(line, "---"):
			inMessages = false
		case inMessages:
			if err := log.message(line); err != nil {
				return nil, err
			}
		case sockperfColumns.MatchString(line):
			inMessages = true
		default:
			found, err := log.summary(line)
			if err != nil {
				return nil, err
			}
			if found != "" {
				kind = found
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	switch {
	case kind == "":
		return nil, fmt.Errorf("no average (avg-rtt=, avg-latency= or avg-lat=) in it: %w", errSockperfWords)
	case kind == "latency":
		return nil, fmt.Errorf("its average is of half round trips (avg-latency=) though --full-rtt was asked for: %w", errSockperfWords)
	case log.messages == 0:
		return nil, fmt.Errorf("no messages in it: %w", errSockperfWords)
	case inMessages:
		return nil, errors.New("it ends in the middle: is the disk full?")
	}
	return log, nil
}

// summary reads a line above the messages, and returns which average it has, if any.
func (l *sockperfLog) summary(line string) (average string, err error) {
	if trouble := sockperfTrouble.FindString(line); trouble != "" {
		return "", fmt.Errorf("sockperf says: %s", trouble)
	}
	if m := sockperfAverage.FindStringSubmatch(line); m != nil {
		average = m[1]
		l.averageUS, err = strconv.ParseFloat(m[2], 64)
	}
	if m := sockperfTotal.FindStringSubmatch(line); m != nil && err == nil {
		l.observations, err = strconv.ParseUint(m[1], 10, 64)
	}
	if m := sockperfDropped.FindStringSubmatch(line); m != nil && err == nil {
		l.dropped, err = strconv.ParseUint(m[1], 10, 64)
	}
	if err != nil {
		return "", fmt.Errorf("reading the line %q: %w", line, err)
	}
	return average, nil
}

// message reads "0, 2.413677634, 2.413752545, 74.911": number, sent and received in seconds, the time in us.
func (l *sockperfLog) message(line string) error {
	fields := strings.SplitN(line, ",", 4)
	if len(fields) < 3 {
		return fmt.Errorf("the line %q is no message: %w", line, errSockperfWords)
	}
	sent, err1 := parseSeconds(strings.TrimSpace(fields[1]))
	received, err2 := parseSeconds(strings.TrimSpace(fields[2]))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("the line %q is no message: %w", line, errSockperfWords)
	}
	rtt := received - sent
	if rtt < 0 {
		return fmt.Errorf("the line %q has a reply before its message", line)
	}
	if l.messages == 0 {
		l.first = sent
	}
	l.last = max(l.last, received)
	l.messages++
	l.sum += rtt
	if err := l.rtt.RecordValue(rtt.Nanoseconds()); err != nil {
		return fmt.Errorf("the line %q: %w", line, err)
	}
	return nil
}

// parseSeconds reads a decimal number of seconds exactly: as a floating-point number, time of day leaves no nanoseconds.
func parseSeconds(text string) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseUint(whole, 10, 33)
	if err != nil || len(fraction) > 9 {
		return 0, fmt.Errorf("%q is no time in seconds", text)
	}
	ns := uint64(0)
	if fraction != "" {
		if ns, err = strconv.ParseUint(fraction+strings.Repeat("0", 9-len(fraction)), 10, 32); err != nil {
			return 0, fmt.Errorf("%q is no time in seconds", text)
		}
	}
	return time.Duration(seconds)*time.Second + time.Duration(ns), nil
}
