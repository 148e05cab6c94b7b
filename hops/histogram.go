package hops

import (
	"math"
	"math/bits"
)

// subBuckets per power of two: a bucket is at most 1/128 of its value wide, so that a quantile is off by 0.4%.
const (
	subBucketsLog2 = 7
	subBuckets     = 1 << subBucketsLog2
)

// histogram counts times by value: millions of packets need the room of a few thousand numbers.
type histogram struct {
	count   int
	sumNS   int64 // exact
	maxNS   int64
	buckets []uint32 // as many as the largest value needs
}

func (h *histogram) add(ns int64) {
	h.count++
	h.sumNS += ns
	if h.count == 1 || ns > h.maxNS {
		h.maxNS = ns
	}
	b := bucketOf(ns)
	for b >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, b+1-len(h.buckets))...)
	}
	h.buckets[b]++
}

// bucketOf takes what is negative, by the difference of two clocks, for 0.
func bucketOf(ns int64) int {
	v := uint64(max(ns, 0))
	if v < subBuckets {
		return int(v)
	}
	exponent := bits.Len64(v) - 1 - subBucketsLog2
	return (exponent+1)*subBuckets + int(v>>exponent)&(subBuckets-1)
}

// valueOf is the middle of a bucket.
func valueOf(bucket int) float64 {
	if bucket < subBuckets {
		return float64(bucket)
	}
	exponent := bucket/subBuckets - 1
	low := (subBuckets + bucket%subBuckets) << exponent
	return float64(low) + float64(int64(1)<<exponent-1)/2
}

// quantile is the time that a share q of all does not exceed, in ns; 0 of none.
func (h *histogram) quantile(q float64) float64 {
	rank, seen := int(math.Ceil(q*float64(h.count))), 0
	for b, n := range h.buckets {
		seen += int(n)
		if n > 0 && seen >= rank {
			return math.Min(valueOf(b), math.Max(float64(h.maxNS), 0))
		}
	}
	return 0
}

func (h *histogram) mean() float64 {
	if h.count == 0 {
		return 0
	}
	return float64(h.sumNS) / float64(h.count)
}
