/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From a NIC to a device of the container. */
#ifndef HOPS_INGRESS_H
#define HOPS_INGRESS_H

#include <bpf/bpf_helpers.h>

#include "delivery.h"
#include "trace.h"

/* At a NIC nobody knows yet whose packet it is: NAT has not spoken. So every packet gets a trace. */
static __always_inline void ingress_at_nic(const struct sk_buff *skb, u32 ifindex, u8 event, u64 now_ns)
{
	u64 key = skb_key(skb), time_ns = now_ns, overwritten = 0;
	struct hops_counters *c = counts();
	struct header h = {};
	struct identity id = {};
	struct trace_slot *s;
	struct hops_trace *t;
	struct hops_point *p, *last;

	if (!c)
		return;
	packet_read(&h, skb, skb->data);
	if (h.len)
		identify(&id, &h);
	s = slot_find(&egress_traces, key);
	if (s) { /* of a packet that had this skb before, and came to nothing */
		c->egress_replaced++;
		egress_abandon(s, c);
	}
	s = slot_claim(&ingress_traces, key, now_ns, max_age_ns, &overwritten);
	if (!s)
		return;
	t = &s->trace;
	last = &t->points[(t->count - 1) & (HOPS_POINTS - 1)];
	/*
	 * Has it been here before, earlier on its way? Without an identity then it goes by the skb: the headers were not
	 * in its linear part yet (napi_gro_frags).
	 */
	if (s->slot.key == key && t->count == t->nic_points && last->ifindex == ifindex && last->event < event &&
	    now_ns - s->slot.time_ns < max_age_ns && (!s->slot.fixed || slot_is(&s->slot, &id)))
		time_ns = s->slot.time_ns;
	else
		trace_begin(s, HOPS_INGRESS, now_ns);
	s->slot.key = 0;
	s->slot.len = h.length;
	p = point_add(t, ifindex, event, now_ns);
	t->nic_points = t->count;
	stamp_note(t, skb, 0);
	slot_fill(&s->slot, key, &id, time_ns);
	if (nic_delivers && event == HOPS_NETIF_RECEIVE_SKB && h.len) {
		t->len = skb->len;
		t->header_len = h.len;
		__builtin_memcpy(t->header, h.bytes, TARE_HEADER_BYTES);
		t->token = now_ns;
		point_end(t, p);
		delivery_keep(skb, &h, &id, t, now_ns);
		return;
	}
	point_end(t, p);
}

/* It has reached the container. */
static __always_inline void ingress_end(const struct sk_buff *skb, u32 ifindex, u64 now_ns)
{
	u64 key = skb_key(skb);
	struct hops_counters *c = counts();
	struct header h = {};
	struct identity id;
	struct trace_slot *s;
	struct hops_trace *t;
	struct hops_point *p;

	if (!c)
		return;
	c->device_rx++;
	packet_read(&h, skb, skb->data);
	if (!h.len) {
		c->malformed++;
		return;
	}
	identify(&id, &h);
	s = slot_find(&ingress_traces, key);
	if (!s || !slot_is(&s->slot, &id) || now_ns - s->slot.time_ns > max_age_ns) {
		c->ingress_unstarted++;
		return;
	}
	t = &s->trace;
	if (is_torn(s))
		t->status = HOPS_TORN;
	else if (s->slot.len != h.length)
		t->status = HOPS_MERGED;
	s->slot.key = 0;
	c->ingress_traced++;
	t->len = skb->len;
	t->header_len = h.len;
	__builtin_memcpy(t->header, h.bytes, TARE_HEADER_BYTES);
	t->token = now_ns;
	p = point_add(t, ifindex, HOPS_NETIF_RECEIVE_SKB | HOPS_IN_CONTAINER, now_ns);
	stamp_note(t, skb, 1);
	delivery_expect(skb, &h, &id, now_ns);
	point_end(t, p);
	tell(c, t, sizeof(*t));
}

#endif
