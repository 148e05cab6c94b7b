package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inNetNSWithSysfs is inNetNS with a /sys that shows the devices of that namespace. A sysfs belongs to the network
// namespace it was mounted from, so fn gets a mount of its own, in a mount namespace that dies with its thread.
func inNetNSWithSysfs(path string, fn func() error) error {
	return inNetNS(path, func() error {
		// Implies CLONE_FS: root and working directory are this thread's alone from here.
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("making a private mount namespace: %w", err)
		}
		// Or the next mount would show itself to everybody.
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making mounts private: %w", err)
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mounting sysfs for %s: %w", path, err)
		}
		return fn()
	})
}

func rpsFiles(device string) ([]string, error) {
	return filepath.Glob(filepath.Join("/sys/class/net", device, "queues/rx-*/rps_cpus"))
}

// rps lets every device hand packets to all CPUs.
func (b *builder) rps() error {
	if !b.lab.options.RPS {
		return nil
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return fmt.Errorf("reading which CPUs are online: %w", err)
	}
	cpus, err := parseCPUList(strings.TrimSpace(string(online)))
	if err != nil {
		return err
	}
	mask := cpuMask(cpus)
	for _, host := range b.lab.Hosts() {
		err := inNetNSWithSysfs(b.lab.NetNSPath(host), func() error {
			files, err := rpsFiles("*")
			if err != nil {
				return err
			}
			for _, file := range files {
				if strings.HasPrefix(file, "/sys/class/net/lo/") {
					continue
				}
				if err := os.WriteFile(file, []byte(mask), 0); err != nil {
					return fmt.Errorf("setting %s to %s: %w", file, mask, err)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("switching RPS on in %s: %w", host, err)
		}
	}
	return nil
}

// readRPS returns the RPS mask of each device, in a namespace entered by inNetNSWithSysfs. Queues have equal masks
// here; the first one speaks for its device.
func readRPS() (map[string]string, error) {
	files, err := rpsFiles("*")
	if err != nil {
		return nil, err
	}
	masks := map[string]string{}
	for _, file := range files {
		device := strings.Split(file, "/")[4]
		if masks[device] != "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the RPS mask of %s: %w", device, err)
		}
		masks[device] = strings.TrimSpace(string(text))
	}
	return masks, nil
}

// parseCPUList reads the kernel's list format, "0-3,8".
func parseCPUList(list string) ([]int, error) {
	var cpus []int
	for _, part := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil || first < 0 || last < first {
			return nil, fmt.Errorf("reading the CPU list %q: %q is no CPU and no range", list, part)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// cpuMask writes the kernel's mask format: 32-bit groups in hexadecimal, the highest first, with commas.
func cpuMask(cpus []int) string {
	var words []uint32
	for _, cpu := range cpus {
		for len(words) <= cpu/32 {
			words = append(words, 0)
		}
		words[cpu/32] |= 1 << (cpu % 32)
	}
	groups := make([]string, len(words))
	for i, word := range words {
		format := "%08x"
		if i == len(words)-1 {
			format = "%x"
		}
		groups[len(words)-1-i] = fmt.Sprintf(format, word)
	}
	return strings.Join(groups, ",")
}
