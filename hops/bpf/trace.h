/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Traces under way. As in mace a packet is found again by its skb's address, in a slot that this address selects, and
 * the headers prove that it is the same packet: where a trace begins, and where it ends. In between they need not be
 * looked at, because an skb's address belongs to nobody else while its packet lives, and a packet that does not live
 * to the end of its way has a trace that does not end.
 */
#ifndef HOPS_TRACE_H
#define HOPS_TRACE_H

#include <bpf/bpf_helpers.h>

#include "../../mace/bpf/store.h"
#include "hops.h"

const volatile u64 container_cookie;
const volatile u64 host_cookie;

/* One packet in so many has its tracer timed, which costs one more look at the clock at each point. */
#define TIMED_ONE_IN 4

struct trace_slot {
	struct slot slot;
	struct hops_trace trace;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct trace_slot);
} egress_traces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct trace_slot);
} ingress_traces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} results SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct hops_counters);
} hops_counts SEC(".maps");

static __always_inline struct hops_counters *counts(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&hops_counts, &zero);
}

/* Nobody is woken: the reader asks. */
static __always_inline void tell(struct hops_counters *c, void *result, u64 size)
{
	if (bpf_ringbuf_output(&results, result, size, BPF_RB_NO_WAKEUP))
		c->ring_dropped++;
}

enum place {
	ELSEWHERE,
	IN_HOST,
	IN_CONTAINER,
};

/* Comes first in every program: most hosts have other namespaces whose packets are nobody's business. */
static __always_inline enum place place_of(const struct net_device *dev)
{
	u64 cookie = dev->nd_net.net->net_cookie;

	if (dev->ifindex == 1) /* loopback, in every network namespace */
		return ELSEWHERE;
	if (cookie == container_cookie)
		return IN_CONTAINER;
	return cookie == host_cookie ? IN_HOST : ELSEWHERE;
}

static __always_inline bool is_outer(const struct net_device *dev)
{
	u32 ifindex = dev->ifindex;
	bool found = false;
	u32 i;

#pragma unroll
	for (i = 0; i < TARE_NICS; i++) {
		if (nic_ifindex[i] && ifindex == nic_ifindex[i])
			found = true;
	}
	return found && dev->nd_net.net->net_cookie == host_cookie;
}

/* The receive stamp in an skb, or 0: a time of day. TCP keeps a time since boot in the same field: see mace's. */
static __always_inline u64 stamp_of(const struct sk_buff *skb)
{
	s64 stamp = skb->tstamp;

	return stamp > real_minus_mono_ns ? stamp : 0;
}

/* Empties a slot for a packet that is seen for the first time. */
static __always_inline void trace_begin(struct trace_slot *s, u8 kind, u64 now_ns)
{
	struct hops_trace *t = &s->trace;

	s->slot.key = 0;
	t->kind = kind;
	t->status = HOPS_COMPLETE;
	t->tag = now_ns ^ (now_ns >> 8);
	t->count = 0;
	t->nic_points = 0;
	t->flags = mix(now_ns, kind) % TIMED_ONE_IN ? 0 : HOPS_F_TIMED;
	t->pid = 0;
	t->token = 0;
	t->header_len = 0;
	t->stamp_ns[0] = 0;
	t->stamp_ns[1] = 0;
}

/* Adds a point. The last act of a program is point_end() on what this returns. */
static __always_inline struct hops_point *point_add(struct hops_trace *t, u32 ifindex, u8 event, u64 now_ns)
{
	u32 at = t->count;
	struct hops_point *p;

	if (at < 255)
		t->count = at + 1;
	if (at >= HOPS_POINTS)
		return NULL;
	p = &t->points[at & (HOPS_POINTS - 1)];
	p->time_ns = now_ns;
	p->ifindex = ifindex;
	p->spent_ns = 0;
	p->event = event;
	p->tag = t->tag;
	return p;
}

static __always_inline u64 since(u64 start_ns)
{
	u64 spent = bpf_ktime_get_ns() - start_ns;

	return spent < 65535 ? spent : 65535;
}

static __always_inline void point_end(const struct hops_trace *t, struct hops_point *p)
{
	if (p && (t->flags & HOPS_F_TIMED))
		p->spent_ns = since(p->time_ns);
}

/* Remembers the receive stamp where it is first seen: which is 0 on the NIC, 1 in the container. */
static __always_inline void stamp_note(struct hops_trace *t, const struct sk_buff *skb, u32 which)
{
	u64 stamp = stamp_of(skb);

	if (!stamp || t->stamp_ns[which])
		return;
	t->stamp_ns[which] = stamp;
	t->stamp_at[which] = t->count - 1;
}

static __always_inline bool is_torn(const struct trace_slot *s)
{
	return s->slot.seal != slot_seal(&s->slot, s->slot.key);
}

/* Gives up a trace that cannot end any more. */
static __always_inline void egress_abandon(struct trace_slot *s, struct hops_counters *c)
{
	s->trace.status = is_torn(s) ? HOPS_TORN : HOPS_UNFINISHED;
	s->slot.key = 0;
	tell(c, &s->trace, sizeof(s->trace));
}

#endif
