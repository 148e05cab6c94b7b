package eval

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"tare/lab"
	"tare/mace"
)

// FalseMatches says how often a packet was given another one's time, beside traffic that reuses buffers all the time.
type FalseMatches struct {
	Path    string `json:"path"`
	Wanted  int    `json:"wanted"`
	Packets int    `json:"packets"` // matched, of c1, and compared with the tap
	// FalseMatches is the sum of the next five: 0 is what the design promises.
	FalseMatches     int `json:"false_matches"`
	WrongIdentity    int `json:"wrong_identity"` // the tap saw no such packet
	WrongDestination int `json:"wrong_destination"`
	WrongTime        int `json:"wrong_time"` // more than a millisecond from the tap's time of that packet
	Repeated         int `json:"repeated"`   // the same packet matched twice
	// Matches of packets that never came near the NIC: those of containers that only talk to each other.
	LocalMatches uint64 `json:"local_matches"`
	// Examples describe the first few of them.
	Examples []string `json:"examples,omitempty"`
	// Unverifiable packets could not be looked up, because the tap itself lost some.
	Unverifiable   int    `json:"unverifiable"`
	TapLost        uint32 `json:"tap_lost"`
	RecordsDropped uint64 `json:"records_dropped"`

	// What the identity check has kept from being false matches.
	RejectedIdentity uint64 `json:"rejected_identity"`
	RejectedAge      uint64 `json:"rejected_age"`
	// Packets of the other containers that passed meanwhile.
	OtherPackets uint64 `json:"other_packets"`
	Ambiguous    uint64 `json:"ambiguous"`
	// Time of the program at the NIC after the tap's.
	EgressAfterTapUs  Sample `json:"egress_after_tap_us"`
	IngressAfterTapUs Sample `json:"ingress_after_tap_us"`
}

const (
	defaultPackets = 100_000
	// timeAgreement is how far the times of one packet, by the program and by the tap, may be apart.
	timeAgreement = time.Millisecond
	// falseMatchTime bounds the whole: a flood beside all the other traffic may be slow.
	falseMatchTime = 3 * time.Minute
	drainBusyEvery = 4 * time.Millisecond
	localHosts     = 4 // c2 to c5
)

func runFalseMatches(ctx context.Context, options Options) (*FalseMatches, error) {
	packets := options.Packets
	if packets == 0 {
		packets = defaultPackets
	}
	bed, err := newBed(ctx, PartFalseMatches, 1+localHosts)
	if err != nil {
		return nil, err
	}
	defer bed.close()
	path, err := mace.ParsePath("bare-metal")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, falseMatchTime)
	defer cancel()
	return bed.falseMatches(ctx, options, path, packets)
}

// falseMatches watches all containers. Only c1 and the flood of c2 use the NIC: the others' packets are there to be
// mistaken for theirs.
func (b *bed) falseMatches(ctx context.Context, options Options, path mace.Path, packets int) (*FalseMatches, error) {
	referee := newReferee(b.lab.ContainerAddr4(1), b.lab.RemoteAddr4())
	tap, err := openTap(b.lab, b.nic.Index, 0)
	if err != nil {
		return nil, err
	}
	defer tap.close()
	ahead := realMinusMono() // nobody sets the clock within a minute or so; if somebody does, times disagree
	var hosts []string
	for i := 1; i <= 1+localHosts; i++ {
		hosts = append(hosts, lab.Container(i))
	}
	watch, err := b.startWatch(mace.Options{Path: path, RingBytes: 16 << 20}, hosts, drainBusyEvery, func(host int, r *mace.Record) {
		if host == 0 && r.Status == mace.Matched {
			referee.record(r)
		}
	})
	if err != nil {
		return nil, err
	}
	defer watch.close()
	stop, err := b.otherTraffic(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	tapErr := make(chan error, 1)
	drained, stopDraining := context.WithCancel(ctx)
	go func() { tapErr <- tap.drainUntil(drained, func(p tapped) { referee.tapped(p, ahead) }) }()
	err = b.flood(ctx, packets, options, referee)
	stopDraining()
	if tapFailed := <-tapErr; err == nil {
		err = tapFailed
	}
	if err == nil {
		err = watch.finish()
	}
	if err == nil {
		err = tap.drain(func(p tapped) { referee.tapped(p, ahead) })
	}
	if err != nil {
		return nil, err
	}
	lost, err := tap.dropped()
	if err != nil {
		return nil, err
	}
	result := referee.judge()
	result.Path, result.Wanted, result.TapLost = path.Name, packets, lost
	if lost > 0 {
		// A tap that lost packets cannot say that there was none.
		result.Unverifiable, result.WrongIdentity = result.WrongIdentity, 0
		result.Packets -= result.Unverifiable
	}
	return result, result.complete(watch)
}

// flood has c1 flood the remote until enough packets are measured.
func (b *bed) flood(ctx context.Context, packets int, options Options, referee *referee) error {
	for chunk := 0; referee.count() < packets; chunk++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("with %d of %d packets measured: %w", referee.count(), packets, context.Cause(ctx))
		}
		options.progress("false matches: %d of %d packets", referee.count(), packets)
		// Chunks keep sequence numbers from coming round within one. Each request has a reply, which is measured, too.
		requests := min(10_000, (packets-referee.count()+1)/2+1)
		argv := []string{"ping", "-n", "-q", "-i", "0", "-c", strconv.Itoa(requests), "-w", "30", "-s", measuredPayload, b.remote()}
		before := referee.count()
		if err := run(ctx, b.lab, lab.Container(1), argv, anyCPU, nil); err != nil {
			return err
		}
		time.Sleep(3 * drainBusyEvery)
		if referee.count() == before {
			return fmt.Errorf("no packet of c1 was matched in chunk %d", chunk)
		}
	}
	return nil
}

