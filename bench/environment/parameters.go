package environment

import (
	"slices"
	"strings"
)

// The kernel's parameters that change what a packet or a wake-up costs, by name or, with a dot at the end, by their
// first part. From Documentation/admin-guide/kernel-parameters.txt.
var parameters = []string{
	"mitigations", "pti", "nopti", "kpti", "retbleed", "mds", "tsx_async_abort", "l1tf", "srbds", "spec_store_bypass_disable",
	"spec_rstack_overflow", "spectre_v2", "spectre_v2_user", "nospectre_v1", "nospectre_v2", "gather_data_sampling", "vmscape",
	"nosmt", "isolcpus", "nohz", "nohz_full", "rcu_nocbs", "irqaffinity", "threadirqs", "preempt", "skew_tick", "maxcpus", "nr_cpus",
	"idle", "processor.", "intel_idle.", "cpuidle.", "cpuidle_haltpoll.", "haltpoll.", "intel_pstate", "amd_pstate", "cpufreq.",
	"clocksource", "tsc", "hpet", "nokaslr", "transparent_hugepage", "numa_balancing", "selinux", "apparmor", "lockdown", "security",
	"lsm", "audit", "init_on_alloc", "init_on_free", "slub_debug", "page_poison", "debug_pagealloc", "kfence.", "kasan.", "bpf_jit_enable",
}

// relevant are the parameters of a command line that may matter, in their order.
func relevant(commandLine string) string {
	var kept []string
	for word := range strings.FieldsSeq(commandLine) {
		if word == "--" {
			break // what follows is for process 1
		}
		name, _, _ := strings.Cut(word, "=")
		if slices.ContainsFunc(parameters, func(p string) bool {
			return name == p || strings.HasSuffix(p, ".") && strings.HasPrefix(name, p)
		}) {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ")
}
