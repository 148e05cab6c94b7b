package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"tare/bench/load"
	"tare/bench/report"
	"tare/figure"
	"tare/stats"
)

// draw makes an experiment's figures; those without data are left out.
func draw(e *report.Experiment) (figures []template.HTML, err error) {
	var drawn []*figure.Figure
	if f := differences(e); f != nil {
		drawn = append(drawn, f)
	}
	if f, err := distribution(e); err != nil {
		return nil, err
	} else if f != nil {
		drawn = append(drawn, f)
	}
	if f := drift(e); f != nil {
		drawn = append(drawn, f)
	}
	for _, arm := range e.Arms {
		if f := waterfall(e, arm.Name); f != nil {
			drawn = append(drawn, f)
		}
	}
	for _, f := range drawn {
		svg, err := f.SVG()
		if err != nil {
			return nil, err
		}
		figures = append(figures, template.HTML(svg)) // package figure escapes what it is given
	}
	return figures, nil
}

// differences has a bar for each arm: how much more than the baseline, with its interval.
func differences(e *report.Experiment) *figure.Figure {
	var bars []figure.Bar
	scale, unit := e.Scale()
	for _, result := range e.Results {
		if c := result.Comparison(); c != nil && c.Difference.Rounds > 0 {
			bars = append(bars, bar(result.Arm, c.Difference, scale))
		}
	}
	if len(bars) == 0 || e.Style == report.SingleRun {
		return nil
	}
	what := "p50 RTT"
	if e.Unit == load.BytesPerSecond || e.Unit == load.RequestsPerSecond {
		what = "rate"
	}
	return figure.New("More than "+e.Baseline, fmt.Sprintf("difference of %s (%s)", what, unit), "").AddBars("", bars)
}

func bar(label string, i stats.Interval, scale float64) figure.Bar {
	return figure.Bar{Label: label, Value: i.Estimate / scale, Low: i.Low / scale, High: i.High / scale}
}

// waterfall has a bar for each hop's part of an arm's difference; nil where packets were not followed.
func waterfall(e *report.Experiment, arm string) *figure.Figure {
	var bars []figure.Bar
	for _, share := range e.Shares(arm) {
		bars = append(bars, figure.Bar{Label: share.Name, Value: share.DifferenceUs})
	}
	if len(bars) == 0 {
		return nil
	}
	return figure.New("Where "+arm+" differs from "+e.Baseline, "difference of a hop's mean time (µs)", "").AddBars("", bars)
}

// maxDrawn bounds how many round trips of an arm are drawn; of more, every so-manieth is.
const maxDrawn = 1_000_000

// distribution has all messages of all rounds of an arm that count.
func distribution(e *report.Experiment) (*figure.Figure, error) {
	if !latency(e) {
		return nil, nil
	}
	f := figure.New("All round trips", "RTT (µs)", "share that takes longer")
	arms, fastest, slowest := 0, math.Inf(1), 0.0
	for _, arm := range e.Arms {
		values, err := roundTrips(e, arm.Name)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			f.AddTail(arm.Name, values)
			fastest, slowest = min(fastest, slices.Min(values)), max(slowest, slices.Max(values))
			arms++
		}
	}
	if arms == 0 {
		return nil, nil
	}
	if fastest > 0 && slowest > 4*fastest {
		f.LogX()
	}
	return f, nil
}

// roundTrips are an arm's, in us, in no order.
func roundTrips(e *report.Experiment, arm string) (values []float64, err error) {
	merged, err := e.Merged(arm)
	if err != nil || merged == nil {
		return nil, err
	}
	step := 1 + merged.TotalCount()/maxDrawn
	seen := int64(0)
	for _, b := range merged.Distribution() {
		middle := float64(b.From+b.To) / 2e3
		for n := (seen+b.Count)/step - seen/step; n > 0; n-- {
			values = append(values, middle)
		}
		seen += b.Count
	}
	return values, nil
}

// drift has the statistic of each run over time: what the machine did to all arms is seen in all of them.
func drift(e *report.Experiment) *figure.Figure {
	scale, unit := e.Scale()
	title, label := "Over time", fmt.Sprintf("p50 RTT of a run (%s)", unit)
	if e.Unit == load.BytesPerSecond || e.Unit == load.RequestsPerSecond {
		label = fmt.Sprintf("rate of a run (%s)", unit)
	}
	f := figure.New(title, "time since the first round (s)", label)
	if len(e.Rounds) < 2 {
		return nil
	}
	drawn := false
	for _, arm := range e.Arms {
		var points []figure.Point
		for _, p := range e.OverTime(arm.Name) {
			points = append(points, figure.Point{X: p.Seconds, Y: p.Value / scale})
		}
		if len(points) > 0 {
			f.AddSeries(arm.Name, points)
			drawn = true
		}
	}
	if !drawn {
		return nil
	}
	return f
}
