/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From a program in the container to the driver of a NIC. */
#ifndef HOPS_EGRESS_H
#define HOPS_EGRESS_H

#include <bpf/bpf_helpers.h>

#include "callers.h"
#include "trace.h"

/* A packet is on its way out by a device of the container. */
static __always_inline void egress_start(const struct sk_buff *skb, u32 ifindex, u64 now_ns)
{
	struct hops_counters *c = counts();
	u64 key = skb_key(skb), overwritten = 0;
	const void *l3 = skb->head + skb->network_header;
	struct header h = {};
	struct identity id;
	struct trace_slot *s;
	struct hops_point *p;
	struct hops_trace *t;

	if (!c)
		return;
	c->device_tx++;
	packet_read(&h, skb, l3);
	if (!h.len) {
		c->malformed++;
		return;
	}
	identify(&id, &h);
	s = slot_find(&ingress_traces, key);
	if (s)
		s->slot.key = 0; /* of a packet that had this skb before */
	s = slot_claim(&egress_traces, key, now_ns, max_age_ns, &overwritten);
	if (!s)
		return;
	t = &s->trace;
	/* Stacked devices in the container: the same packet again. On the same device it is another one, just alike. */
	if (s->slot.key == key && slot_is(&s->slot, &id) && now_ns - s->slot.time_ns < max_age_ns &&
	    t->points[(t->count - 1) & (HOPS_POINTS - 1)].ifindex != ifindex) {
		p = point_add(t, ifindex, HOPS_NET_DEV_QUEUE | HOPS_IN_CONTAINER, now_ns);
		point_end(t, p);
		return;
	}
	if (s->slot.key) {
		c->egress_replaced++;
		egress_abandon(s, c);
	}
	trace_begin(s, HOPS_EGRESS, now_ns);
	c->egress_started++;
	if (sent_by_program(skb)) {
		t->pid = bpf_get_current_pid_tgid() >> 32;
		caller_point(t);
	}
	t->len = skb->len - ((u64)l3 - (u64)skb->data); /* without the Ethernet header */
	t->header_len = h.len;
	__builtin_memcpy(t->header, h.bytes, TARE_HEADER_BYTES);
	p = point_add(t, ifindex, HOPS_NET_DEV_QUEUE | HOPS_IN_CONTAINER, now_ns);
	slot_fill(&s->slot, key, &id, now_ns);
	point_end(t, p);
}

/*
 * net_dev_xmit fires when the driver has taken the skb, which may be freed: its address is a key and nothing else. So
 * the packet is looked at when it is given to the driver, just before and on the same CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} driving SEC(".maps");

/* At a NIC: is it still the packet that the container has sent? */
static __always_inline void egress_at_nic(const struct sk_buff *skb, u32 ifindex, u8 event, u64 now_ns)
{
	u64 key = skb_key(skb), *driven;
	struct trace_slot *s = slot_find(&egress_traces, key);
	u32 zero = 0;
	struct header h = {};
	struct identity id = {};
	struct hops_counters *c;
	struct hops_point *p;

	driven = bpf_map_lookup_elem(&driving, &zero);
	if (driven && event == HOPS_NET_DEV_START_XMIT)
		*driven = 0;
	if (!s)
		return;
	c = counts();
	if (!c)
		return;
	packet_read(&h, skb, skb->head + skb->network_header);
	if (h.len)
		identify(&id, &h);
	if (!slot_is(&s->slot, &id) || now_ns - s->slot.time_ns > max_age_ns) {
		c->egress_rejected++;
		egress_abandon(s, c);
		return;
	}
	s->trace.flags |= HOPS_F_CHECKED;
	p = point_add(&s->trace, ifindex, event, now_ns);
	if (driven && event == HOPS_NET_DEV_START_XMIT)
		*driven = key;
	point_end(&s->trace, p);
}

/* The driver has taken it: the end. */
static __always_inline void egress_end(const struct sk_buff *skb, u32 ifindex, u64 now_ns)
{
	u32 zero = 0;
	u64 *driven = bpf_map_lookup_elem(&driving, &zero), key = skb_key(skb);
	struct hops_counters *c = counts();
	struct trace_slot *s;

	if (!driven || !c || *driven != key)
		return;
	*driven = 0;
	s = slot_find(&egress_traces, key);
	if (!s)
		return;
	point_add(&s->trace, ifindex, HOPS_NET_DEV_XMIT, now_ns);
	s->trace.status = is_torn(s) ? HOPS_TORN : HOPS_COMPLETE;
	s->slot.key = 0;
	c->egress_finished++;
	tell(c, &s->trace, sizeof(s->trace));
}

#endif
