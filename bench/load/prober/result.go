package prober

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

// Result is what a client found out.
type Result struct {
	Messages uint64 `json:"messages"` // answered
	Lost     uint64 `json:"lost"`     // not answered
	Late     uint64 `json:"late"`     // sent after they were due, because the one before was slow
	WallNS   int64  `json:"wall_ns"`  // from the start to the last reply
	SumNS    int64  `json:"sum_ns"`   // of all round-trip times
	Usage    Usage  `json:"usage"`    // of the client while it measured

	Histogram *hdrhistogram.Histogram `json:"-"`
	Encoded   string                  `json:"histogram"` // HdrHistogram V2, compressed, base64
}

// Usage is what the scheduler did to the client.
type Usage struct {
	VoluntarySwitches   uint64 `json:"voluntary_switches"`
	InvoluntarySwitches uint64 `json:"involuntary_switches"`
	Migrations          uint64 `json:"migrations"`
}

func (r *Result) write(out io.Writer) error {
	encoded, err := r.Histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encoding the histogram: %w", err)
	}
	r.Encoded = string(encoded)
	return json.NewEncoder(out).Encode(r)
}

// ParseResult reads what a client printed.
func ParseResult(text []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading the prober's result: %w", err)
	}
	var err error
	if r.Histogram, err = decode(r.Encoded); err != nil {
		return nil, fmt.Errorf("reading the prober's histogram: %w", err)
	}
	if count := uint64(r.Histogram.TotalCount()); count != r.Messages {
		return nil, fmt.Errorf("reading the prober's result: %d messages, and %d in the histogram", r.Messages, count)
	}
	return &r, nil
}

// decode is hdrhistogram.Decode for text that may be damaged: the library indexes it without looking.
func decode(text string) (h *hdrhistogram.Histogram, err error) {
	defer func() {
		if r := recover(); r != nil {
			h, err = nil, fmt.Errorf("damaged: %v", r)
		}
	}()
	return hdrhistogram.Decode([]byte(text))
}

func readUsage() Usage {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}
	}
	return Usage{uint64(r.Nvcsw), uint64(r.Nivcsw), migrations()}
}

func (u Usage) since(before Usage) Usage {
	return Usage{u.VoluntarySwitches - before.VoluntarySwitches, u.InvoluntarySwitches - before.InvoluntarySwitches,
		u.Migrations - before.Migrations}
}

// migrations reads how often the scheduler moved this thread; 0 where the kernel does not tell.
func migrations() uint64 {
	text, err := os.ReadFile("/proc/thread-self/sched")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "se.nr_migrations" {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}
