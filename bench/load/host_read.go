package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"tare/bench/arm"
)

// ticksPerSecond is USER_HZ, in which /proc/stat counts. It is 100 on every architecture that Go runs on.
const ticksPerSecond = 100

// reading is the state of the host before a round.
type reading struct {
	cpus     []int
	server   int // its pid, 0 if there is none
	usage    Usage
	times    cpuTimes
	thermal  uint64
	quotaUS  uint64
	freqKHz  []int
	quotaDir string
}

// cpuTimes are sums over the CPUs of a reading, in ticks.
type cpuTimes struct{ idle, irq, softirq, steal uint64 }

// readHost is called before a round, since after it.
func readHost(link *arm.Link, s *server) reading {
	r := reading{cpus: cpusOf(link)}
	if s != nil {
		r.server = s.pid
	}
	r.quotaDir = cpuGroup(r.server)
	r.usage, r.times, r.thermal, r.quotaUS, r.freqKHz = r.read()
	return r
}

// since returns what has happened. The client's usage is left to those who know it.
func (r reading) since() Host {
	usage, times, thermal, quotaUS, freqKHz := r.read()
	seconds := func(after, before uint64) float64 {
		if after < before { // the kernel's idle and steal times may step back
			return 0
		}
		return float64(after-before) / ticksPerSecond
	}
	h := Host{
		CPUs: r.cpus, StealSeconds: seconds(times.steal, r.times.steal), SoftirqSeconds: seconds(times.softirq, r.times.softirq),
		IRQSeconds: seconds(times.irq, r.times.irq), IdleSeconds: seconds(times.idle, r.times.idle),
		ThermalThrottles: thermal - min(thermal, r.thermal), QuotaThrottledUS: quotaUS - min(quotaUS, r.quotaUS),
		FreqKHzBefore: r.freqKHz, FreqKHzAfter: freqKHz,
	}
	if r.usage.Known && usage.Known {
		h.Server = Usage{true, usage.VoluntarySwitches - min(usage.VoluntarySwitches, r.usage.VoluntarySwitches),
			usage.InvoluntarySwitches - min(usage.InvoluntarySwitches, r.usage.InvoluntarySwitches), usage.Migrations - min(usage.Migrations, r.usage.Migrations)}
	}
	return h
}

func (r reading) read() (Usage, cpuTimes, uint64, uint64, []int) {
	usage := Usage{}
	if r.server > 0 {
		usage = readUsage(r.server)
	}
	stat, _ := os.ReadFile("/proc/stat")
	return usage, parseCPUTimes(stat, r.cpus), readThermal(r.cpus), readQuota(r.quotaDir), readFreq(r.cpus)
}

// cpusOf lists the CPUs that a link's tools run on.
func cpusOf(link *arm.Link) []int {
	cpus := []int{link.Client.CPU(), link.Server.CPU()}
	if slices.Contains(cpus, arm.Unpinned) {
		cpus = nil
		for cpu := range runtime.NumCPU() {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// parseCPUTimes reads /proc/stat: "cpu0 user nice system idle iowait irq softirq steal ...".
func parseCPUTimes(stat []byte, cpus []int) cpuTimes {
	var sum cpuTimes
	for line := range bytes.Lines(stat) {
		fields := strings.Fields(string(line))
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, err := strconv.Atoi(fields[0][len("cpu"):])
		if err != nil || !slices.Contains(cpus, cpu) {
			continue
		}
		for i, to := range map[int]*uint64{4: &sum.idle, 6: &sum.irq, 7: &sum.softirq, 8: &sum.steal} {
			n, _ := strconv.ParseUint(fields[i], 10, 64)
			*to += n
		}
	}
	return sum
}

// readUsage sums over a process's threads.
func readUsage(pid int) Usage {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return Usage{}
	}
	usage := Usage{Known: true}
	for _, task := range tasks {
		status := readFields(filepath.Join(task, "status"))
		usage.VoluntarySwitches += status["voluntary_ctxt_switches"]
		usage.InvoluntarySwitches += status["nonvoluntary_ctxt_switches"]
		// Absent from kernels without SCHED_DEBUG.
		usage.Migrations += readFields(filepath.Join(task, "sched"))["se.nr_migrations"]
	}
	return usage
}

// readFields reads the numbers of a file with lines "name: number" or "name number".
func readFields(path string) map[string]uint64 {
	fields := map[string]uint64{}
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.Replace(line, ":", " ", 1))
		if len(words) != 2 {
			continue
		}
		if n, err := strconv.ParseUint(words[1], 10, 64); err == nil {
			fields[words[0]] = n
		}
	}
	return fields
}

func readThermal(cpus []int) uint64 {
	sum := uint64(0)
	for _, cpu := range cpus {
		sum += uint64(readNumber(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count", cpu)))
	}
	return sum
}

// readFreq reads the CPUs' clocks; nil where the kernel does not know them, as in most virtual machines.
func readFreq(cpus []int) []int {
	var khz []int
	for _, cpu := range cpus {
		if f := readNumber(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", cpu)); f > 0 {
			khz = append(khz, f)
		}
	}
	return khz
}

func readNumber(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// cpuGroup is the directory of a process's CPU control group, in version 2 or 1; "" if there is none.
func cpuGroup(pid int) string {
	if pid == 0 {
		return ""
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for line := range strings.Lines(string(text)) { // "0::/path" or "3:cpu,cpuacct:/path"
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dirs := []string{"/sys/fs/cgroup" + parts[2], "/sys/fs/cgroup/" + parts[1] + parts[2]}
		if parts[1] != "" && !slices.Contains(strings.Split(parts[1], ","), "cpu") {
			continue
		}
		for _, dir := range dirs {
			if _, err := os.Stat(filepath.Join(dir, "cpu.stat")); err == nil {
				return dir
			}
		}
	}
	return ""
}

// readQuota reads for how long a group was out of quota, in us.
func readQuota(dir string) uint64 {
	if dir == "" {
		return 0
	}
	stat := readFields(filepath.Join(dir, "cpu.stat"))
	if us, ok := stat["throttled_usec"]; ok {
		return us
	}
	return stat["throttled_time"] / 1000 // version 1 counts ns
}

// usageOf is what the kernel kept about a client that was a child of this process, all of its start included.
func usageOf(f *finished) Usage {
	if f.usage == nil {
		return Usage{}
	}
	return Usage{Known: true, VoluntarySwitches: uint64(f.usage.Nvcsw), InvoluntarySwitches: uint64(f.usage.Nivcsw)}
}
