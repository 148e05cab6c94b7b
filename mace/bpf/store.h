/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Where state and results live: slots for packets under way, and per namespace a ring, counters and aggregates.
 */
#ifndef TARE_STORE_H
#define TARE_STORE_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "aggregate.h"
#include "identity.h"
#include "path.h"
#include "tare.h"

/* --- packets under way ---------------------------------------------------------------------------------------- */

#define SLOTS_LOG2 15
#define SLOTS	   (1 << SLOTS_LOG2)

/*
 * The skb's address as a number. The verifier forbids all arithmetic on pointers but one: their difference is a
 * number. So the key is the distance to a fixed place, a variable of ours, and the same in every program.
 */
static __always_inline u64 skb_key(const struct sk_buff *skb)
{
	return (u64)skb - (u64)&real_minus_mono_ns;
}

/* What a packet's slot is found by. */
static __always_inline u64 packet_key(const struct sk_buff *skb, const struct header *h, const struct identity *id)
{
	return identity_keys || h->fragment ? id->fixed : skb_key(skb);
}

/* A number for its head, which clones share. Since Linux 6.18 the verifier takes this field for a pointer too. */
static __always_inline u64 head_key(const struct sk_buff *skb)
{
	u64 head = 0;

	bpf_core_read(&head, sizeof(head), &skb->head);
	return head;
}

/* Common to all slots. A pair of neighbours serves one address: the second takes what does not fit the first. */
struct slot {
	u64 key; /* packet_key() or head_key(); 0: free */
	u64 seal;
	u64 time_ns;
	u64 fixed;
	u64 payload;
	u32 len; /* egress: the skb's; ingress: the IP header's length field, which tells if GRO has been at work */
	u8 payload_bytes;
	u8 ns;
	u16 flags;
};

struct egress_slot {
	struct slot slot;
	u64 syscall_ns;
	u32 pid;
	u32 ifindex; /* where it was seen first */
	u32 reserved;
	u32 header_len;
	u8 header[TARE_HEADER_BYTES];
};

struct ingress_slot {
	struct slot slot;
	u64 stamp_ns;
	u32 last_event;
	u32 reserved;
};

/* What is known of a received packet's way when it reaches a program. */
struct way {
	u64 token;
	u64 inner_ns;
	u64 outer_ns;
	u64 inner_stamp_ns;
	u64 outer_stamp_ns;
};

struct delivery_slot {
	struct slot slot;
	struct way way;
	u16 udp_port; /* whom it is for, and how much of it there is; 0: not UDP */
	u16 udp_bytes;
	u32 told; /* a program has read it: the first reading counts */
	u32 len;
	u32 header_len;
	u8 header[TARE_HEADER_BYTES]; /* with nic_delivers */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct egress_slot);
} egress_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct ingress_slot);
} ingress_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct delivery_slot);
} delivery_slots SEC(".maps");

static __always_inline u32 slot_index(u64 address)
{
	/* skbs are at least 64 bytes apart */
	return ((address >> 6) * 0x9E3779B97F4A7C15ULL) >> (64 - SLOTS_LOG2);
}

/* The slot of this key, or NULL. The index of the pair's other half is ^ 1. */
static __always_inline void *slot_find(void *slots, u64 key)
{
	u32 index = slot_index(key);
	struct slot *s = bpf_map_lookup_elem(slots, &index);

	if (s && s->key == key)
		return s;
	index ^= 1;
	s = bpf_map_lookup_elem(slots, &index);
	return s && s->key == key ? s : NULL;
}

/* A slot to write this key's state into. overwritten is added one to if that costs another packet its state. */
static __always_inline void *slot_claim(void *slots, u64 key, u64 now_ns, u64 max_age_ns, u64 *overwritten)
{
	u32 index = slot_index(key), other = index ^ 1;
	struct slot *a = bpf_map_lookup_elem(slots, &index), *b;

	if (!a || !a->key || a->key == key || now_ns - a->time_ns > max_age_ns)
		return a;
	b = bpf_map_lookup_elem(slots, &other);
	if (!b || !b->key || b->key == key || now_ns - b->time_ns > max_age_ns)
		return b;
	*overwritten += 1;
	return a->time_ns < b->time_ns ? a : b;
}

static __always_inline u64 slot_seal(const struct slot *s, u64 key)
{
	return mix(mix(key ^ s->fixed, s->time_ns), s->payload);
}

/* Writes the common part. Another CPU that reads meanwhile sees no key, or a seal that does not fit. */
static __always_inline void slot_fill(struct slot *s, u64 key, const struct identity *id, u64 time_ns)
{
	s->time_ns = time_ns;
	s->fixed = id->fixed;
	s->payload = id->payload;
	s->payload_bytes = id->payload_bytes;
	s->seal = slot_seal(s, key);
	s->key = key;
}

/*
 * Is it the slot's packet? The payload counts where the same part of it was readable both times: netfilter and GRO
 * pull more of it into the linear part on the way.
 */
static __always_inline bool slot_is(const struct slot *s, const struct identity *id)
{
	return s->fixed == id->fixed && (s->payload_bytes != id->payload_bytes || s->payload == id->payload);
}

/* --- per namespace -------------------------------------------------------------------------------------------- */

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TARE_NAMESPACES);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* [0] egress, [1] ingress */
struct aggregates {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct tare_aggregate);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TARE_NAMESPACES);
	__type(key, u32);
	__array(values, struct aggregates);
} aggregates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TARE_NAMESPACES);
	__type(key, u32);
	__type(value, struct tare_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct tare_rejections);
} rejections SEC(".maps");

static __always_inline struct tare_counters *counters_of(u32 ns)
{
	return bpf_map_lookup_elem(&counters, &ns);
}

static __always_inline void reject(bool too_old)
{
	u32 zero = 0;
	struct tare_rejections *r = bpf_map_lookup_elem(&rejections, &zero);

	if (!r)
		return;
	if (too_old)
		r->age++;
	else
		r->identity++;
}

static __always_inline void aggregate(u32 ns, u32 direction, u64 latency_ns)
{
	struct tare_aggregate *a;
	void *pair;

	if (!keep_aggregates)
		return;
	pair = bpf_map_lookup_elem(&aggregates, &ns);
	if (!pair)
		return;
	a = bpf_map_lookup_elem(pair, &direction);
	if (a)
		aggregate_add(a, latency_ns);
}

/*
 * Whether there is a record is said by reserved, never by the pointer: Linux 6.1 takes it for possibly NULL again each
 * time it is tested, and refuses the way on which it is not submitted then. The number is made opaque, or the compiler
 * would test the pointer in its place.
 */
static __always_inline void *record_reserve(u32 ns, struct tare_counters *c, u64 size, u64 *reserved)
{
	void *ring = bpf_map_lookup_elem(&rings, &ns), *r = NULL;
	u64 yes = 1;

	*reserved = 0;
	if (!ring)
		return NULL;
	r = bpf_ringbuf_reserve(ring, size, 0);
	if (!r) {
		c->ring_dropped++;
		return NULL;
	}
	barrier_var(yes);
	*reserved = yes;
	return r;
}

/* The reader polls: waking it for each packet costs the packet more than everything else here. */
static __always_inline void record_submit(void *r)
{
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

#endif
