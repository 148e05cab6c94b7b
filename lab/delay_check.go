package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkDelays says what is wrong with the delays, as an ErrInvalid.
func (o Options) checkDelays() error {
	type taken struct{ where, what string }
	places := map[taken]Delay{}
	for _, d := range o.Delays {
		if err := o.checkDelay(d); err != nil {
			return fmt.Errorf("%w: delay %s: %w", ErrInvalid, d, err)
		}
		// Two of these at one place would be one, or none.
		var claims []taken
		switch d.By {
		case DelayByNetem, DelayByTBF:
			claims = []taken{{d.At, "queueing discipline"}}
		case DelayByForwarder, DelayByBusyCPU: // a forwarder's devices have no NAPI threads
			claims = []taken{{d.cable(), "cable"}}
		case DelayByRules:
			claims = []taken{{Host, "rules"}}
		}
		if d.CPU != nil || d.By == DelayByBusyCPU {
			cpu, err := d.cpu()
			if err != nil {
				return err
			}
			claims = append(claims, taken{fmt.Sprintf("CPU %d", cpu), "time"})
		}
		for _, claim := range claims {
			if other, ok := places[claim]; ok {
				return fmt.Errorf("%w: delay %s: %s has the %s of %s already", ErrInvalid, d, other, claim.what, claim.where)
			}
			places[claim] = d
		}
	}
	return nil
}

func (o Options) checkDelay(d Delay) error {
	place := delayPlace.FindStringSubmatch(d.At)
	number := 0 // of the container
	if place != nil && place[1] != "" {
		number, _ = strconv.Atoi(place[1])
	}
	if place == nil || number > o.Containers {
		return fmt.Errorf("there is no %q: %s", d.At, o.delayPlaces())
	}
	if (d.At == Host) != (d.By == DelayByRules) {
		return fmt.Errorf("rules are at host, and nothing else is: %s", o.delayPlaces())
	}
	container := number > 0
	if o.Network == NetworkMacvlan {
		switch {
		case strings.HasPrefix(d.At, "veth"), container && d.By != DelayByNetem && d.By != DelayByTBF:
			return errors.New("a macvlan container has no cable")
		case d.By == DelayByRules:
			return errors.New("the host does not forward what a macvlan container sends")
		}
	}
	least := time.Microsecond
	switch d.By {
	case DelayByRules:
		switch {
		case d.Rules < 1 || d.Rules > MaxDelayRules:
			return fmt.Errorf("1 to %d rules are possible", MaxDelayRules)
		case d.CPU != nil:
			return errors.New("rules run on no CPU of their own")
		}
		return nil
	case DelayByForwarder:
		least = 0
	case DelayByBusyCPU:
		least = 100 * time.Microsecond // about what a timer needs to end it
	case DelayByNetem, DelayByTBF:
		if d.CPU != nil {
			return errors.New("a queueing discipline runs on no CPU of its own")
		}
	default:
		return fmt.Errorf("%q delays nothing: %s", d.By, delayHint)
	}
	if d.Time < least || d.Time > MaxDelay {
		return fmt.Errorf("%s to %s are possible", inASCII(least), inASCII(MaxDelay))
	}
	if d.CPU != nil {
		cpus, err := allowedCPUs()
		if err == nil && !slices.Contains(cpus, *d.CPU) {
			err = fmt.Errorf("CPU %d cannot be used: there are %v", *d.CPU, cpus)
		}
		return err
	}
	return nil
}

// cpu is the CPU that a process of the delay is tied to: the one that is named, or the last.
func (d Delay) cpu() (int, error) {
	if d.CPU != nil {
		return *d.CPU, nil
	}
	cpus, err := allowedCPUs()
	if err != nil {
		return 0, err
	}
	return cpus[len(cpus)-1], nil
}

// delayPlaces lists what At may be.
func (o Options) delayPlaces() string {
	last := strconv.Itoa(o.Containers)
	text := "nic, remote, host, c1"
	if o.Containers > 1 {
		text += " to c" + last
	}
	if o.Network != NetworkMacvlan {
		text += ", veth1"
		if o.Containers > 1 {
			text += " to veth" + last
		}
	}
	return text + " are possible"
}

// forwarderOn returns the forwarder on the cable whose end in Host is device.
func (o Options) forwarderOn(device string) (Delay, bool) {
	for _, d := range o.Delays {
		if d.By == DelayByForwarder && d.cable() == device {
			return d, true
		}
	}
	return Delay{}, false
}
