/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A packet on its way out: from a device of the container to a NIC. */
#ifndef TARE_EGRESS_H
#define TARE_EGRESS_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "audit.h"
#include "roles.h"
#include "store.h"
#include "tasks.h"

static __always_inline void egress_start(const struct sk_buff *skb, const struct net_device *dev, u32 ns,
					 struct tare_counters *c)
{
	u64 now_ns = bpf_ktime_get_ns(), key;
	const void *l3 = skb->head + skb->network_header;
	struct header h = {};
	struct identity id;
	struct egress_slot *s;
	u32 segments = gso_segments(skb);

	count_extra(&c->device_tx_extra, segments);
	packet_read(&h, skb, l3);
	if (!h.len) {
		c->malformed++;
		return;
	}
	identify(&id, &h);
	key = packet_key(skb, &h, &id);
	if (h.fragment)
		fragments_sent = 1;
	s = slot_claim(&egress_slots, key, now_ns, max_age_ns, &c->egress_overwritten);
	if (!s)
		return;
	/*
	 * Stacked devices in the container: the innermost one, seen first, is where the way begins. On the same device
	 * it is another packet: one that is repeated after a loss is like the lost one, and may get the same skb.
	 */
	if (s->slot.key == key && s->ifindex != (u32)dev->ifindex && slot_is(&s->slot, &id) &&
	    now_ns - s->slot.time_ns < max_age_ns && s->slot.ns == ns)
		return;
	s->slot.key = 0;
	s->slot.ns = ns;
	s->slot.len = skb->len - ((u64)l3 - (u64)skb->data); /* without the Ethernet header */
	s->slot.flags = 0;
	s->pid = 0;
	s->ifindex = dev->ifindex;
	s->syscall_ns = 0;
	c->egress_started++;
	if (segments) {
		s->slot.flags |= TARE_F_GSO;
		c->egress_started_gso++;
	}
	if (sent_by_program(skb)) {
		s->pid = bpf_get_current_pid_tgid() >> 32;
		if (egress_from_syscall) {
			s->syscall_ns = current_syscall_ns();
			if (s->syscall_ns)
				s->slot.flags |= TARE_F_SYSCALL;
		}
	}
	/* The container has a tunnel of its own: then it is the outer packet that it sends. */
	if (h.wrapped)
		header_read(&h, skb, l3);
	s->header_len = h.len;
	__builtin_memcpy(s->header, h.bytes, TARE_HEADER_BYTES);
	slot_fill(&s->slot, key, &id, now_ns);
}

/* The packet has left: account for it and tell. */
static __always_inline void egress_finish(struct egress_slot *s)
{
	u64 key = s->slot.key;
	u32 ns = s->slot.ns & (TARE_NAMESPACES - 1);
	struct tare_counters *c = counters_of(ns);
	bool torn = s->slot.seal != slot_seal(&s->slot, key);
	struct tare_record *r;
	u64 start_ns, inner_ns, now_ns, reserved;
	bool gso;

	if (!c)
		return;
	r = record_reserve(ns, c, sizeof(*r), &reserved);
	if (reserved) {
		r->kind = TARE_EGRESS;
		r->status = torn ? TARE_AMBIGUOUS : TARE_MATCHED;
		r->flags = s->slot.flags;
		r->pid = s->pid;
		r->len = s->slot.len;
		r->header_len = s->header_len;
		r->token = 0;
		r->inner_ns = s->slot.time_ns;
		r->syscall_ns = s->syscall_ns;
		r->inner_stamp_ns = 0;
		r->outer_stamp_ns = 0;
		__builtin_memcpy(r->header, s->header, TARE_HEADER_BYTES);
	}
	start_ns = s->slot.time_ns;
	inner_ns = egress_from_syscall ? s->syscall_ns : start_ns;
	gso = s->slot.flags & TARE_F_GSO;
	s->slot.key = 0;
	now_ns = bpf_ktime_get_ns();
	/* Only now is its age known, and asking for the time twice would cost more than to throw a record away. */
	if (now_ns - start_ns > max_age_ns) {
		if (reserved)
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		reject(true);
		return;
	}
	if (reserved) {
		r->outer_ns = now_ns;
		record_submit(r);
	}
	if (torn) {
		c->egress_ambiguous++;
		return;
	}
	c->egress_matched++;
	if (gso)
		c->egress_matched_gso++;
	if (inner_ns)
		aggregate(ns, 0, now_ns - inner_ns);
}

/* Its slot, if this packet came from a container and is still the same. At the NIC it may be wrapped in VXLAN. */
static __always_inline struct egress_slot *egress_find(const struct sk_buff *skb)
{
	const void *l3 = skb->head + skb->network_header;
	struct egress_slot *s = NULL;
	struct header h = {};
	struct identity id;

	if (!identity_keys)
		s = slot_find(&egress_slots, skb_key(skb));
	if (!s && !identity_keys && !fragments_sent)
		return NULL; /* most packets: this host's own, and other containers' */
	packet_read(&h, skb, l3);
	if (!h.len)
		return NULL;
	identify(&id, &h);
	if (!s && (identity_keys || h.fragment))
		s = slot_find(&egress_slots, id.fixed);
	if (!s)
		return NULL;
	if (!slot_is(&s->slot, &id)) {
		reject(false);
		return NULL;
	}
	return s;
}

static __always_inline void egress_end(const struct sk_buff *skb)
{
	struct egress_slot *s = egress_find(skb);

	if (s)
		egress_finish(s);
}

/*
 * net_dev_xmit fires when the driver has taken the skb, which may be freed: its address is a key and nothing else.
 * So the check is made at net_dev_start_xmit, just before and on the same CPU, and the time is taken here.
 */
struct transmission {
	u64 skb; /* 0: none of ours */
	u64 key;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct transmission);
} transmitting SEC(".maps");

static __always_inline void egress_check(const struct sk_buff *skb)
{
	u32 zero = 0;
	struct transmission *t = bpf_map_lookup_elem(&transmitting, &zero);
	struct egress_slot *s;

	if (!t)
		return;
	s = egress_find(skb);
	t->skb = s ? skb_key(skb) : 0;
	t->key = s ? s->slot.key : 0;
}

static __always_inline void egress_end_checked(const struct sk_buff *skb)
{
	u32 zero = 0;
	struct transmission *t = bpf_map_lookup_elem(&transmitting, &zero);
	struct egress_slot *s;

	if (!t || t->skb != skb_key(skb))
		return;
	t->skb = 0;
	s = slot_find(&egress_slots, t->key);
	if (s)
		egress_finish(s);
}

#endif
