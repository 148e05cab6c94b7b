package mace

import (
	"fmt"
	"math"
	"math/bits"
)

// Aggregate is one direction's latencies since activation, as the programs add them up in the kernel.
type Aggregate struct {
	Count        uint64
	MeanNS       float64
	StddevNS     float64
	MinNS, MaxNS uint64
	buckets      []uint64
}

// Aggregates reads both directions. They stay empty unless Options.Aggregates is set.
func (ns *Namespace) Aggregates() (egress, ingress Aggregate, err error) {
	if egress, err = ns.aggregate(0); err != nil {
		return
	}
	ingress, err = ns.aggregate(1)
	return
}

func (ns *Namespace) aggregate(direction uint32) (Aggregate, error) {
	var perCPU []bpfTareAggregate
	if err := ns.aggregates.Lookup(direction, &perCPU); err != nil {
		return Aggregate{}, fmt.Errorf("reading aggregates: %w", err)
	}
	return sumAggregates(perCPU), nil
}

func sumAggregates(perCPU []bpfTareAggregate) Aggregate {
	sum := Aggregate{buckets: make([]uint64, len(bpfTareAggregate{}.Buckets))}
	var sumNS, squaresHi, squaresLo uint64
	for i := range perCPU {
		a := &perCPU[i]
		if a.Count == 0 {
			continue
		}
		if sum.Count == 0 || a.MinNs < sum.MinNS {
			sum.MinNS = a.MinNs
		}
		sum.MaxNS = max(sum.MaxNS, a.MaxNs)
		sum.Count += a.Count
		sumNS += a.SumNs
		var carry uint64
		squaresLo, carry = bits.Add64(squaresLo, a.SumSquaresLo, 0)
		squaresHi += a.SumSquaresHi + carry
		for b, n := range a.Buckets {
			sum.buckets[b] += n
		}
	}
	if sum.Count == 0 {
		return sum
	}
	n := float64(sum.Count)
	sum.MeanNS = float64(sumNS) / n
	squares := math.Ldexp(float64(squaresHi), 64) + float64(squaresLo)
	// With rounding, the difference of two large and nearly equal numbers can be a little below 0.
	sum.StddevNS = math.Sqrt(max(0, squares/n-sum.MeanNS*sum.MeanNS))
	return sum
}

// QuantileNS is the latency that a share q of all packets does not exceed, within 3.1% (a bucket's width). q is
// between 0 and 1.
func (a Aggregate) QuantileNS(q float64) uint64 {
	rank, seen := uint64(math.Ceil(q*float64(a.Count))), uint64(0)
	for b, n := range a.buckets {
		seen += n
		if n > 0 && seen >= rank {
			low, high := bucketBounds(b)
			return min(max((low+high)/2, a.MinNS), a.MaxNS)
		}
	}
	return a.MaxNS
}

// bucketBounds is the inverse of bucket_of in bpf/aggregate.h: the smallest and the largest value in bucket b.
func bucketBounds(b int) (low, high uint64) {
	if b < 32 {
		return uint64(b), uint64(b)
	}
	shift := uint(b/32 - 1)
	low = uint64(32+b%32) << shift
	return low, low + 1<<shift - 1
}
