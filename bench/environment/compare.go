package environment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Change is one thing that differs between two environments.
type Change struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
	Why  string `json:"why"` // how it may change the cost of a network
}

// Changes lists what differs between two environments and may matter to what a network costs, the weightiest first.
func Changes(a, b Environment) []Change {
	var found []Change
	add := func(what, x, y, why string) {
		if x != y {
			found = append(found, Change{what, x, y, why})
		}
	}
	add("CPU", a.CPU, b.CPU, "all times change")
	add("architecture", a.Architecture, b.Architecture, "all times change")
	add("virtualisation", a.Virtualisation, b.Virtualisation, "wake-ups and timers cost more in a guest")
	add("kernel", a.Kernel, b.Kernel, "another network stack")
	if a.Kernel == b.Kernel {
		add("kernel build", a.KernelVersion, b.KernelVersion, "another build of the same release")
		add("kernel configuration", short(a.KernelConfig), short(b.KernelConfig), "other parts of the network stack built in")
	}
	add("kernel parameters", a.Parameters, b.Parameters, "may switch mitigations, idle states and isolation of CPUs")
	add("CPUs", strconv.Itoa(a.CPUs), strconv.Itoa(b.CPUs), "where client and server run, and what they share")
	add("microcode", a.Microcode, b.Microcode, "mitigations cost differently")
	add("frequency governor", a.Governor, b.Governor, "clocks rise late after idling")
	add("clock source", a.ClockSource, b.ClockSource, "reading the time costs more than 1 us without tsc")
	eachKey(a.Mitigations, b.Mitigations, func(key, x, y string) { add("mitigation "+key, x, y, "entering the kernel costs differently") })
	eachKey(a.Sysctls, b.Sysctls, func(key, x, y string) { add("sysctl "+key, x, y, "the network stack works differently") })
	add("nftables rules", count(a.NFTRules), count(b.NFTRules), "each may be evaluated for each packet")
	shared := map[string]string{}
	for device := range a.Offloads {
		if _, both := b.Offloads[device]; both {
			shared[device] = ""
		}
	}
	for _, device := range slices.Sorted(maps.Keys(shared)) {
		add("device "+device, a.Offloads[device], b.Offloads[device], "segmentation and checksums are done elsewhere")
	}
	found = append(found, ToolBuilds(a, b)...)
	if steal := 1.0; a.StealPercent > steal || b.StealPercent > steal {
		add("steal", fmt.Sprintf("%.1f%%", a.StealPercent), fmt.Sprintf("%.1f%%", b.StealPercent), "other guests took CPU time")
	}
	return found
}

// ToolChanges lists tools that both used, in other versions: their figures are not comparable.
func ToolChanges(a, b Environment) []Change {
	return tools(a, b, "another version", func(x, y Tool) bool { return x.Version != y.Version })
}

// ToolBuilds lists tools that both used, in other builds of the same version.
func ToolBuilds(a, b Environment) []Change {
	return tools(a, b, "another build of the same version", func(x, y Tool) bool { return x.Version == y.Version && x.SHA256 != y.SHA256 })
}

func tools(a, b Environment, why string, differ func(x, y Tool) bool) (found []Change) {
	for _, x := range a.Tools {
		for _, y := range b.Tools {
			if x.Name == y.Name && differ(x, y) {
				found = append(found, Change{x.Name, x.Version + ", sha256 " + short(x.SHA256), y.Version + ", sha256 " + short(y.SHA256), why})
			}
		}
	}
	return found
}

func eachKey(a, b map[string]string, visit func(key, x, y string)) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		visit(key, orUnknown(a[key]), orUnknown(b[key]))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return Unknown
	}
	return s
}

func count(n int) string {
	if n < 0 {
		return Unknown
	}
	return strconv.Itoa(n)
}

// short is enough of a hash to tell two apart.
func short(hash string) string { return hash[:min(12, len(hash))] }
