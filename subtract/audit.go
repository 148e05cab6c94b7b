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
}

// Missing is how many packets the programs did not see.
func (a Audit) Missing() uint64 {
	if a.Seen >= a.DevicePackets {
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

// Audit reads both counts since the session began.
func (s *Session) Audit() (Audit, error) {
	counters, err := s.ns.Counters()
	if err != nil {
		return Audit{}, err
	}
	now, err := s.countDevicePackets()
	if err != nil {
		return Audit{}, err
	}
	audit := Audit{DevicePackets: uint64(now - s.devices), Seen: counters.DeviceTx}
	if s.rxCounts {
		audit.Seen += counters.DeviceRx
	}
	return audit, nil
}
