/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - one side's private handle of a single-producer, single-consumer ring in shared memory.
 *
 *   producer: n = dp_ring_reserve(r, want); write entries dp_ring_at(r, 0..n-1); dp_ring_submit(r, n)
 *   consumer: n = dp_ring_peek(r, want);    read entries  dp_ring_at(r, 0..n-1); dp_ring_release(r, n)
 *
 * A handle has one thread. Of the shared part it reads only the peer's index: once, with acquire, checked.
 */
#ifndef DOCKPIPE_RING_H
#define DOCKPIPE_RING_H

#include <string.h>

#include "dockpipe.h"

struct dp_ring {
	struct dp_ring_shared *shared;
	uint32_t size; /* entries, a power of two */
	uint32_t own;  /* this side's index: the truth; the shared one is its publication */
	uint32_t peer; /* the peer's index when it was last looked at and found sane */
	uint64_t bad;  /* how often the peer's index was impossible */
};

static inline void dp_ring_init(struct dp_ring *r, struct dp_ring_shared *shared, uint32_t size, uint32_t own,
				uint32_t peer)
{
	*r = (struct dp_ring){ .shared = shared, .size = size, .own = own, .peer = peer };
}

/* Where in the array of entries the i-th reserved or peeked one is. */
static inline uint32_t dp_ring_at(const struct dp_ring *r, uint32_t i)
{
	return (r->own + i) & (r->size - 1);
}

/* How many of n entries the producer may write. An impossible consumer index counts as "none free": a hostile
 * peer stops its own ring, nothing else. */
static inline uint32_t dp_ring_reserve(struct dp_ring *r, uint32_t n)
{
	uint32_t free_entries = r->size - (r->own - r->peer);

	if (free_entries < n) {
		/* Pairs with the release in dp_ring_release: what the consumer read, it has read before we overwrite it. */
		uint32_t consumer = atomic_load_explicit(&r->shared->consumer, memory_order_acquire);

		if (r->own - consumer > r->size) {
			r->bad++;
			return 0;
		}
		r->peer = consumer;
		free_entries = r->size - (r->own - consumer);
	}
	return free_entries < n ? free_entries : n;
}

/* Hand the first n reserved entries to the consumer. */
static inline void dp_ring_submit(struct dp_ring *r, uint32_t n)
{
	r->own += n;
	/* Pairs with the acquire in dp_ring_peek: entries and buffers are written before they are announced. */
	atomic_store_explicit(&r->shared->producer, r->own, memory_order_release);
}

/* How many of n entries are there for the consumer. An impossible producer index counts as "none". */
static inline uint32_t dp_ring_peek(struct dp_ring *r, uint32_t n)
{
	uint32_t entries = r->peer - r->own;

	if (entries < n) {
		/* Pairs with the release in dp_ring_submit. */
		uint32_t producer = atomic_load_explicit(&r->shared->producer, memory_order_acquire);

		if (producer - r->own > r->size) {
			r->bad++;
			return 0;
		}
		r->peer = producer;
		entries = producer - r->own;
	}
	return entries < n ? entries : n;
}

/* Give the first n peeked entries back to the producer. */
static inline void dp_ring_release(struct dp_ring *r, uint32_t n)
{
	r->own += n;
	/* Pairs with the acquire in dp_ring_reserve. */
	atomic_store_explicit(&r->shared->consumer, r->own, memory_order_release);
}

/* Entries that the producer has submitted and the consumer, when last looked at, had not released. */
static inline uint32_t dp_ring_in_use(struct dp_ring *r)
{
	(void)dp_ring_reserve(r, r->size);
	return r->own - r->peer;
}

/* Write a descriptor into a slot. The slot is announced later, by dp_ring_submit. */
static inline void dp_slot_write(struct dp_slot *slot, const struct dp_desc *desc)
{
	uint64_t word[2];

	memcpy(word, desc, sizeof word);
	atomic_store_explicit(&slot->word[0], word[0], memory_order_relaxed);
	atomic_store_explicit(&slot->word[1], word[1], memory_order_relaxed);
}

/* Copy a descriptor out of a slot: each word is loaded exactly once. */
static inline struct dp_desc dp_slot_read(const struct dp_slot *slot)
{
	uint64_t word[2] = { atomic_load_explicit(&slot->word[0], memory_order_relaxed),
			     atomic_load_explicit(&slot->word[1], memory_order_relaxed) };
	struct dp_desc desc;

	memcpy(&desc, word, sizeof desc);
	return desc;
}

#endif
