package lab

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Delay is a known delay at one place of a lab: something to find again in a measurement. Whether it lies between the
// container and the NIC, where a correction takes it out, or beyond, where it leaves it in, follows from At and By.
type Delay struct {
	// At is a device: "nic" and "remote" are the ends of the NIC's cable, "c1" and "veth1" those of a container's. Rules
	// are at "host".
	At string  `json:"at"`
	By DelayBy `json:"by"`
	// Time is how long a packet waits; By says which packet.
	Time time.Duration `json:"time_ns,omitempty"`
	// CPU is where a busy process, or a forwarder that never sleeps, runs; nil: a busy process takes the last CPU that
	// is allowed, and a forwarder sleeps while nothing is due.
	CPU   *int `json:"cpu,omitempty"`
	Rules int  `json:"rules,omitempty"` // of DelayByRules
}

// DelayBy is what delays packets.
type DelayBy string

// The kinds of delay.
const (
	// DelayByNetem is the queueing discipline netem: every packet that leaves by the device waits for Time. Many kernels
	// have it as a module (sch_netem), some not at all.
	DelayByNetem DelayBy = "netem"
	// DelayByTBF is the queueing discipline tbf, a token bucket with room for one packet of any size: one packet may
	// leave by the device per Time, so one that follows another at once waits for Time. A tool that sends its next request
	// when the last reply has come, like ping -f, sees a round trip of Time.
	DelayByTBF DelayBy = "tbf"
	// DelayByForwarder is a process in the device's cable: it carries every packet, in both directions, from end to end, and
	// holds each for Time. With a CPU it is exact to about 1 us, as it never sleeps.
	DelayByForwarder DelayBy = "forwarder"
	// DelayByBusyCPU is a realtime process that keeps a CPU busy for Time and lets go of it for a quarter of Time, again
	// and again. What the device receives is processed on this CPU, by a kernel thread that has to wait (threaded NAPI):
	// a packet waits for 0.4 Time in the mean, one in five does not wait, and none for longer than Time.
	DelayByBusyCPU DelayBy = "busy-cpu"
	// DelayByRules is so many firewall rules on the host, which every forwarded packet is compared with, in vain.
	DelayByRules DelayBy = "nft-rules"
)

// Bounds of delays. tare takes nothing for a packet's way that lasts longer than a second.
const (
	MaxDelay      = time.Second
	MaxDelayRules = 100_000
)

var (
	delayPlace = regexp.MustCompile(`^(?:nic|remote|host|(?:c|veth)([1-9][0-9]?))$`)
	delayHint  = "use AT=netem:TIME, AT=tbf:TIME, AT=forwarder:TIME[,cpu=N], AT=busy-cpu:TIME[,cpu=N] or host=nft-rules:N"
)

// ParseDelay reads what String writes, "nic=forwarder:1us,cpu=1" for example.
func ParseDelay(text string) (Delay, error) {
	bad := func(why string) (Delay, error) {
		return Delay{}, fmt.Errorf("%w: delay %q: %s: %s", ErrInvalid, text, why, delayHint)
	}
	at, rest, ok := strings.Cut(text, "=")
	if !ok {
		return bad("no place is named")
	}
	rest, parameters, hasParameters := strings.Cut(rest, ",")
	by, amount, ok := strings.Cut(rest, ":")
	if !ok {
		return bad("no amount is given")
	}
	d := Delay{At: at, By: DelayBy(by)}
	var err error
	switch d.By {
	case DelayByRules:
		d.Rules, err = strconv.Atoi(amount)
	case DelayByNetem, DelayByTBF, DelayByForwarder, DelayByBusyCPU:
		d.Time, err = time.ParseDuration(amount)
	default:
		return bad(fmt.Sprintf("%q delays nothing", by))
	}
	if err != nil {
		return bad(fmt.Sprintf("%q is no amount", amount))
	}
	if hasParameters {
		name, value, _ := strings.Cut(parameters, "=")
		cpu, err := strconv.Atoi(value)
		if name != "cpu" || err != nil || cpu < 0 {
			return bad(fmt.Sprintf("%q is not cpu=N", parameters))
		}
		d.CPU = &cpu
	}
	return d, nil
}

// String is the delay in the words of `tare lab up --delay`.
func (d Delay) String() string {
	text := d.At + "=" + string(d.By) + ":"
	if d.By == DelayByRules {
		return text + strconv.Itoa(d.Rules)
	}
	text += inASCII(d.Time)
	if d.CPU != nil {
		text += ",cpu=" + strconv.Itoa(*d.CPU)
	}
	return text
}

// inASCII writes a time as it is typed: 1us.
func inASCII(d time.Duration) string { return strings.ReplaceAll(d.String(), "µ", "u") }

// device returns the host and the device that At means.
func (d Delay) device() (host, device string) {
	switch {
	case d.At == "nic":
		return Host, NIC
	case d.At == "remote":
		return Remote, RemoteDevice
	case strings.HasPrefix(d.At, "veth"):
		return Host, d.At
	}
	return d.At, ContainerDevice
}

// peer returns the other end of the device's cable.
func (d Delay) peer() (host, device string) {
	switch {
	case d.At == "nic":
		return Remote, RemoteDevice
	case d.At == "remote":
		return Host, NIC
	case strings.HasPrefix(d.At, "veth"):
		return "c" + strings.TrimPrefix(d.At, "veth"), ContainerDevice
	}
	return Host, "veth" + strings.TrimPrefix(d.At, "c")
}

// cable names the two ends of the device's cable by the one in Host: both ends of it are one place to a forwarder.
func (d Delay) cable() string {
	if host, device := d.device(); host == Host {
		return device
	}
	_, device := d.peer()
	return device
}
