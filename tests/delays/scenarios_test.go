package delays

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"tare/lab"
)

// Where a delay is, as seen by a path.
const (
	inside  = "inside"  // between the path's inner and outer end: the container's network
	outside = "outside" // on the other side of one of the ends: what a tool on the host would see, too
)

// scenario is one delay in one place. The lab with it is compared with the lab without it.
type scenario struct {
	delay, without string // as for `tare lab up --delay`; without may be ""
	as             string
	where          string
	growth         growth
	pace           pace
	// xdp: the container's device rebuilds packets, so that they are known by what is in them. Those that a process
	// forwards are new ones to the kernel, too.
	xdp bool
	// awayFromBusy keeps the tool off the CPU that is kept busy: it is packets that are to wait, not their sender.
	awayFromBusy bool
	// printed: what `tare run` makes of the RTTs that ping prints, instead of what a session sees of all tools.
	printed bool
}

func (s scenario) name() string {
	name := fmt.Sprintf("%s is %s of %s", s.delay, s.where, s.as)
	if s.printed {
		name += " in what ping prints"
	}
	return name
}

// growth says by how much the gross RTT of a delayed round trip is bound to grow, in us.
type growth func(before trip) (least, most float64)

// by is a growth by a time that is known.
func by(delay time.Duration) growth {
	us := float64(delay.Microseconds())
	return func(before trip) (float64, float64) { return us - tolerance(before), us + tolerance(before) }
}

// to is a growth to a time that is known.
func to(interval time.Duration) growth {
	us := float64(interval.Microseconds())
	return func(before trip) (float64, float64) {
		return us - before.gross - tolerance(before), us - before.gross + tolerance(before)
	}
}

// between is a growth that only bounds are known of.
func between(least, most time.Duration) growth {
	return func(trip) (float64, float64) { return float64(least.Microseconds()), float64(most.Microseconds()) }
}

// onePer completes a scenario of tbf. A tool that asks at once when it is answered is held back until its round trip has
// lasted the interval; one that gets no CPU in between is late by itself, and is held back for less or not at all.
func onePer(interval time.Duration, s scenario) scenario {
	s.growth, s.pace = to(interval), atOnce
	return s
}

var (
	atOnce = pace{requests: 40}
	paced  = pace{requests: 60, pause: 6100 * time.Microsecond}
)

const (
	bareMetal = "bare-metal" // net_dev_queue to net_dev_queue
	wire      = "wire"       // ends when the NIC's driver is called
	innerDev  = "inner-dev"  // from when the container's driver is called to when the NIC's is
)

const ms = time.Millisecond

var scenarios = []scenario{
	// In each of the four queues on the way.
	onePer(2*ms, scenario{delay: "c1=tbf:2ms", as: bareMetal, where: inside}),
	onePer(2*ms, scenario{delay: "veth1=tbf:2ms", as: bareMetal, where: inside}),
	onePer(2*ms, scenario{delay: "nic=tbf:2ms", as: bareMetal, where: outside}),
	onePer(2*ms, scenario{delay: "remote=tbf:2ms", as: bareMetal, where: outside}),
	// net_dev_queue is before a device's queue, net_dev_start_xmit after it. A session sees nothing of what is before its
	// path begins; ping does.
	onePer(2*ms, scenario{delay: "nic=tbf:2ms", as: wire, where: inside}),
	onePer(2*ms, scenario{delay: "nic=tbf:2ms", as: innerDev, where: inside}),
	onePer(2*ms, scenario{delay: "c1=tbf:2ms", as: innerDev, where: outside, printed: true}),
	onePer(2*ms, scenario{delay: "c1=tbf:2ms", as: bareMetal, where: inside, printed: true}),
	onePer(2*ms, scenario{delay: "nic=tbf:2ms", as: bareMetal, where: outside, printed: true}),
	// 1 ms each way.
	{delay: "c1=forwarder:1ms", without: "c1=forwarder:0s", as: bareMetal, where: inside, growth: by(2 * ms), pace: atOnce, xdp: true},
	{delay: "nic=forwarder:1ms", without: "nic=forwarder:0s", as: bareMetal, where: outside, growth: by(2 * ms), pace: atOnce},
	// The host compares each packet with the rules, each way. How long that takes is the CPU's affair.
	{delay: "host=nft-rules:10000", as: bareMetal, where: inside, growth: between(300*time.Microsecond, 20*ms), pace: atOnce},
	// Four in five packets wait if they come at any time, and most of them for longer than 1 ms. On a busy machine more
	// come when they need not wait: their sender gets its CPU when others leave it for the one that is let go.
	{delay: "veth1=busy-cpu:4ms", as: bareMetal, where: inside, growth: between(ms, 4500*time.Microsecond), pace: paced, awayFromBusy: true},
	{delay: "nic=busy-cpu:4ms", as: bareMetal, where: outside, growth: between(ms, 4500*time.Microsecond), pace: paced, awayFromBusy: true},
}

// netemScenarios are those of netem, which is a module that kernels may lack: tbf takes its part there.
func netemScenarios(t *testing.T) []scenario {
	const delay = 20 * ms // well above what an emulated machine's timers are late by
	l, err := lab.Up(t.Context(), lab.Options{Name: labName(), Delays: []lab.Delay{{At: "nic", By: lab.DelayByNetem, Time: delay}}})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Logf("netem is not tried, and tbf is alone: %v", err)
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	var all []scenario
	for _, s := range []scenario{
		{delay: "c1=netem:20ms", as: bareMetal, where: inside},
		{delay: "veth1=netem:20ms", as: bareMetal, where: inside},
		{delay: "nic=netem:20ms", as: bareMetal, where: outside},
		{delay: "remote=netem:20ms", as: bareMetal, where: outside},
		{delay: "nic=netem:20ms", as: wire, where: inside},
		{delay: "c1=netem:20ms", as: innerDev, where: outside, printed: true},
	} {
		s.growth, s.pace = between(delay-ms, 2*delay), atOnce
		all = append(all, s)
	}
	return all
}
