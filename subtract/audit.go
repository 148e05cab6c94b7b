package subtract

import (
	"fmt"

	"tare/container"
)

// Audit compares what the programs saw with what the container's devices counted by themselves. On a veth both are
// equal; where the programs saw less, the kernel has kept packets from them, and the missing samples are no losses of
// the network.
type Audit struct {
	DevicePackets uint64 `json:"device_packets"`
	Seen          uint64 `json:"seen"`
	// Segmented: the container sent packets that its device may have cut in several behind the programs' backs, so the
	// counts need not be equal.
	Segmented bool `json:"segmented,omitempty"`
}

// Missing is how many packets the programs did not see, as far as the counts can tell.
func (a Audit) Missing() uint64 {
	if a.Segmented || a.Seen >= a.DevicePackets {
		return 0
	}
	return a.DevicePackets - a.Seen
}

// deviceCount is what all devices of a network namespace but lo have sent, and received, since they were made.
type deviceCount uint64

func (s *Session) countDevicePackets() (deviceCount, error) {
	var sum deviceCount
	devices, err := container.Devices(s.target.NetNSPath)
	if err != nil {
		return 0, fmt.Errorf("counting the container's packets: %w", err)
	}
	for _, device := range devices {
		sum += deviceCount(device.TxPackets)
		if s.rxCounts {
			sum += deviceCount(device.RxPackets)
		}
	}
	return sum, nil
}

// reading is both counts at about the same instant. Packets that pass meanwhile are in the devices' count or not:
// what the programs have seen is between least and most.
type reading struct {
	devices     deviceCount
	least, most uint64
}

func (s *Session) read() (r reading, err error) {
	if r.least, err = s.seen(); err != nil {
		return r, err
	}
	if r.devices, err = s.countDevicePackets(); err != nil {
		return r, err
	}
	r.most, err = s.seen()
	return r, err
}

func (s *Session) seen() (uint64, error) {
	counters, err := s.ns.Counters()
	if s.rxCounts {
		return counters.DeviceTx + counters.DeviceRx, err
	}
	return counters.DeviceTx, err
}

// Audit compares the counts since the session began. A difference that may come from traffic in the instant of the
// readings is none.
func (s *Session) Audit() (Audit, error) {
	now, err := s.read()
	if err != nil {
		return Audit{}, err
	}
	counters, err := s.ns.Counters()
	if err != nil {
		return Audit{}, err
	}
	devices := uint64(now.devices - s.began.devices)
	least, most := now.least-min(now.least, s.began.most), now.most-s.began.least
	return Audit{DevicePackets: devices, Seen: min(max(devices, least), most), Segmented: counters.EgressStartedGSO > 0}, nil
}
