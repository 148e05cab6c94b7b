// Package doctor finds out what this kernel, these privileges and this container runtime allow, feature by feature,
// by trying them.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"tare/container"
	"tare/mace"
)

// Verdict is how one check ended.
type Verdict string

// The verdicts. Only Fail means that tare cannot work.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "fail"
	None Verdict = "none" // something that tare can do without is not there
)

// Finding is the outcome of one check.
type Finding struct {
	Feature string  `json:"feature"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`
	Remedy  string  `json:"remedy,omitempty"`
}

// Examine checks the host. It attaches programs for a moment and leaves nothing behind.
func Examine(ctx context.Context) []Finding {
	findings := []Finding{kernel(), privileges(), typeInformation(), lockdown()}
	for _, name := range mace.PathNames() {
		findings = append(findings, path(name))
	}
	findings = append(findings, stamps(), hardwareStamps(), features(), skippedPrograms())
	for _, runtime := range []string{"docker", "podman"} {
		findings = append(findings, containerRuntime(ctx, runtime))
	}
	return findings
}

func kernel() Finding {
	f := Finding{Feature: "kernel", Verdict: OK}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		f.Verdict, f.Detail, f.Remedy = Fail, err.Error(), "tare needs Linux"
		return f
	}
	f.Detail = unix.ByteSliceToString(name.Release[:])
	var major, minor int
	fmt.Sscanf(f.Detail, "%d.%d", &major, &minor)
	if major < 6 || major == 6 && minor < 1 {
		f.Verdict, f.Remedy = Warn, "tare is tested on Linux 6.1 and later"
	}
	return f
}

// What each capability is for, and whether CAP_SYS_ADMIN stands in for it (capabilities(7)).
var capabilities = []struct {
	bit     int
	name    string
	why     string
	byAdmin bool
}{
	{unix.CAP_BPF, "CAP_BPF", "loading programs", true},
	{unix.CAP_PERFMON, "CAP_PERFMON", "attaching to tracepoints", true},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "entering network namespaces", false},
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "making a lab", false},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "finding other users' processes", false},
}

// effective returns a function that tells whether this process has a capability.
func effective() (has func(bit int) bool, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err = unix.Capget(&header, &data[0])
	return func(bit int) bool { return data[bit/32].Effective&(1<<(bit%32)) != 0 }, err
}

// mayLoad reports whether this process may load programs and attach them.
func mayLoad() bool {
	has, err := effective()
	return err == nil && (has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON))
}

func privileges() Finding {
	f := Finding{Feature: "privileges", Verdict: OK}
	has, err := effective()
	if err != nil {
		f.Verdict, f.Detail, f.Remedy = Fail, "reading capabilities: "+err.Error(), "run with sudo"
		return f
	}
	var missing, have []string
	for _, c := range capabilities {
		switch {
		case has(c.bit):
			have = append(have, c.name)
		case c.byAdmin && has(unix.CAP_SYS_ADMIN):
		default:
			missing = append(missing, c.name+" ("+c.why+")")
		}
	}
	f.Detail = strings.Join(have, ", ")
	if len(missing) > 0 {
		f.Verdict, f.Detail, f.Remedy = Fail, "missing "+strings.Join(missing, ", "), "run with sudo"
	}
	return f
}

func typeInformation() Finding {
	f := Finding{Feature: "kernel types (BTF)", Verdict: OK, Detail: "/sys/kernel/btf/vmlinux"}
	if _, err := btf.LoadKernelSpec(); err != nil {
		f.Verdict, f.Detail, f.Remedy = Fail, err.Error(), "use a kernel built with CONFIG_DEBUG_INFO_BTF, as all large distributions' are"
	}
	return f
}

func lockdown() Finding {
	f := Finding{Feature: "lockdown", Verdict: OK, Detail: "none"}
	text, err := os.ReadFile("/sys/kernel/security/lockdown")
	if err != nil {
		f.Detail = "not known (securityfs is not mounted)"
		return f
	}
	if _, rest, ok := strings.Cut(string(text), "["); ok {
		f.Detail, _, _ = strings.Cut(rest, "]")
	}
	if f.Detail == "confidentiality" {
		f.Verdict, f.Remedy = Fail, "eBPF cannot read kernel memory in this mode: boot with lockdown=integrity"
	}
	return f
}

// noDevice is a NIC that no host has.
var noDevice = mace.Device{NetNSCookie: 1, Index: 1 << 30, Name: "none"}

