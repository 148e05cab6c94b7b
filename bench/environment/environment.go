// Package environment reads what of a machine may change the cost of its networks, and says of two machines which
// differences may matter. Without it, a figure in us means nothing.
package environment

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Unknown stands for what this machine does not tell.
const Unknown = "unknown"

// Environment is where a report comes from.
type Environment struct {
	Kernel        string `json:"kernel"`
	KernelVersion string `json:"kernel_version"`       // as built: number, options, date
	KernelConfig  string `json:"kernel_config_sha256"` // of its configuration, uncompressed
	// Parameters are those of the kernel's command line that may matter. The rest is nobody else's business.
	Parameters     string            `json:"kernel_parameters"`
	Architecture   string            `json:"architecture"`
	CPU            string            `json:"cpu"`
	Microcode      string            `json:"microcode"`
	CPUs           int               `json:"cpus"` // that the process may use
	Governor       string            `json:"governor"`
	Mitigations    map[string]string `json:"mitigations"`
	ClockSource    string            `json:"clock_source"`
	Virtualisation string            `json:"virtualisation"`
	Sysctls        map[string]string `json:"sysctls"`
	Offloads       map[string]string `json:"offloads"`  // by device of the host's network namespace
	NFTRules       int               `json:"nft_rules"` // of the host's network namespace; -1: unknown
	Tools          []Tool            `json:"tools"`
	LoadAverage    string            `json:"load_average"`  // before the first round
	BusyPercent    float64           `json:"busy_percent"`  // of all CPUs' time during the measurement
	StealPercent   float64           `json:"steal_percent"` // ... and taken by other guests
}

// Tool is a program that took part.
type Tool struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Version string `json:"version"` // the first line that it says of itself
	SHA256  string `json:"sha256"`
}

// sysctls that change what a packet between two namespaces of one host costs.
var sysctls = []string{
	"net.core.busy_poll", "net.core.busy_read", "net.core.default_qdisc", "net.core.netdev_tstamp_prequeue",
	"net.core.netdev_max_backlog", "net.core.dev_weight", "net.core.rps_sock_flow_entries", "net.core.rmem_max",
	"net.core.wmem_max", "net.core.bpf_jit_enable", "net.core.bpf_jit_harden",
	"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem", "net.ipv4.tcp_low_latency", "net.ipv4.ip_forward",
	"net.bridge.bridge-nf-call-iptables", "net.netfilter.nf_conntrack_max",
	"kernel.sched_autogroup_enabled", "kernel.randomize_va_space", "kernel.nmi_watchdog",
}

// Read describes the machine and the tools of these names. What cannot be read is Unknown: no report fails for it.
func Read(ctx context.Context, tools []string) Environment {
	var name unix.Utsname
	_ = unix.Uname(&name)
	e := Environment{
		Kernel: unix.ByteSliceToString(name.Release[:]), KernelVersion: unix.ByteSliceToString(name.Version[:]),
		KernelConfig: kernelConfig(unix.ByteSliceToString(name.Release[:])), Parameters: relevant(word("/proc/cmdline")),
		Architecture: runtime.GOARCH, CPU: cpuField("model name"), Microcode: cpuField("microcode"), CPUs: len(CPUs()),
		Governor:    word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
		Mitigations: mitigations(), ClockSource: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
		Virtualisation: virtualisation(), Sysctls: map[string]string{}, Offloads: offloads(), NFTRules: nftRules(),
		Tools: []Tool{}, LoadAverage: word("/proc/loadavg"),
	}
	for _, key := range sysctls {
		if value := sysctl(key); value != Unknown {
			e.Sysctls[key] = value
		}
	}
	for _, name := range tools {
		e.Tools = append(e.Tools, describeTool(ctx, name))
	}
	return e
}

// Watch measures the CPUs' use from now on.
type Watch struct{ began ticks }

// StartWatch begins.
func StartWatch() Watch { return Watch{readTicks()} }

// Into writes what was used up to now.
func (w Watch) Into(e *Environment) {
	now := readTicks()
	if all := float64(now.all - w.began.all); all > 0 {
		e.BusyPercent = percent(1 - float64(now.idle-w.began.idle)/all)
		e.StealPercent = percent(float64(now.steal-w.began.steal) / all)
	}
}

// percent has one decimal, as clock ticks of a minute allow.
func percent(share float64) float64 { return float64(int(share*1000+0.5)) / 10 }

// toolTime bounds asking a tool for its version.
const toolTime = 3 * time.Second
