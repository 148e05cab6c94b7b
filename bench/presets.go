package bench

import (
	"time"

	"tare/bench/load"
)

// Quick takes a quarter of the time, in shorter rounds.
func (o *Options) Quick() {
	if o.Budget == 0 {
		o.Budget = QuickBudget
	}
	if o.Round == 0 {
		o.Round = QuickRound
	}
}

// What the published veth benchmark ran: sockperf ping-pong over TCP, with its smallest message.
const (
	vethWorkload = "sockperf-tcp"
	vethBytes    = 14
)

// VethBenchmark is the published comparison of loopback and Docker's bridge: first as it was done there (one run of 10 s per
// arm, some 250,000 observations, in fixed order), then as it should be.
func (o *Options) VethBenchmark() {
	o.Preset, o.SingleRun = "veth-benchmark", true
	o.Arms = []ArmSpec{{Name: "loopback"}, {Name: "docker-bridge", Optional: true}, {Name: "bridge", Optional: true}}
	o.Workloads = []Workload{{Name: vethWorkload, Size: vethBytes}}
	if o.Round == 0 {
		o.Round = 2 * time.Second
	}
	if o.Rounds == 0 && o.Budget == 0 {
		o.Rounds = 16 // 32 s of each arm: 250,000 round trips of up to 128 us
	}
}

// fullSizes of messages, in bytes: sockperf's least, one that fits a packet, one that does not, the largest of a datagram.
var fullSizes = []int{14, 1024, 16 << 10, 64 << 10}

// Full is everything that can run here.
func (o *Options) Full() {
	o.fill()
	o.Arms, o.Workloads, o.Placements = nil, nil, []string{"cross-core", "same-core"}
	for _, a := range o.KnownArms {
		o.Arms = append(o.Arms, ArmSpec{Name: a.Name, Optional: true})
	}
	for _, w := range o.KnownWorkloads {
		o.Workloads = append(o.Workloads, o.variants(w)...)
	}
	o.Budget = 30 * time.Minute
}

// variants of a workload: several sizes for round trips, its own otherwise.
func (o *Options) variants(w load.Workload) (all []Workload) {
	if w.Unit == load.RTT {
		for _, size := range fullSizes {
			if size >= w.MinSize && size <= w.MaxSize {
				all = append(all, Workload{Name: w.Name, Size: size, Optional: true})
			}
		}
	}
	if len(all) == 0 {
		all = []Workload{{Name: w.Name, Optional: true}}
	}
	return all
}
