package docknet

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/stats"
)

// Result is what was measured: medians over rounds. One-way is half a round trip.
type Result struct {
	Kernel         string            `json:"kernel"`
	CPUs           [2]int            `json:"cpus"`
	Rounds         int               `json:"rounds"`
	MeasureSeconds float64           `json:"measure_seconds"`
	Seconds        float64           `json:"seconds"`
	Rows           []Row             `json:"rows"`          // client and server on a core each
	OneCoreRows    []Row             `json:"one_core_rows"` // client, server and daemons on one
	Connections    []Connections     `json:"connections"`
	HTTP           []HTTP            `json:"http"`
	Idle           Idle              `json:"idle"`
	Missing        map[string]string `json:"missing"` // arms that cannot be made here, and why
	Targets        []Target          `json:"targets"`
}

// Row is one arm with messages of one size. Ratios say how many times better than the bridge it is, as medians of the rounds'
// own ratios; the bridge's are 1. What was not measured is null.
type Row struct {
	Arm             string    `json:"arm"`
	Size            int       `json:"size"`
	Placement       Placement `json:"placement"`
	OnewayUs        Quantiles `json:"oneway_us"`
	Goodput         *float64  `json:"goodput_mbytes_s"`
	Requests        *float64  `json:"requests_s"`      // HTTP over one kept-alive connection; the reply's body has Size bytes
	RatioToBridge   *float64  `json:"ratio_to_bridge"` // of the one-way median: how many times lower
	GoodputToBridge *float64  `json:"goodput_ratio_to_bridge"`
	RequestsRatio   *float64  `json:"requests_ratio_to_bridge"`
}

// Quantiles are of one-way times.
type Quantiles struct {
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
}

// Connections compares one connection alone with one among many that are open and say nothing.
type Connections struct {
	Arm      string    `json:"arm"`
	Open     int       `json:"open"`
	Size     int       `json:"size"`
	OnewayUs Quantiles `json:"oneway_us"`
	ToOne    *float64  `json:"ratio_to_one"` // of medians: how many times higher
}

// HTTP is a number of kept-alive connections, each with one request under way.
type HTTP struct {
	Arm           string   `json:"arm"`
	Connections   int      `json:"connections"`
	Requests      *float64 `json:"requests_s"`
	RatioToBridge *float64 `json:"ratio_to_bridge"`
}

// Target is what DockNet is to reach.
type Target struct {
	Name   string  `json:"name"`
	Want   string  `json:"want"`
	Got    float64 `json:"got"`
	Unit   string  `json:"unit"`
	Met    bool    `json:"met"`
	atMost bool
	limit  float64
}

type value func(sample) *float64

var (
	onewayP50 = value(func(s sample) *float64 { return s.OnewayUs.P50 })
	onewayP99 = value(func(s sample) *float64 { return s.OnewayUs.P99 })
	goodput   = value(func(s sample) *float64 { return s.Goodput })
	requests  = value(func(s sample) *float64 { return s.Requests })
)

// median is over the rounds that have a value.
func median(rounds []round, c cell, v value) *float64 {
	var values []float64
	for _, r := range rounds {
		if x := v(r[c]); x != nil {
			values = append(values, *x)
		}
	}
	return medianOf(values)
}

// ratio is the median of the rounds' own ratios of two cells.
func ratio(rounds []round, above, below cell, v value) *float64 {
	var values []float64
	for _, r := range rounds {
		if a, b := v(r[above]), v(r[below]); a != nil && b != nil && *b > 0 {
			values = append(values, *a / *b)
		}
	}
	return medianOf(values)
}

func medianOf(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	m := stats.Median(values)
	return &m
}

