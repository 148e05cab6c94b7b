package eval

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is where a result comes from: without it, a figure in us means nothing.
type Machine struct {
	Kernel         string            `json:"kernel"`
	Architecture   string            `json:"architecture"`
	CPU            string            `json:"cpu"`
	CPUs           int               `json:"cpus"` // that the process may use
	Virtualisation string            `json:"virtualisation"`
	ClockSource    string            `json:"clock_source"`
	Governor       string            `json:"governor"`
	StampEarly     string            `json:"netdev_tstamp_prequeue"`
	LoadAverage    string            `json:"load_average"`
	BusyPercent    float64           `json:"busy_percent"`  // of all CPUs' time during the measurement
	StealPercent   float64           `json:"steal_percent"` // ... and taken by other guests
	Tools          map[string]string `json:"tools"`
}

func describeMachine(ctx context.Context, began ticks) Machine {
	var name unix.Utsname
	_ = unix.Uname(&name)
	now := readTicks()
	m := Machine{
		Kernel: unix.ByteSliceToString(name.Release[:]), Architecture: runtime.GOARCH,
		CPU: cpuModel(), CPUs: len(allowedCPUs()), Virtualisation: virtualisation(),
		ClockSource: readWord("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Governor:    readWord("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		StampEarly:  readWord("/proc/sys/net/core/netdev_tstamp_prequeue"),
		LoadAverage: readWord("/proc/loadavg"),
		Tools:       map[string]string{},
	}
	if all := float64(now.all - began.all); all > 0 {
		m.BusyPercent = float64(int(1000*(1-float64(now.idle-began.idle)/all))) / 10
		m.StealPercent = float64(int(1000*float64(now.steal-began.steal)/all)) / 10
	}
	for tool, argument := range map[string]string{"ping": "-V", "fping": "-v", "busybox": "--help"} {
		m.Tools[tool] = version(ctx, tool, argument)
	}
	return m
}

// readWord is what a file of one line says; "unknown" where there is none.
func readWord(path string) string {
	text, err := os.ReadFile(path)
	if word := strings.TrimSpace(string(text)); err == nil && word != "" {
		return word
	}
	return "unknown"
}

func cpuModel() string {
	if model := cpuField("model name"); model != "" {
		return model
	}
	return "unknown"
}

func cpuField(name string) string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func virtualisation() string {
	guest := strings.Contains(" "+cpuField("flags")+" ", " hypervisor ")
	var maker []string
	for _, file := range []string{"sys_vendor", "product_name"} {
		if word := readWord("/sys/class/dmi/id/" + file); word != "unknown" {
			maker = append(maker, word)
		}
	}
	switch text := strings.Join(maker, " "); {
	case guest && text != "":
		return "guest (" + text + ")"
	case guest:
		return "guest"
	case text != "":
		return "none (" + text + ")"
	}
	return "unknown"
}

// version is the first line that a tool says of itself.
func version(ctx context.Context, tool, argument string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, tool, argument).CombinedOutput() // some have no exit code 0 for this
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return "missing"
	}
	return line
}

// ticks are clock ticks of all CPUs together since boot.
type ticks struct{ all, idle, steal uint64 }

func readTicks() ticks {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	var t ticks
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseUint(field, 10, 64)
		if i < 1 || i > 8 { // beyond: guest time, which user time holds already
			continue
		}
		t.all += n
		switch i {
		case 4, 5:
			t.idle += n
		case 8:
			t.steal += n
		}
	}
	return t
}

// allowedCPUs lists the CPUs that this process may use.
func allowedCPUs() []int {
	var set unix.CPUSet
	var cpus []int
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
