package arm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// pinSoftirq has the packets that the devices of a namespace receive processed on one CPU, by receive packet steering.
// Virtual devices do it on the sender's CPU otherwise.
func pinSoftirq(path string, cpu int) error {
	if cpu == Unpinned {
		return nil
	}
	return inside(path, func() error {
		// A sysfs shows the devices of the namespace that it was mounted from.
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making a private mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making mounts private: %w", err)
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mounting sysfs: %w", err)
		}
		files, err := filepath.Glob("/sys/class/net/*/queues/rx-*/rps_cpus")
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := os.WriteFile(file, []byte(cpuMask(cpu)), 0); err != nil {
				return fmt.Errorf("steering received packets to CPU %d by %s: %w", cpu, file, err)
			}
		}
		return nil
	})
}

// cpuMask writes one CPU in the kernel's mask format: 32-bit groups in hexadecimal, the highest first.
func cpuMask(cpu int) string {
	return fmt.Sprintf("%x", uint32(1)<<(cpu%32)) + strings.Repeat(",00000000", cpu/32)
}

// cannotPinSoftirq refuses where the devices are the host's own: a setting there would outlive a killed process.
func cannotPinSoftirq(o Options) error {
	if o.SoftirqCPU == Unpinned {
		return nil
	}
	return fmt.Errorf("cannot pin softirqs to CPU %d: its devices are the host's own, and tare does not change their settings",
		o.SoftirqCPU)
}

// softirqText is for Describe.
func softirqText(o Options) string {
	if o.SoftirqCPU == Unpinned {
		return "on the sender's CPU"
	}
	return fmt.Sprintf("CPU %d, by receive packet steering", o.SoftirqCPU)
}
