package doctor

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestStampsInHardware(t *testing.T) {
	const all = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	const software = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE
	for _, tt := range []struct {
		name string
		info unix.EthtoolTsInfo
		want bool
	}{
		{"a NIC with a clock", unix.EthtoolTsInfo{So_timestamping: all | software, Phc_index: 0}, true},
		{"software only", unix.EthtoolTsInfo{So_timestamping: software, Phc_index: -1}, false},
		{"received packets only", unix.EthtoolTsInfo{So_timestamping: all &^ unix.SOF_TIMESTAMPING_TX_HARDWARE, Phc_index: 1}, false},
		{"no clock", unix.EthtoolTsInfo{So_timestamping: all, Phc_index: -1}, false},
	} {
		if got := stampsInHardware(&tt.info); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}

// Which it is depends on the machine; that something is said of it does not.
func TestHardwareStamps(t *testing.T) {
	f := hardwareStamps()
	if f.Detail == "" || f.Verdict == Fail || f.Verdict != OK && f.Remedy == "" {
		t.Errorf("%+v", f)
	}
}
