package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// hardwareStamps asks the machine's NICs whether they stamp packets by a clock of their own. tare does not need them.
func hardwareStamps() Finding {
	f := Finding{Feature: "hardware stamps", Verdict: None, Remedy: "none needed: --as wire measures up to the NIC's driver"}
	// Whatever is not a device of the machine has no hardware.
	found, _ := filepath.Glob("/sys/class/net/*/device")
	if len(found) == 0 {
		f.Detail = "no network device here has hardware"
		return f
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		f.Verdict, f.Detail, f.Remedy = Warn, "opening a socket to ask devices: "+err.Error(), "run with sudo"
		return f
	}
	defer unix.Close(fd)
	var with, without []string
	for _, path := range found {
		name := filepath.Base(filepath.Dir(path))
		info, err := unix.IoctlGetEthtoolTsInfo(fd, name)
		switch {
		case err != nil:
			without = append(without, fmt.Sprintf("%s does not say (%s)", name, err))
		case stampsInHardware(info):
			with = append(with, fmt.Sprintf("%s (clock %s)", name, clockName(info.Phc_index)))
		default:
			without = append(without, name+" takes none")
		}
	}
	if len(with) == 0 {
		f.Detail = strings.Join(without, ", ")
		return f
	}
	// The kernel tells stamps of sent packets to the sending socket alone: see mace.ErrHardwareStamps.
	f.Verdict, f.Remedy = OK, ""
	f.Detail = strings.Join(with, ", ") + "; tare does not use them, since those of a container's sent packets are its own socket's"
	return f
}

// stampsInHardware reports whether packets of both directions are stamped, by a clock that can be read.
func stampsInHardware(info *unix.EthtoolTsInfo) bool {
	const both = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	return info.So_timestamping&both == both && info.Phc_index >= 0
}

func clockName(index int32) string {
	device := fmt.Sprintf("/dev/ptp%d", index)
	name, err := os.ReadFile(fmt.Sprintf("/sys/class/ptp/ptp%d/clock_name", index))
	if err != nil {
		return device
	}
	return device + ", " + strings.TrimSpace(string(name))
}
