package report

import (
	"fmt"
	"math"

	"tare/bench/load"
)

// FlagRule marks a whole run as doubtful, by what the machine did to it, never by what it measured.
type FlagRule struct {
	Name  string                           `json:"name"`
	Above float64                          `json:"above"`
	Unit  string                           `json:"unit"`
	value func(load.Host, float64) float64 // of a run that took so many seconds
}

// FlagRules are fixed; a report carries those that it was made with.
var FlagRules = []FlagRule{
	{"steal", 1, "% of the CPUs' time", func(h load.Host, seconds float64) float64 {
		return 100 * h.StealSeconds / (seconds * float64(max(1, len(h.CPUs))))
	}},
	{"thermal throttling", 0, "events", func(h load.Host, _ float64) float64 { return float64(h.ThermalThrottles) }},
	{"CPU quota", 0, "us", func(h load.Host, _ float64) float64 { return float64(h.QuotaThrottledUS) }},
	{"preempted", 100, "times per second", func(h load.Host, seconds float64) float64 {
		return float64(max(h.Client.InvoluntarySwitches, h.Server.InvoluntarySwitches)) / seconds
	}},
	// A pinned process is moved once, to its CPU.
	{"migrated", 2, "times", func(h load.Host, _ float64) float64 {
		return float64(max(h.Client.Migrations, h.Server.Migrations))
	}},
	{"frequency", 5, "% of change", func(h load.Host, _ float64) float64 { return 100 * frequencyChange(h) }},
}

// frequencyChange is the largest change of one of the CPUs' clocks from before to after, as a share.
func frequencyChange(h load.Host) float64 {
	largest := 0.0
	for i := range min(len(h.FreqKHzBefore), len(h.FreqKHzAfter)) {
		if before := float64(h.FreqKHzBefore[i]); before > 0 {
			largest = math.Max(largest, math.Abs(float64(h.FreqKHzAfter[i])-before)/before)
		}
	}
	return largest
}

// Flag holds a run against the rules. A process that is not pinned may migrate, and client and server on one CPU take turns.
func Flag(host load.Host, seconds float64, pinned bool) []string {
	var flags []string
	if seconds <= 0 {
		return nil
	}
	for _, rule := range FlagRules {
		if rule.Name == "migrated" && !pinned || rule.Name == "preempted" && len(host.CPUs) == 1 {
			continue
		}
		if v := rule.value(host, seconds); v > rule.Above {
			flags = append(flags, fmt.Sprintf("%s: %.3g %s", rule.Name, v, rule.Unit))
		}
	}
	return flags
}
