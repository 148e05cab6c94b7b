package report

import (
	"fmt"
	"math"
	"strings"

	"tare/bench/load"
	"tare/bench/verdict"
	"tare/stats"
)

// Title says what an experiment measured, units first of all.
func (e *Experiment) Title() string {
	what := e.Workload
	if e.SizeBytes > 0 {
		what += fmt.Sprintf(", %d bytes", e.SizeBytes)
	}
	if e.Rate > 0 {
		what += fmt.Sprintf(", %d messages per second", e.Rate)
	}
	return what + ": " + e.Quantity() + "; " + e.Placement.String()
}

// Quantity is what is measured, in full.
func (e *Experiment) Quantity() string {
	switch e.Unit {
	case load.BytesPerSecond:
		return "bytes per second"
	case load.RequestsPerSecond:
		return "requests per second, and full round trips (RTT) in us"
	}
	return "full round trips (RTT) in us"
}

// String says where things run.
func (p Placement) String() string {
	if p.ClientCPU < 0 {
		return "client and server on any CPU"
	}
	where := fmt.Sprintf("client on CPU %d, server on CPU %d", p.ClientCPU, p.ServerCPU)
	if p.ClientCPU == p.ServerCPU {
		where = fmt.Sprintf("client and server both on CPU %d", p.ClientCPU)
	}
	if p.SoftirqCPU >= 0 {
		where += fmt.Sprintf(", received packets on CPU %d", p.SoftirqCPU)
	}
	return where
}

// Words is a result as a sentence without its subject and full stop: "slower than loopback by 1.30 us, ...".
func (e *Experiment) Words(r Result, m Method) string {
	for _, arm := range e.Arms {
		if arm.Name == r.Arm && arm.Failed != "" {
			return "failed: " + arm.Failed
		}
	}
	c := r.Comparison()
	switch {
	case e.Style == SingleRun:
		return "one run: no verdict is possible"
	case r.Arm == e.Baseline:
		return "what the others are compared with"
	case c == nil || c.Difference.Rounds == 0:
		return "not measured in any round that counts"
	}
	difference := e.difference(r)
	if r.Arm == e.Again {
		return fmt.Sprintf("%s measured a second time: %s, which is noise", e.Baseline, difference)
	}
	switch c.Kind {
	case verdict.Slower, verdict.Faster:
		return fmt.Sprintf("%s than %s: %s", c.Kind, e.Baseline, difference)
	case verdict.Equivalent:
		return fmt.Sprintf("equivalent to %s within %s: %s", e.Baseline, e.margin(m), difference)
	}
	return "inconclusive: " + difference + e.whyInconclusive(r, m)
}

// difference is the whole difference: "+1.30 us [1.27, 1.33], +6.3% [6.2, 6.5]".
func (e *Experiment) difference(r Result) string {
	c := r.Comparison()
	return e.Amount(c.Difference) + ", " + Percent(c.Ratio)
}

func (e *Experiment) whyInconclusive(r Result, m Method) string {
	c := r.Comparison()
	var why string
	switch {
	case c.Difference.Level < m.Level-1e-9:
		why = fmt.Sprintf("; %d rounds are too few for an interval of %.4g%%", c.Difference.Rounds, m.Level*100)
	case c.Difference.Low > 0 || c.Difference.High < 0:
		why = fmt.Sprintf("; %s differs from itself by up to %s", e.Baseline, e.plain(c.Floor))
	}
	if c.MoreRounds > 0 {
		why += fmt.Sprintf("; about %d more rounds would tell (--until-decided)", c.MoreRounds)
	}
	return why
}

func (e *Experiment) margin(m Method) string {
	if m.Margin.Amount > 0 {
		return e.plain(m.Margin.Amount)
	}
	return m.Margin.String()
}

// Amount is a difference with its sign, its interval, and its unit.
func (e *Experiment) Amount(i stats.Interval) string {
	if e.Unit == load.RTT || e.Unit == load.OneWay {
		return Signed(i, 1, "us")
	}
	scale, unit := rateScale(e.Unit, math.Abs(i.Estimate))
	return Signed(i, scale, unit)
}

func (e *Experiment) plain(v float64) string {
	if e.Unit == load.RTT || e.Unit == load.OneWay {
		return fmt.Sprintf("%.2f us", v)
	}
	scale, unit := rateScale(e.Unit, math.Abs(v))
	return fmt.Sprintf("%.2f %s", v/scale, unit)
}

// Value is an arm's own figure with its interval.
func (e *Experiment) Value(f Figure) string {
	if f.Unit == "us" {
		return fmt.Sprintf("%.2f", f.Value.Estimate)
	}
	scale, unit := rateScale(e.Unit, f.Value.Estimate)
	return fmt.Sprintf("%.2f %s", f.Value.Estimate/scale, unit)
}

func rateScale(unit load.Unit, v float64) (scale float64, name string) {
	prefixes := []struct {
		scale float64
		name  string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}}
	what := "B/s"
	if unit == load.RequestsPerSecond {
		what = "requests/s"
	}
	for _, p := range prefixes {
		if v >= p.scale {
			return p.scale, p.name + what
		}
	}
	return 1, what
}

// Signed is an interval with the estimate's sign shown: "+1.30 us [1.27, 1.33]".
func Signed(i stats.Interval, scale float64, unit string) string {
	if i.Rounds == 0 {
		return "-"
	}
	text := strings.TrimSpace(fmt.Sprintf("%+.2f %s", i.Estimate/scale, unit))
	if i.Rounds > 1 {
		text += fmt.Sprintf(" [%.2f, %.2f]", i.Low/scale, i.High/scale)
	}
	return text
}

// Percent is a ratio as a change in per cent: "+6.3% [6.2, 6.5]".
func Percent(i stats.Interval) string {
	if i.Rounds == 0 {
		return "-"
	}
	change := func(v float64) float64 { return (v - 1) * 100 }
	text := fmt.Sprintf("%+.1f%%", change(i.Estimate))
	if i.Rounds > 1 {
		text += fmt.Sprintf(" [%.1f, %.1f]", change(i.Low), change(i.High))
	}
	return text
}
