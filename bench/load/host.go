package load

// Host is what the machine did to a round: reasons to distrust it, and to be held against rules fixed beforehand.
type Host struct {
	Client Usage `json:"client"`
	Server Usage `json:"server"`
	// CPUs are those that client and server are pinned to, all of the machine's where they are not.
	CPUs []int `json:"cpus"`
	// StealSeconds is time that the hypervisor gave to others, of these CPUs together.
	StealSeconds float64 `json:"steal_seconds"`
	// SoftirqSeconds and IRQSeconds are what interrupts took of these CPUs together.
	SoftirqSeconds float64 `json:"softirq_seconds"`
	IRQSeconds     float64 `json:"irq_seconds"`
	// IdleSeconds is what was left of these CPUs together.
	IdleSeconds float64 `json:"idle_seconds"`
	// ThermalThrottles counts the hardware's own interventions on these CPUs; QuotaThrottledUS is the time that the
	// control group of client or server was out of CPU quota.
	ThermalThrottles uint64 `json:"thermal_throttles"`
	QuotaThrottledUS uint64 `json:"quota_throttled_us"`
	// FreqKHzBefore and FreqKHzAfter are the CPUs' clocks, in the order of CPUs; empty where the kernel does not say.
	FreqKHzBefore []int `json:"freq_khz_before,omitempty"`
	FreqKHzAfter  []int `json:"freq_khz_after,omitempty"`
}

// Usage is what the scheduler did to the processes of one end. Known is false where the kernel could not be asked
// before they ended.
type Usage struct {
	Known               bool   `json:"known"`
	VoluntarySwitches   uint64 `json:"voluntary_switches"`   // it waited: about one per message is normal
	InvoluntarySwitches uint64 `json:"involuntary_switches"` // something else took its CPU
	Migrations          uint64 `json:"migrations"`           // from one CPU to another
}