// path tries a path for real, on no device.
func path(name string) Finding {
	f := Finding{Feature: "path " + name, Verdict: OK}
	p, err := mace.ParsePath(name)
	if err != nil {
		f.Verdict, f.Detail = Fail, err.Error()
		return f
	}
	started := time.Now()
	engine, err := mace.Open(mace.Options{Path: p, NICs: []mace.Device{noDevice}})
	if err != nil {
		f.Verdict = Fail
		// What an earlier check has told in full is not told again for each path. And the kernel has other errors than
		// EPERM for who may not: what it lacks cannot be told then.
		switch {
		case errors.Is(err, mace.ErrPrivilege), !mayLoad():
			f.Detail, f.Remedy = mace.ErrPrivilege.Error(), "run with sudo"
		case typeInformation().Verdict == Fail:
			f.Detail, f.Remedy = "needs kernel types (BTF)", "see there"
		case errors.Is(err, mace.ErrKernel):
			f.Detail, f.Remedy = err.Error(), "use another path, or a later kernel"
		default:
			f.Detail, f.Remedy = err.Error(), "report this, with the line: it is a bug"
		}
		return f
	}
	attached := time.Since(started)
	engine.Close()
	f.Detail = fmt.Sprintf("attaches in %d ms", attached.Milliseconds())
	return f
}

func stamps() Finding {
	f := Finding{Feature: "receive stamps", Verdict: OK, Detail: "taken when a device hands a packet over"}
	text, err := os.ReadFile("/proc/sys/net/core/netdev_tstamp_prequeue")
	switch {
	case errors.Is(err, os.ErrNotExist):
		// Only the machine's first network namespace has it, and tare works in others.
		f.Detail = "when they are taken is not known here (net.core.netdev_tstamp_prequeue is not shown)"
	case err != nil:
		f.Verdict, f.Detail, f.Remedy = Warn, err.Error(), "run with sudo"
	case strings.TrimSpace(string(text)) == "0":
		f.Verdict, f.Detail = Warn, "taken after RPS has moved a packet to its CPU (net.core.netdev_tstamp_prequeue is 0)"
		f.Remedy = "correct as it is; ping shows longer times than with 1, the default"
	}
	return f
}

// features tells what is done otherwise than on later kernels.
func features() Finding {
	f := Finding{Feature: "kernel features", Verdict: OK, Detail: "all that tare makes use of"}
	if lacks := mace.Lacks(); len(lacks) > 0 {
		f.Detail = "all that tare needs; without " + strings.Join(lacks, "; without ")
	}
	return f
}

// skippedPrograms warns of kernels that keep programs from running at times without telling. One vendor's skips
// them while process 1 is current, and has this field to know by.
func skippedPrograms() Finding {
	f := Finding{Feature: "completeness", Verdict: OK, Detail: "no sign of a kernel that skips programs"}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		f.Verdict, f.Detail, f.Remedy = Warn, "not known without kernel types (BTF)", "see there"
		return f
	}
	var aux *btf.Struct
	if err := spec.TypeByName("bpf_prog_aux", &aux); err != nil {
		return f
	}
	for _, member := range aux.Members {
		if member.Name == "init_owned" {
			f.Verdict = Warn
			f.Detail = "this kernel may skip programs while process 1 runs; packets that are handled on top of it go unseen, most of all with RPS"
			f.Remedy = "heed the audit of each run: it counts what went unseen, and marks when; keep process 1 idle while measuring"
		}
	}
	return f
}

func containerRuntime(ctx context.Context, name string) Finding {
	f := Finding{Feature: name, Verdict: OK}
	if _, err := exec.LookPath(name); err != nil {
		f.Verdict, f.Detail = None, "not installed"
		f.Remedy = "none needed, unless for its containers"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	format := "{{.ServerVersion}}"
	if name == "podman" {
		format = "{{.Version.Version}}"
	}
	out, err := exec.CommandContext(ctx, name, "info", "--format", format).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		f.Verdict, f.Detail = None, "installed, but does not answer: "+lastLine(text)
		f.Remedy = "start its daemon, or check DOCKER_HOST"
		if name == "podman" {
			f.Remedy = "see what 'podman info' says"
		}
		return f
	}
	f.Detail = "version " + lastLine(text)
	return f
}

func lastLine(text string) string {
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// ExamineTarget checks what can be seen of one container.
func ExamineTarget(target container.Target) []Finding {
	network := Finding{Feature: target.String(), Verdict: OK, Detail: "has a network of its own"}
	if target.HostNetwork {
		network.Verdict, network.Detail = Warn, "shares the host's network: nothing is added"
		network.Remedy = "only --as wire makes sense"
	}
	findings := []Finding{network}
	nics, err := target.NICs(nil)
	f := Finding{Feature: "NIC", Verdict: OK}
	if err != nil {
		f.Verdict, f.Detail, f.Remedy = Fail, err.Error(), "give the device to 'tare run' and 'tare watch' with --nic"
	}
	var names []string
	for _, nic := range nics {
		names = append(names, nic.Name)
	}
	if len(names) > 0 {
		f.Detail = strings.Join(names, ", ")
	}
	findings = append(findings, f)
	devices, err := container.Devices(target.NetNSPath)
	if err != nil {
		return append(findings, Finding{"devices", Fail, err.Error(), "run with sudo"})
	}
	for _, device := range devices {
		if device.XDP {
			findings = append(findings, Finding{
				"device " + device.Name, Warn, "has an XDP program, which may rebuild received packets: those stay unmatched",
				"detach the program while measuring",
			})
		}
	}
	return findings
}
