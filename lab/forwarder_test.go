package lab

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkForwarder tells how exact a forwarder is that never sleeps: a round trip should grow by twice the delay. It is
// no test, because others may need the CPU.
func BenchmarkForwarder(b *testing.B) {
	cpus, err := allowedCPUs()
	if err != nil {
		b.Fatal(err)
	}
	const pings = "3000"
	for _, hold := range []time.Duration{0, time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond} {
		b.Run(hold.String(), func(b *testing.B) {
			options := Options{Name: testLabName(), Delays: []Delay{{At: "nic", By: DelayByForwarder, Time: hold, CPU: &cpus[len(cpus)-1]}}}
			l, err := Up(context.Background(), options)
			if err != nil {
				b.Fatal(err)
			}
			defer func() {
				if err := l.Down(); err != nil {
					b.Error(err)
				}
			}()
			for b.Loop() {
				out, err := l.Command(context.Background(), "c1", "ping", "-A", "-n", "-c", pings, l.RemoteAddr4().String()).Output()
				if err != nil {
					b.Fatal(err)
				}
				var us []float64
				for _, match := range timePattern.FindAllSubmatch(out, -1) {
					ms, _ := strconv.ParseFloat(string(match[1]), 64)
					us = append(us, ms*1000)
				}
				slices.Sort(us)
				b.ReportMetric(us[len(us)/2], "us/p50")
				b.ReportMetric(us[len(us)/10], "us/p10")
			}
		})
	}
}
