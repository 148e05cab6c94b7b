package eval

import (
	"context"
	"strconv"
	"time"

	"tare/lab"
	"tare/stats"
)

// Payload says what the container's network adds at each packet size: the paper's Fig. 2.
type Payload struct {
	RepliesPerRun int           `json:"replies_per_run"`
	Sizes         []PayloadSize `json:"sizes"`
}

// PayloadSize is one size. A round is a run in the container between two on the host.
type PayloadSize struct {
	Bytes        int            `json:"bytes"`         // of ICMP payload
	DifferenceUs stats.Interval `json:"difference_us"` // mean RTT in the container less the host's
	NoiseUs      stats.Interval `json:"noise_us"`      // the host's second run less its first
	Native       []Sample       `json:"rounds_native"`
	NativeAgain  []Sample       `json:"rounds_native_again"`
	Container    []Sample       `json:"rounds_container"`
}

// payloadBytes are the paper's (section 4.2).
var payloadBytes = []int{16, 56, 120, 504, 1472}

const floodReplies = 2000 // in each run, as in the paper (section 4.3)

func runPayload(ctx context.Context, options Options) (*Payload, error) {
	bed, err := newBed(ctx, PartPayload, 1)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	result := &Payload{RepliesPerRun: options.floodReplies(), Sizes: make([]PayloadSize, len(payloadBytes))}
	cpus, order := allowedCPUs(), stats.NewOrder(len(payloadBytes), options.Seed)
	within := stats.NewOrder(3, options.Seed+1)
	pace := options.pace(8, 40, 9*time.Second, 40*time.Second)
	for pace.next() {
		cpu := cpus[pace.done%len(cpus)]
		for _, i := range order.Next() {
			options.progress("payload: round %d of %d, %d bytes", pace.done, pace.rounds, payloadBytes[i])
			if err := bed.payloadRound(ctx, &result.Sizes[i], payloadBytes[i], result.RepliesPerRun, cpu, within.Next()); err != nil {
				return nil, err
			}
		}
	}
	for i := range result.Sizes {
		s := &result.Sizes[i]
		s.Bytes = payloadBytes[i]
		s.DifferenceUs = difference(s.Container, s.Native, meanOf, options.Seed)
		s.NoiseUs = difference(s.NativeAgain, s.Native, meanOf, options.Seed)
	}
	return result, nil
}

func (b *bed) payloadRound(ctx context.Context, into *PayloadSize, bytes, replies, cpu int, order []int) error {
	argv := []string{"ping", "-n", "-i", "0", "-c", strconv.Itoa(replies), "-w", "30", "-s", strconv.Itoa(bytes), b.remote()}
	for _, arm := range order {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		host, samples := lab.Host, &into.Native
		switch arm {
		case 1:
			host, samples = lab.Container(1), &into.Container
		case 2:
			samples = &into.NativeAgain
		}
		rtts, err := rttsOfQuiet(ctx, b.lab, host, argv, cpu)
		if err != nil {
			return err
		}
		*samples = append(*samples, sampleOf(rtts, printedUs))
	}
	return nil
}

func (o Options) floodReplies() int {
	if o.tiny {
		return tinyReplies
	}
	return floodReplies
}
