package eval

import (
	"context"
	"strconv"

	"tare/lab"
	"tare/stats"
)

// BareMetal compares what ping in a container prints, corrected, with what it prints on the host itself.
type BareMetal struct {
	// Medians over rounds of each round's median.
	NativeUs    stats.Interval `json:"native_us"`
	ContainerUs stats.Interval `json:"container_us"` // as ping printed it
	CorrectedUs stats.Interval `json:"corrected_us"`
	// Medians over rounds of the difference to the native run of the same round.
	RawErrorUs   stats.Interval `json:"raw_error_us"` // container less native: what there is to correct
	ErrorUs      stats.Interval `json:"error_us"`     // corrected less native, of medians
	MeanErrorUs  stats.Interval `json:"mean_error_us"`
	NoiseUs      stats.Interval `json:"noise_us"` // a second native run less the first: what no difference resolves
	Coverage     Coverage       `json:"coverage"`
	RoundsNative []Sample       `json:"rounds_native"`
	RoundsAgain  []Sample       `json:"rounds_native_again"`
	RoundsRaw    []Sample       `json:"rounds_container"`
	RoundsNet    []Sample       `json:"rounds_corrected"`
}

type bareMetalRuns struct {
	native, again, raw, net []Sample
	coverage                Coverage
}

const (
	repliesPerRun = 300
	// printedUs is the resolution of the RTTs that ping, fping and busybox print below 1 ms.
	printedUs = 1.0
	// A length that the floods beside it do not have; see openTap.
	measuredPayload = "64"
	measuredIPBytes = 20 + 8 + 64
)

// pingArgv pings 1,000 times a second, which root may. -w ends it should replies fail to come.
func (b *bed) pingArgv(more ...string) []string {
	argv := append([]string{"ping", "-n"}, more...)
	return append(argv, "-i", "0.001", "-c", strconv.Itoa(repliesPerRun), "-w", "30", "-s", measuredPayload, b.remote())
}

// native runs ping on the lab's host, with nothing attached.
func (b *bed) native(ctx context.Context, into *[]Sample) error {
	rtts, err := rttsOf(ctx, b.lab, lab.Host, b.pingArgv(), anyCPU)
	if err == nil {
		*into = append(*into, sampleOf(rtts, printedUs))
	}
	return err
}

func (b *bed) bareMetal(ctx context.Context, runs *bareMetalRuns) error {
	run, err := b.runCorrected(ctx, "bare-metal", b.pingArgv())
	if err != nil {
		return err
	}
	var raw, net []float64
	for _, reply := range run.replies {
		raw = append(raw, reply.RTTUs)
		if reply.CorrectedUs != nil {
			net = append(net, *reply.CorrectedUs)
		}
	}
	runs.coverage.add(run)
	runs.raw = append(runs.raw, sampleOf(raw, printedUs))
	runs.net = append(runs.net, sampleOf(net, 0)) // less a time in ns, whole us are whole no more
	return nil
}

func (r *bareMetalRuns) result(seed uint64) BareMetal {
	median := func(samples []Sample) stats.Interval {
		return rounded(stats.BootstrapMedian(column(samples, medianOf), seed))
	}
	return BareMetal{
		NativeUs: median(r.native), ContainerUs: median(r.raw), CorrectedUs: median(r.net),
		RawErrorUs:  difference(r.raw, r.native, medianOf, seed),
		ErrorUs:     difference(r.net, r.native, medianOf, seed),
		MeanErrorUs: difference(r.net, r.native, meanOf, seed),
		NoiseUs:     difference(r.again, r.native, medianOf, seed),
		Coverage:    r.coverage, RoundsNative: r.native, RoundsAgain: r.again, RoundsRaw: r.raw, RoundsNet: r.net,
	}
}