// otherTraffic is everything beside the measured flood: TCP, UDP and ICMP between containers, some of it with c1 itself,
// and one flood by the NIC. stop ends it.
func (b *bed) otherTraffic(ctx context.Context) (stop func(), err error) {
	load, err := b.lab.StartBackground(ctx, lab.Background{Floods: 1, LocalICMP: true, LocalUDP: true, LocalTCP: true, For: falseMatchTime})
	if err != nil {
		return nil, err
	}
	// The lab's own local traffic is between two containers; these are between others.
	local, cancel := context.WithCancel(ctx)
	var floods []*exec.Cmd
	for _, pair := range [][2]int{{4, 5}, {5, 1}} {
		seconds := strconv.Itoa(int(falseMatchTime / time.Second))
		cmd := exec.CommandContext(local, "ping", "-f", "-q", "-n", "-w", seconds, b.lab.ContainerAddr4(pair[1]).String())
		if err = startPinned(b.lab, lab.Container(pair[0]), cmd, anyCPU); err != nil {
			break
		}
		floods = append(floods, cmd)
	}
	stop = func() {
		cancel()
		for _, cmd := range floods {
			_ = cmd.Wait()
		}
		_ = load.Stop()
	}
	if err != nil {
		stop()
		return nil, fmt.Errorf("starting traffic between containers: %w", err)
	}
	return stop, nil
}

// complete adds what the engine counted.
func (f *FalseMatches) complete(w *watch) error {
	rejections, err := w.engine.Rejections()
	if err != nil {
		return err
	}
	f.RejectedIdentity, f.RejectedAge = rejections.Identity, rejections.Age
	for i, ns := range w.namespaces {
		c, err := ns.Counters()
		if err != nil {
			return err
		}
		f.Ambiguous += c.EgressAmbiguous + c.IngressAmbiguous
		if i == 0 {
			f.RecordsDropped = c.RingDropped
			continue
		}
		f.OtherPackets += c.DeviceTx + c.DeviceRx
		if i > 1 { // c2 floods the remote, and is matched rightly
			f.LocalMatches += c.EgressMatched + c.IngressMatched
		}
	}
	f.FalseMatches = f.WrongIdentity + f.WrongDestination + f.WrongTime + f.Repeated + int(f.LocalMatches)
	return nil
}

func (f *FalseMatches) targets() []Target {
	return []Target{
		target("false matches", float64(f.FalseMatches), 0, ""),
		targetAtLeast("packets compared with the tap", float64(f.Packets), float64(f.Wanted), ""),
	}
}

// drainUntil reads the tap until ctx ends.
func (t *tap) drainUntil(ctx context.Context, f func(tapped)) error {
	tick := time.NewTicker(drainBusyEvery)
	defer tick.Stop()
	for {
		if err := t.drain(f); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
