package load_test

import (
	"slices"
	"testing"
	"time"

	"tare/bench/arm"
	"tare/bench/load"
)

// BenchmarkProberAgainstSockperf prints the ratio of the medians that the two measure in turns, on one link. It belongs
// on an idle machine:
//
//	go test -run '^$' -bench Prober -benchtime 20x ./bench/load
func BenchmarkProberAgainstSockperf(b *testing.B) {
	for _, name := range []string{"loopback", "bridge"} {
		for _, protocol := range []string{"tcp", "udp"} {
			for cores, serverCPU := range map[string]int{"same-core": 0, "cross-core": 1} {
				b.Run(name+"/"+protocol+"/"+cores, func(b *testing.B) { againstSockperf(b, name, protocol, serverCPU) })
			}
		}
	}
}

func againstSockperf(b *testing.B, name, protocol string, serverCPU int) {
	a, err := arm.Find(name)
	if err != nil {
		b.Fatal(err)
	}
	link, err := a.Up(b.Context(), arm.Options{ClientCPU: 0, ServerCPU: serverCPU, SoftirqCPU: arm.Unpinned})
	if err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	var ratios, medians, others []float64
	for i := range b.N {
		p50 := map[string]float64{}
		order := []string{protocol, "sockperf-" + protocol}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, workload := range order {
			w, err := load.Find(workload)
			if err != nil {
				b.Fatal(err)
			}
			// A new server each time, on a port of its own: a TIME_WAIT of the last one is in nobody's way.
			session, err := w.Start(b.Context(), link, load.Params{Size: 64, Port: uint16(22000 + 2*i)})
			if err != nil {
				b.Fatal(err)
			}
			sample, err := session.Round(b.Context(), 600*time.Millisecond)
			if err == nil {
				err = sample.Failed()
			}
			if err != nil {
				b.Fatal(err)
			}
			p50[workload] = float64(sample.RTT.ValueAtQuantile(50))
			_ = session.Close()
		}
		ratios = append(ratios, p50[protocol]/p50["sockperf-"+protocol])
		medians, others = append(medians, p50[protocol]/1000), append(others, p50["sockperf-"+protocol]/1000)
	}
	slices.Sort(ratios)
	slices.Sort(medians)
	b.ReportMetric(ratios[len(ratios)/2], "prober/sockperf")
	// Whatever disturbs a round makes it slower: the best of each are the least disturbed.
	b.ReportMetric(slices.Min(medians)/slices.Min(others), "best/best")
	b.ReportMetric(ratios[0], "least")
	b.ReportMetric(ratios[len(ratios)-1], "most")
	b.ReportMetric(medians[len(medians)/2], "p50-us")
	b.ReportMetric(0, "ns/op")
}