func (r *runner) result() *Result {
	result := &Result{Kernel: kernelRelease(), CPUs: r.cpus, Rounds: len(r.rounds), MeasureSeconds: r.Measure.Seconds(),
		Seconds: time.Since(r.began).Seconds(), Idle: r.idle, Missing: r.missing}
	for _, l := range r.links {
		for _, size := range Sizes {
			result.Rows = append(result.Rows, newRow(r.rounds, l.arm, TwoCores, size))
			result.OneCoreRows = append(result.OneCoreRows, newRow(r.rounds, l.arm, OneCore, size))
		}
		one := cell{arm: l.arm, placement: TwoCores, size: Sizes[0], open: 1}
		many := one
		many.open = OpenConnections
		result.Connections = append(result.Connections, Connections{Arm: l.arm, Open: many.open, Size: many.size,
			OnewayUs: quantiles(r.rounds, many), ToOne: ratio(r.rounds, many, one, onewayP50)})
	}
	for _, connections := range []int{1, HTTPConnections} {
		for _, l := range r.links {
			c := cell{arm: l.arm, placement: TwoCores, size: Sizes[0], open: connections, http: true}
			bridge := c
			bridge.arm = Bridge
			result.HTTP = append(result.HTTP, HTTP{Arm: l.arm, Connections: connections,
				Requests: median(r.rounds, c, requests), RatioToBridge: ratio(r.rounds, c, bridge, requests)})
		}
	}
	result.Targets = targets(result)
	return result
}

func quantiles(rounds []round, c cell) Quantiles {
	return Quantiles{P50: median(rounds, c, onewayP50), P99: median(rounds, c, onewayP99)}
}

func newRow(rounds []round, arm string, p Placement, size int) Row {
	c := cell{arm: arm, placement: p, size: size, open: 1}
	web := cell{arm: arm, placement: p, size: size, open: 1, http: true}
	bridge, bridgeWeb := c, web
	bridge.arm, bridgeWeb.arm = Bridge, Bridge
	return Row{Arm: arm, Size: size, Placement: p, OnewayUs: quantiles(rounds, c), Goodput: median(rounds, c, goodput),
		Requests:        median(rounds, web, requests),
		RatioToBridge:   ratio(rounds, bridge, c, onewayP50),
		GoodputToBridge: ratio(rounds, c, bridge, goodput),
		RequestsRatio:   ratio(rounds, web, bridgeWeb, requests)}
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

func find(rows []Row, arm string, size int) Row {
	for _, row := range rows {
		if row.Arm == arm && row.Size == size {
			return row
		}
	}
	return Row{}
}

// targets says what was reached. Without a value a target is not met.
func targets(r *Result) (list []Target) {
	add := func(name, unit string, got *float64, atMost bool, limit float64) {
		word, t := "at least", Target{Name: name, Unit: unit, limit: limit, atMost: atMost}
		if atMost {
			word = "at most"
		}
		t.Want = strings.TrimSpace(fmt.Sprintf("%s %g %s", word, limit, unit))
		if got != nil {
			t.Got = *got
			t.Met = *got >= limit
			if atMost {
				t.Met = *got <= limit
			}
		}
		list = append(list, t)
	}
	two := func(size int) Row { return find(r.Rows, DockNet, size) }
	one := find(r.OneCoreRows, DockNet, Sizes[0])
	add("64 B one-way, two cores, below the bridge", "times", two(64).RatioToBridge, false, 3)
	add("64 KiB messages, goodput above the bridge", "times", two(65536).GoodputToBridge, false, 2)
	add("1 KiB messages, goodput above the bridge", "times", two(1024).GoodputToBridge, false, 15)
	add("HTTP requests/s on one connection, above the bridge", "times", two(64).RequestsRatio, false, 8)
	add("64 B one-way, one core", "us", one.OnewayUs.P50, true, 5)
	add("64 B one-way, one core, below the bridge", "times", one.RatioToBridge, false, 1)
	for _, c := range r.Connections {
		if c.Arm == DockNet {
			add(fmt.Sprintf("one-way with %d connections open, above that of one", c.Open), "times", c.ToOne, true, 2)
		}
	}
	add("idle daemon", "% of a core", &r.Idle.DaemonPercent, true, 0.2)
	add("idle container", "% of a core", &r.Idle.ContainerPercent, true, 0.2)
	return list
}
