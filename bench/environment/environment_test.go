package environment

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
)

// Every Linux tells these.
func TestRead(t *testing.T) {
	watch := StartWatch()
	e := Read(context.Background(), []string{"ping", "a-tool-that-nobody-has"})
	watch.Into(&e)
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if e.Kernel != strings.TrimSpace(string(release)) || e.Architecture != runtime.GOARCH || e.CPUs < 1 {
		t.Errorf("%+v", e)
	}
	if e.ClockSource == Unknown || len(e.Mitigations) == 0 || len(e.Sysctls) < 5 {
		t.Errorf("clock %s, %d mitigations, %d sysctls", e.ClockSource, len(e.Mitigations), len(e.Sysctls))
	}
	ping := e.Tools[0]
	if !strings.HasPrefix(ping.Version, "ping from iputils") || len(ping.SHA256) != 64 || !strings.HasPrefix(ping.Path, "/") {
		t.Errorf("%+v", ping)
	}
	if none := e.Tools[1]; none.Path != Unknown || none.SHA256 != Unknown {
		t.Errorf("%+v", none)
	}
	if e.BusyPercent < 0 || e.BusyPercent > 100 || e.StealPercent < 0 || e.StealPercent > 100 {
		t.Errorf("busy %v%%, steal %v%%", e.BusyPercent, e.StealPercent)
	}
	if os.Geteuid() == 0 && e.NFTRules < 0 {
		t.Error("the rules were not counted")
	}
}

func TestChanges(t *testing.T) {
	a := Environment{
		Kernel: "6.1", KernelVersion: "#1", CPU: "x", Mitigations: map[string]string{"meltdown": "PTI"}, NFTRules: 3,
		Sysctls: map[string]string{"net.ipv4.tcp_timestamps": "1"}, Offloads: map[string]string{"lo": "gso", "veth7": "gso"},
		Tools: []Tool{{Name: "sockperf", Version: "3.7", SHA256: "aa"}, {Name: "wrk", SHA256: "cc"}},
	}
	if same := append(Changes(a, a), ToolChanges(a, a)...); len(same) != 0 {
		t.Errorf("a machine differs from itself by %v", same)
	}
	b := a
	b.Kernel, b.KernelVersion, b.NFTRules = "6.14", "#7", -1
	b.Mitigations, b.Sysctls, b.Offloads = nil, map[string]string{"net.ipv4.tcp_timestamps": "0"}, map[string]string{"lo": ""}
	b.Tools = []Tool{{Name: "sockperf", Version: "3.7", SHA256: "bb"}, {Name: "ping", Version: "2"}}
	var whats []string
	for _, change := range Changes(a, b) {
		whats = append(whats, change.What)
	}
	want := "kernel, mitigation meltdown, sysctl net.ipv4.tcp_timestamps, nftables rules, device lo, sockperf"
	if got := strings.Join(whats, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if other := ToolChanges(a, b); len(other) != 0 {
		t.Errorf("the same version, and yet %+v", other)
	}
	b.Tools[0].Version = "3.10"
	if other := ToolChanges(a, b); len(other) != 1 || other[0].What != "sockperf" || len(ToolBuilds(a, b)) != 0 {
		t.Errorf("%+v", other)
	}
}

// What is nobody else's business stays out of reports: addresses, users, passwords, file systems.
func TestRelevant(t *testing.T) {
	const line = "BOOT_IMAGE=/vmlinuz root=UUID=ab-cd ip=192.0.2.1 mitigations=off quiet processor.max_cstate=1 nosmt token=secret -- --idle=x nohz_full=1"
	if got, want := relevant(line), "mitigations=off processor.max_cstate=1 nosmt"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := relevant(Unknown); got != "" {
		t.Errorf("%q", got)
	}
}
