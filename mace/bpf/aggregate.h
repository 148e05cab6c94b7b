/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Aggregates in the kernel: count, sum, sum of squares, extremes and a log-linear histogram, per CPU.
 *
 * Buckets: values below 32 ns have one each; every power of two above has 32, so a bucket is at most 1/32 (3.1%)
 * of its value wide. 1,024 of them reach 2^36 ns, 69 s. aggregate.go holds the inverse and a test compares both.
 */
#ifndef TARE_AGGREGATE_H
#define TARE_AGGREGATE_H

#include <bpf/bpf_helpers.h>

#include "tare.h"

static __always_inline u32 log2_floor(u64 v)
{
	u32 r = 0;

	if (v >= 1ULL << 32)
		v >>= 32, r += 32;
	if (v >= 1ULL << 16)
		v >>= 16, r += 16;
	if (v >= 1ULL << 8)
		v >>= 8, r += 8;
	if (v >= 1ULL << 4)
		v >>= 4, r += 4;
	if (v >= 1ULL << 2)
		v >>= 2, r += 2;
	return r + (v >> 1);
}

static __always_inline u32 bucket_of(u64 ns)
{
	u32 exponent, bucket;

	if (ns < 32)
		return ns;
	exponent = log2_floor(ns);
	bucket = (exponent - 4) * 32 + ((ns >> (exponent - 5)) & 31);
	return bucket < TARE_BUCKETS ? bucket : TARE_BUCKETS - 1;
}

static __always_inline void aggregate_add(struct tare_aggregate *a, u64 ns)
{
	u64 bounded = ns < (1ULL << 32) ? ns : (1ULL << 32) - 1; /* its square fits 64 bits */
	u64 square = bounded * bounded;

	a->sum_squares_lo += square;
	a->sum_squares_hi += a->sum_squares_lo < square;
	a->sum_ns += ns;
	if (!a->count || ns < a->min_ns)
		a->min_ns = ns;
	if (ns > a->max_ns)
		a->max_ns = ns;
	a->count++;
	a->buckets[bucket_of(ns) & (TARE_BUCKETS - 1)]++;
}

#endif
