package eval

import (
	"fmt"

	"tare/figure"
	"tare/stats"
)

// Picture is a figure of a report, with the name of its file and what there is to see.
type Picture struct {
	File    string // without extension
	Caption string
	Figure  *figure.Figure
}

// Pictures draws what the report has, in the order of the paper.
func (r *Report) Pictures() []Picture {
	var pictures []Picture
	if r.Payload != nil {
		pictures = append(pictures, r.Payload.picture())
	}
	if r.Load != nil && len(r.Load.Levels) > 0 {
		pictures = append(pictures, r.Load.errorPicture(), r.Load.coveragePicture())
	}
	if r.Perturbation != nil {
		pictures = append(pictures, r.Perturbation.picture())
	}
	if r.Poster != nil {
		pictures = append(pictures, r.Poster.picture())
		if len(r.Poster.Series) > 0 {
			pictures = append(pictures, r.Poster.seriesPicture())
		}
	}
	return pictures
}

func (p *Payload) picture() Picture {
	f := figure.New("What the container's network adds, by size (Fig. 2)", "ICMP payload (bytes)", "difference of mean RTTs (µs)").FromZero()
	var added, noise []figure.Point
	for _, s := range p.Sizes {
		added, noise = append(added, point(float64(s.Bytes), s.DifferenceUs)), append(noise, point(float64(s.Bytes), s.NoiseUs))
	}
	f.AddSeries("container less host", added)
	f.AddSeries("host less host: noise", noise)
	return Picture{"fig2-payload", "Mean RTT of a flood ping in a container less that on the host, with 95% intervals over rounds. The paper finds no effect of size.", f}
}

// smallestErrorUs is where the logarithmic axis of errors begins: less than the tap itself resolves.
const smallestErrorUs = 0.05

func (l *Load) errorPicture() Picture {
	f := figure.New("Error against the NIC beside floods (Fig. 3)", "flooding containers", "error of the mean RTT, absolute (µs)").LogY()
	for _, series := range []struct {
		name, arm string
		of        func(*LoadArm) stats.Interval
	}{
		{"container, as printed", armContainer, func(a *LoadArm) stats.Interval { return a.RawErrorUs }},
		{"native, as printed", armNative, func(a *LoadArm) stats.Interval { return a.RawErrorUs }},
		{"native, kernel's stamp, as printed", armReference, func(a *LoadArm) stats.Interval { return a.RawErrorUs }},
		{"native, corrected", armNative, func(a *LoadArm) stats.Interval { return a.ErrorUs }},
		{"container, corrected", armContainer, func(a *LoadArm) stats.Interval { return a.ErrorUs }},
	} {
		var points []figure.Point
		for i := range l.Levels {
			points = append(points, positive(float64(l.Levels[i].Floods), series.of(l.Levels[i].arm(series.arm))))
		}
		f.AddSeries(series.name, points)
	}
	f.AddReference("paper: corrected within 20 µs", paperErrorUs)
	return Picture{"fig3-error", "How far ping's RTTs are from those that a tap on the NIC saw of the same packets. Corrected ones stay where they are, whatever the load.", f}
}

// positive is a size of error with a place on a logarithmic axis.
func positive(x float64, i stats.Interval) figure.Point {
	low, high := i.Low, i.High
	estimate := i.Estimate
	if estimate < 0 {
		estimate, low, high = -estimate, -high, -low
	}
	return figure.Point{X: x, Y: max(estimate, smallestErrorUs), Low: max(low, smallestErrorUs), High: max(high, smallestErrorUs)}
}

func (l *Load) coveragePicture() Picture {
	f := figure.New("Coverage beside floods (Fig. 4)", "flooding containers", "replies that are corrected (%)")
	for _, name := range []string{armContainer, armNative} {
		var points []figure.Point
		for i := range l.Levels {
			share := percent(l.Levels[i].arm(name).Coverage.Share)
			points = append(points, figure.Point{X: float64(l.Levels[i].Floods), Y: share, Low: share, High: share})
		}
		f.AddSeries(name, points)
	}
	f.AddReference("paper: down to 95%", paperCoveragePct)
	return Picture{"fig4-coverage", "The share of replies for which both ways were measured.", f}
}

func (p *Perturbation) picture() Picture {
	f := figure.New("What watching adds to a round trip (Fig. 5)", "difference of mean RTTs (µs)", "")
	var bars []figure.Bar
	for _, arm := range p.Arms {
		bars = append(bars, figure.Bar{Label: arm.Arm, Value: arm.CostUs.Estimate, Low: arm.CostUs.Low, High: arm.CostUs.High})
	}
	f.AddBars("a flood ping's", bars)
	return Picture{"fig5-perturbation", fmt.Sprintf("Mean RTT of a flood ping (%s µs with nothing attached) with each way of watching, less that without. "+
		"The paper's kernel module stayed below 20 µs for the most part.", p.BaseRTTUs), f}
}

func (p *Poster) picture() Picture {
	f := figure.New("RTT by method (the poster's table)", "mean RTT at rest (µs)", "")
	var bars []figure.Bar
	for _, m := range p.Methods {
		bars = append(bars, figure.Bar{Label: m.Method, Value: m.MeanUs.Estimate, Low: m.MeanUs.Low, High: m.MeanUs.High})
	}
	f.AddBars("ping -U where nothing else is said", bars)
	return Picture{"poster-methods", "Each correction next to what it should give: as bare-metal and inner-dev, the native ping; as wire and syscalls, the NIC.", f}
}

func (p *Poster) seriesPicture() Picture {
	f := figure.New(fmt.Sprintf("Beside %.0f Mbit/s (the poster's Fig. 6)", p.SeriesMbits), "time (s)", "RTT (µs)").LogY()
	var raw, corrected, tap []figure.Point
	at := func(second, us float64) figure.Point {
		us = max(us, smallestErrorUs)
		return figure.Point{X: second, Y: us, Low: us, High: us}
	}
	for _, s := range p.Series {
		raw, corrected, tap = append(raw, at(s.Second, s.RawUs)), append(corrected, at(s.Second, s.CorrectedUs)), append(tap, at(s.Second, s.TapUs))
	}
	f.AddDots("as printed", raw).AddDots("corrected, as wire", corrected).AddDots("at the NIC", tap)
	return Picture{"poster-series", "A ping every 10 ms in a container, reply by reply: corrected RTTs follow the NIC's.", f}
}

func point(x float64, i stats.Interval) figure.Point {
	return figure.Point{X: x, Y: i.Estimate, Low: i.Low, High: i.High}
}
