package mace

import (
	"math"
	"math/bits"
	"testing"
)

// bucketOf is bucket_of in bpf/aggregate.h, said plainly.
func bucketOf(ns uint64) int {
	if ns < 32 {
		return int(ns)
	}
	exponent := bits.Len64(ns) - 1
	bucket := (exponent-4)*32 + int(ns>>(exponent-5)&31)
	return min(bucket, len(bpfTareAggregate{}.Buckets)-1)
}

func TestBucketBounds(t *testing.T) {
	last := len(bpfTareAggregate{}.Buckets) - 1
	next := uint64(0)
	for b := range last + 1 {
		low, high := bucketBounds(b)
		if low != next || high < low {
			t.Fatalf("bucket %d is %d to %d, and the one before ends at %d", b, low, high, next-1)
		}
		for _, ns := range []uint64{low, low + (high-low)/2, high} {
			if got := bucketOf(ns); got != b {
				t.Fatalf("%d ns are in bucket %d, want %d", ns, got, b)
			}
		}
		if float64(high-low) > float64(low)/32 {
			t.Errorf("bucket %d, %d to %d, is wider than 1/32", b, low, high)
		}
		next = high + 1
	}
	if want := uint64(1) << 36; next != want {
		t.Errorf("buckets reach %d, want %d as bpf/aggregate.h says", next, want)
	}
	for _, ns := range []uint64{next, 1 << 40, math.MaxUint64} {
		if got := bucketOf(ns); got != last {
			t.Errorf("%d ns are in bucket %d, want the last", ns, got)
		}
	}
}

// aggregateOf adds values up as aggregate_add in bpf/aggregate.h does.
func aggregateOf(values ...uint64) bpfTareAggregate {
	var a bpfTareAggregate
	for _, ns := range values {
		hi, lo := bits.Mul64(ns, ns)
		var carry uint64
		a.SumSquaresLo, carry = bits.Add64(a.SumSquaresLo, lo, 0)
		a.SumSquaresHi += hi + carry
		a.SumNs += ns
		if a.Count == 0 || ns < a.MinNs {
			a.MinNs = ns
		}
		a.MaxNs = max(a.MaxNs, ns)
		a.Count++
		a.Buckets[bucketOf(ns)]++
	}
	return a
}

func TestSumAggregates(t *testing.T) {
	second := uint64(1e9)
	for _, tt := range []struct {
		name         string
		perCPU       []bpfTareAggregate
		count        uint64
		mean, stddev float64
		least, most  uint64
	}{
		{"none", nil, 0, 0, 0, 0, 0},
		{"idle CPUs", make([]bpfTareAggregate, 4), 0, 0, 0, 0, 0},
		{"one value", []bpfTareAggregate{aggregateOf(1000)}, 1, 1000, 0, 1000, 1000},
		{"an idle CPU has no minimum", []bpfTareAggregate{{}, aggregateOf(5, 7)}, 2, 6, 1, 5, 7},
		{"two CPUs", []bpfTareAggregate{aggregateOf(1000, 3000), aggregateOf(2000, 2000)}, 4, 2000, 707.10678, 1000, 3000},
		{"squares beyond 64 bits", []bpfTareAggregate{aggregateOf(4*second, 4*second), aggregateOf(2*second, 2*second)},
			4, 3e9, 1e9, 2 * second, 4 * second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sumAggregates(tt.perCPU)
			if got.Count != tt.count || got.MinNS != tt.least || got.MaxNS != tt.most {
				t.Errorf("count %d, %d to %d; want %d, %d to %d", got.Count, got.MinNS, got.MaxNS, tt.count, tt.least, tt.most)
			}
			if math.Abs(got.MeanNS-tt.mean) > 1e-6*tt.mean || math.Abs(got.StddevNS-tt.stddev) > 1e-5*tt.stddev {
				t.Errorf("mean %f and deviation %f, want %f and %f", got.MeanNS, got.StddevNS, tt.mean, tt.stddev)
			}
		})
	}
}

func TestQuantiles(t *testing.T) {
	var values []uint64
	for i := range uint64(1000) {
		values = append(values, (i+1)*100)
	}
	a := sumAggregates([]bpfTareAggregate{aggregateOf(values[:500]...), aggregateOf(values[500:]...)})
	for _, tt := range []struct{ q, want float64 }{{0, 100}, {0.001, 100}, {0.01, 1000}, {0.5, 50000}, {0.99, 99000}, {1, 100000}} {
		if got := float64(a.QuantileNS(tt.q)); math.Abs(got-tt.want) > tt.want*0.032 {
			t.Errorf("quantile %g is %g, want %g", tt.q, got, tt.want)
		}
	}
	if got := sumAggregates(nil).QuantileNS(0.5); got != 0 {
		t.Errorf("a quantile of nothing is %d", got)
	}
	if got := sumAggregates([]bpfTareAggregate{aggregateOf(1 << 40)}).QuantileNS(0.5); got != 1<<40 {
		t.Errorf("one value beyond the buckets, 2^40, has the median %d", got)
	}
}
