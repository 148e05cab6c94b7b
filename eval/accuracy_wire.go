package eval

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tare/lab"
	"tare/mace"
	"tare/stats"
)

// WireTool compares the corrected RTTs of one tool with the tap's, reply by reply.
type WireTool struct {
	Tool        string         `json:"tool"`
	RawUs       stats.Interval `json:"raw_us"` // medians over rounds of each round's median
	TapUs       stats.Interval `json:"tap_us"`
	RawErrorUs  stats.Interval `json:"raw_error_us"`  // printed less tap, of each round the median
	ErrorUs     stats.Interval `json:"error_us"`      // corrected less tap, of each round the median
	MeanErrorUs stats.Interval `json:"mean_error_us"` // ... and the mean
	Coverage    Coverage       `json:"coverage"`
	Compared    int            `json:"compared"` // replies that both know
	RoundsRaw   []Sample       `json:"rounds_raw_error"`
	RoundsError []Sample       `json:"rounds_error"`
}

type wireTool struct {
	name string
	argv func(b *bed, e effort) []string
	// byOrdinal: the tool prints which of its requests was answered, not the number in the packet.
	byOrdinal bool
}

// Two take the kernel's receive stamp (ping, fping), two their own clock.
var wireTools = []wireTool{
	{"ping", func(b *bed, e effort) []string { return b.pingArgv(e) }, false},
	{"ping -U", func(b *bed, e effort) []string { return b.pingArgv(e, "-U") }, false},
	{"fping", func(b *bed, e effort) []string {
		return []string{"fping", "-p", "1", "-i", "1", "-b", measuredPayload, "-c", strconv.Itoa(e.spaced), b.remote()}
	}, true},
	{"busybox ping", func(b *bed, e effort) []string {
		return []string{"busybox", "ping", "-i", "0.001", "-w", "50", "-s", measuredPayload, "-c", strconv.Itoa(e.spaced), b.remote()}
	}, false},
}

type wireRuns struct {
	tool               wireTool
	effort             effort
	raw, tap           []Sample
	rawError, netError []Sample
	coverage           Coverage
	compared           int
}

func (b *bed) wire(ctx context.Context, runs *wireRuns) error {
	tap, err := openTap(b.lab, b.nic.Index, measuredIPBytes)
	if err != nil {
		return err
	}
	defer tap.close()
	run, err := b.runCorrected(ctx, "wire", runs.tool.argv(b, runs.effort))
	if err != nil {
		return err
	}
	trips, err := tap.trips()
	if err != nil {
		return err
	}
	return runs.add(run, trips)
}

// trips is what the tap has seen since it was opened.
func (t *tap) trips() ([]tapTrip, error) {
	time.Sleep(settle)
	var packets []tapped
	if err := t.drain(func(p tapped) { packets = append(packets, p) }); err != nil {
		return nil, err
	}
	dropped, err := t.dropped()
	if err == nil && dropped > 0 {
		err = fmt.Errorf("the tap lost %d packets", dropped)
	}
	return pairTrips(packets), err
}

func (r *wireRuns) add(run correctedRun, trips []tapTrip) error {
	byNumber := map[int]float64{}
	for _, trip := range trips {
		number := int(trip.Seq)
		if r.tool.byOrdinal {
			number = trip.Ordinal
		}
		byNumber[number] = trip.RTTUs()
	}
	var raw, tap, rawError, netError []float64
	for _, reply := range run.replies {
		tapUs, ok := byNumber[reply.Seq]
		if !ok || reply.CorrectedUs == nil {
			continue
		}
		raw, tap = append(raw, reply.RTTUs), append(tap, tapUs)
		rawError, netError = append(rawError, reply.RTTUs-tapUs), append(netError, *reply.CorrectedUs-tapUs)
	}
	if len(netError) == 0 {
		return errors.New("no corrected reply is among those that the tap saw")
	}
	r.coverage.add(run)
	r.compared += len(netError)
	r.raw, r.tap = append(r.raw, sampleOf(raw, printedUs)), append(r.tap, sampleOf(tap, 0))
	r.rawError, r.netError = append(r.rawError, sampleOf(rawError, 0)), append(r.netError, sampleOf(netError, 0))
	return nil
}

func (r *wireRuns) result(seed uint64) WireTool {
	median := func(samples []Sample, of func(Sample) float64) stats.Interval {
		return rounded(stats.BootstrapMedian(column(samples, of), seed))
	}
	return WireTool{
		Tool: r.tool.name, RawUs: median(r.raw, medianOf), TapUs: median(r.tap, medianOf),
		RawErrorUs: median(r.rawError, medianOf), ErrorUs: median(r.netError, medianOf), MeanErrorUs: median(r.netError, meanOf),
		Coverage: r.coverage, Compared: r.compared, RoundsRaw: r.rawError, RoundsError: r.netError,
	}
}

// tapShare measures how long after the tap's stamp of a sent packet the program at the NIC takes its time, as median of one
// run. What is between is the making of the tap's copy, and the program itself.
func (b *bed) tapShare(ctx context.Context, e effort) (float64, error) {
	tap, err := openTap(b.lab, b.nic.Index, measuredIPBytes)
	if err != nil {
		return 0, err
	}
	defer tap.close()
	path, err := mace.ParsePath("wire")
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	left := map[uint32]int64{}
	watch, err := b.startWatch(mace.Options{Path: path}, []string{lab.Container(1)}, drainEvery, func(_ int, r *mace.Record) {
		mu.Lock()
		defer mu.Unlock()
		packet, ok := mace.ParsePacket(r.Header, int(r.Len))
		if ok && r.Kind == mace.Egress && r.Status == mace.Matched && packet.EchoRequest() {
			left[packet.Seq] = r.OuterNS
		}
	})
	if err != nil {
		return 0, err
	}
	defer watch.close()
	if _, err := rttsOf(ctx, b.lab, lab.Container(1), b.pingArgv(e), anyCPU); err != nil {
		return 0, err
	}
	if err := watch.finish(); err != nil {
		return 0, err
	}
	trips, err := tap.trips()
	if err != nil {
		return 0, err
	}
	ahead := realMinusMono()
	var shares []float64
	for _, trip := range trips {
		if outerNS, ok := left[uint32(trip.Seq)]; ok {
			shares = append(shares, float64(outerNS-(trip.TxNS-ahead))/1e3)
		}
	}
	if len(shares) == 0 {
		return 0, errors.New("no packet was seen by both the tap and the program at the NIC")
	}
	return stats.Median(shares), nil
}
