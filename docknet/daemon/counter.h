/* SPDX-License-Identifier: Apache-2.0 */
/* A counter with one writer at a time, read by others at any time: no locked instruction, and no torn value. */
#ifndef DOCKDAEMON_COUNTER_H
#define DOCKDAEMON_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

static inline uint64_t counter_read(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static inline void counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, counter_read(c) + n, memory_order_relaxed);
}

#endif
