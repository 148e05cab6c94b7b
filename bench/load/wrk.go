package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// wrkScript has wrk print its whole distribution, of which --latency shows four points. latency(i) is the i-th value that
// occurred, in us, and how often it did.
const wrkScript = `done = function(summary, latency, requests)
	local e = summary.errors
	io.write(string.format("tare-summary %d %d %d %d\n", summary.duration, summary.requests, summary.bytes,
		e.connect + e.read + e.write + e.status + e.timeout))
	for i = 1, #latency do
		local value, count = latency(i)
		io.write(string.format("tare-latency %d %d\n", value, count))
	end
	io.write("tare-end\n")
end
`

type wrkResult struct {
	rtt      *hdrhistogram.Histogram // ns
	wall     time.Duration
	requests uint64
	bytes    uint64 // of replies, headers included
	failed   uint64
	counted  uint64 // in the distribution
}

// parseWrk reads what the script wrote.
func parseWrk(output []byte) (*wrkResult, error) {
	result := &wrkResult{rtt: newHistogram()}
	summed, complete := false, false
	for line := range bytes.Lines(output) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 {
			continue
		}
		var err error
		switch fields[0] {
		case "tare-summary":
			summed = true
			err = result.summary(fields[1:])
		case "tare-latency":
			err = result.latency(fields[1:])
		case "tare-end":
			complete = true
		}
		if err != nil {
			return nil, fmt.Errorf("the line %q: %w", strings.TrimSpace(string(line)), err)
		}
	}
	if !summed || !complete {
		return nil, fmt.Errorf("its script did not run to its end (wrk 4.1 or later?): %s", oneLine(output))
	}
	return result, nil
}

func numbers(fields []string, n int) ([]uint64, error) {
	if len(fields) != n {
		return nil, fmt.Errorf("%d numbers instead of %d", len(fields), n)
	}
	values := make([]uint64, n)
	for i, field := range fields {
		var err error
		if values[i], err = strconv.ParseUint(field, 10, 40); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (r *wrkResult) summary(fields []string) error {
	n, err := numbers(fields, 4)
	if err != nil {
		return err
	}
	r.wall, r.requests, r.bytes, r.failed = time.Duration(n[0])*time.Microsecond, n[1], n[2], n[3]
	return nil
}

func (r *wrkResult) latency(fields []string) error {
	n, err := numbers(fields, 2)
	if err != nil {
		return err
	}
	us, count := n[0], n[1]
	if us > uint64(maxRTT/int64(time.Microsecond)) || count > 1<<32 {
		return errors.New("out of range")
	}
	if count == 0 {
		return nil
	}
	r.counted += count
	return r.rtt.RecordValues(int64(us)*int64(time.Microsecond), int64(count))
}

// sample makes a sample. wrk adds to its distribution what it thinks that it could not measure during long pauses, so
// that has more entries than there were requests, and a sum beyond the wall time.
func (r *wrkResult) sample(host Host) Sample {
	sample := Sample{RTT: r.rtt, Messages: r.requests, Lost: r.failed, Wall: r.wall, Host: host}
	sample.RequestsPerSecond = ratio(float64(r.requests), r.wall.Seconds())
	sample.BytesPerSecond = ratio(float64(r.bytes), r.wall.Seconds())
	sample.Checks = []Check{
		checkSome(r.requests),
		{Name: "requests that failed", OK: r.failed == 0, Got: float64(r.failed), Want: 0, Unit: "requests", Detail: "connections refused, resets, time-outs, replies other than 2xx and 3xx"},
		r.checkSum(),
	}
	return sample
}

// checkSum compares the median with the time per request. It is coarse, a matter of thousands and not of halves: the sum
// is padded, and pauses of the machine are in the mean and not in the median.
func (r *wrkResult) checkSum() Check {
	perRequest := ratio(float64(r.wall.Nanoseconds()), float64(r.requests))
	median := float64(r.rtt.ValueAtQuantile(50))
	got := ratio(median, perRequest)
	return Check{Name: "units: median latency against time per request", OK: got >= 0.02 && got <= 2.1, Got: got, Want: 1, Unit: "of time per request",
		Detail: "one connection: the median of all requests cannot be more than twice their mean"}
}
