/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* A packet on its way in: from a NIC to a device of the container, and from there to the program. */
#ifndef TARE_INGRESS_H
#define TARE_INGRESS_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "audit.h"
#include "roles.h"
#include "store.h"
#include "tasks.h"

static __always_inline u64 monotonic(u64 realtime_ns)
{
	return realtime_ns - real_minus_mono_ns;
}

/*
 * The receive stamp in an skb, or 0. TCP keeps the time to send a segment in the same field, in CLOCK_MONOTONIC, and
 * a veth carries it over to the receiver: that is a time since boot, and so earlier than any time of day since then.
 */
static __always_inline u64 receive_stamp(const struct sk_buff *skb)
{
	s64 stamp = skb->tstamp;

	return stamp > real_minus_mono_ns ? stamp : 0;
}

/* Joins a delivery to its arrival. */
static __always_inline u64 token(u64 inner_ns)
{
	return (inner_ns << 8) | (bpf_get_smp_processor_id() & 0xff);
}

/* Keeps the way for the program that will read the packet. */
static __always_inline void delivery_start(const struct sk_buff *skb, u32 ns, const struct header *h,
					   const struct identity *id, const struct way *w)
{
	u64 key = head_key(skb), overwritten = 0;
	struct delivery_slot *d = slot_claim(&delivery_slots, key, w->inner_ns, max_age_ns, &overwritten);

	if (!d)
		return;
	d->slot.key = 0;
	d->slot.ns = ns;
	d->slot.len = skb->len;
	d->slot.flags = 0;
	d->way = *w;
	d->told = 0;
	if (nic_delivers) {
		d->len = skb->len;
		d->header_len = h->len;
		__builtin_memcpy(d->header, h->bytes, TARE_HEADER_BYTES);
	}
	d->udp_port = 0;
	if (h->protocol == TARE_PROTO_UDP) {
		u32 port_and_length = udp_port_and_length(h);

		d->udp_port = bpf_ntohs((u16)port_and_length);
		d->udp_bytes = bpf_ntohs(port_and_length >> 16) - 8;
	}
	slot_fill(&d->slot, key, id, w->inner_ns);
}

/* At a NIC nobody knows yet whose packet it is: NAT has not spoken. So every packet gets a slot, and a cheap one. */
static __always_inline void ingress_start(const struct sk_buff *skb, u32 event)
{
	u64 now_ns = bpf_ktime_get_ns(), key, overwritten = 0;
	const void *l3 = skb->data;
	struct header h = {};
	struct identity id = {};
	struct ingress_slot *s;

	packet_read(&h, skb, l3);
	if (h.len)
		identify(&id, &h);
	key = packet_key(skb, &h, &id);
	s = slot_claim(&ingress_slots, key, now_ns, max_age_ns, &overwritten);
	if (!s)
		return;
	/*
	 * With several start events the first one's time counts. A later one completes what was missing then: the
	 * identity (napi_gro_frags: headers are not in the linear part yet) and the stamp, and shows if GRO has merged.
	 * The events come in the order of their values: one that is not later belongs to another packet, such as the
	 * repetition of a lost one.
	 */
	if (ingress_start_events != event && s->slot.key == key && s->last_event < event &&
	    now_ns - s->slot.time_ns < max_age_ns && (!s->slot.fixed || slot_is(&s->slot, &id))) {
		now_ns = s->slot.time_ns;
		s->slot.flags = s->slot.len != h.length;
	} else {
		s->slot.flags = 0;
		if (ingress_outer_stamp && receive_stamp(skb))
			now_ns = monotonic(receive_stamp(skb));
	}
	s->slot.key = 0;
	s->slot.len = h.length;
	s->stamp_ns = receive_stamp(skb);
	s->last_event = event;
	slot_fill(&s->slot, key, &id, now_ns);
	if (nic_delivers && event == TARE_NETIF_RECEIVE_SKB && h.len) {
		struct way w = {
			.outer_ns = now_ns,
			.outer_stamp_ns = receive_stamp(skb),
			.inner_stamp_ns = receive_stamp(skb),
			.inner_ns = bpf_ktime_get_ns(),
		};

		w.token = token(w.inner_ns);
		delivery_start(skb, NOT_ACTIVE, &h, &id, &w);
	}
}

/* The latency that the path asks for; 0: the path's inner end has not been reached, or its clock was set. */
static __always_inline u64 ingress_latency(const struct way *w, u32 flags, u64 end_ns)
{
	u64 outer_ns = w->outer_ns, inner_ns = end_ns;

	if (ingress_inner_event == TARE_STAMP || (ingress_by_socket && (flags & TARE_F_KERNEL_STAMP))) {
		if (!w->inner_stamp_ns)
			return 0;
		inner_ns = monotonic(w->inner_stamp_ns);
		/* Without a stamp at the NIC it would have been taken in the IP layer, just behind this event. */
		if (ingress_stamp_pair && w->outer_stamp_ns)
			outer_ns = monotonic(w->outer_stamp_ns);
		if (inner_ns - outer_ns > max_age_ns)
			return 0;
	} else if (ingress_inner_event == TARE_NETIF_RX || ingress_inner_event == TARE_NETIF_RECEIVE_SKB) {
		inner_ns = w->inner_ns;
	}
	return inner_ns >= outer_ns ? inner_ns - outer_ns : 0;
}

/* An arrival's record but for the time; reserved says whether there was room for it. */
static __always_inline struct tare_record *ingress_record(u32 ns, struct tare_counters *c, u32 len, const u8 *header,
							  u32 header_len, const struct way *w, u8 status, u64 *reserved)
{
	struct tare_record *r = record_reserve(ns, c, sizeof(*r), reserved);

	if (!*reserved)
		return NULL;
	r->kind = TARE_INGRESS;
	r->status = status;
	r->flags = 0;
	r->pid = 0;
	r->len = len;
	r->header_len = header_len;
	r->outer_ns = w->outer_ns;
	r->syscall_ns = 0;
	r->inner_stamp_ns = w->inner_stamp_ns;
	r->outer_stamp_ns = w->outer_stamp_ns;
	__builtin_memcpy(r->header, header, TARE_HEADER_BYTES);
	return r;
}

static __always_inline void ingress_end(const struct sk_buff *skb, u32 ns, struct tare_counters *c)
{
	u64 key, latency_ns, reserved;
	struct ingress_slot *s;
	u8 status = TARE_UNSTARTED;
	struct header h = {};
	struct identity id;
	struct tare_record *r;
	struct way w = {};

	count_extra(&c->device_rx_extra, gso_segments(skb));
	packet_read(&h, skb, skb->data);
	if (!h.len) {
		c->malformed++;
		return;
	}
	identify(&id, &h);
	key = packet_key(skb, &h, &id);
	s = slot_find(&ingress_slots, key);
	if (s && !slot_is(&s->slot, &id)) {
		reject(false);
		s = NULL;
	}
	if (s) {
		status = TARE_MATCHED;
		if (s->slot.seal != slot_seal(&s->slot, key))
			status = TARE_AMBIGUOUS;
		else if (s->slot.flags || s->slot.len != h.length)
			status = TARE_MERGED;
		w.outer_ns = s->slot.time_ns;
		w.outer_stamp_ns = s->stamp_ns;
		s->slot.key = 0;
	}
	/* The container has a tunnel of its own: then it is the outer packet that it gets. */
	if (h.wrapped)
		header_read(&h, skb, skb->data);
	w.inner_stamp_ns = receive_stamp(skb);
	r = ingress_record(ns, c, skb->len, h.bytes, h.len, &w, status, &reserved);
	w.inner_ns = bpf_ktime_get_ns();
	w.token = token(w.inner_ns);
	if (s && w.inner_ns - w.outer_ns > max_age_ns) {
		reject(true);
		status = TARE_UNSTARTED;
	}
	if (reserved) {
		r->status = status;
		r->inner_ns = w.inner_ns;
		r->token = w.token;
		record_submit(r);
	}
	switch (status) {
	case TARE_MATCHED:
		c->ingress_matched++;
		latency_ns = ingress_latency(&w, 0, 0);
		if (!delivery_event && latency_ns)
			aggregate(ns, 1, latency_ns);
		break;
	case TARE_AMBIGUOUS:
		c->ingress_ambiguous++;
		break;
	case TARE_MERGED:
		c->ingress_merged++;
		break;
	default:
		c->ingress_unstarted++;
		return;
	}
	if (delivery_event)
		delivery_start(skb, ns, &h, &id, &w);
}

/* Tells of a packet that has reached a program. end_ns: 0, or when the receiving call returned. */
static __always_inline void delivery_finish(u32 ns, const struct way *w, u32 flags, u64 end_ns)
{
	struct tare_counters *c = counters_of(ns);
	struct tare_delivery *r;
	u64 latency_ns, reserved;

	if (!c)
		return;
	c->delivered++;
	r = record_reserve(ns, c, sizeof(*r), &reserved);
	if (reserved) {
		r->kind = TARE_DELIVERY;
		r->reserved = 0;
		r->flags = flags;
		r->pid = bpf_get_current_pid_tgid() >> 32;
		r->token = w->token;
		r->inner_stamp_ns = w->inner_stamp_ns;
	}
	if (end_ns)
		end_ns = bpf_ktime_get_ns();
	if (reserved) {
		r->syscall_ns = end_ns;
		record_submit(r);
	}
	latency_ns = ingress_latency(w, flags, end_ns ? end_ns : w->inner_ns);
	if (latency_ns)
		aggregate(ns, 1, latency_ns);
}

/* With nic_delivers the arrival is told only now. */
static __always_inline void delivery_announce(u32 ns, struct tare_counters *c, const struct delivery_slot *d)
{
	u64 reserved;
	struct tare_record *r =
		ingress_record(ns, c, d->len, d->header, d->header_len, &d->way, TARE_MATCHED, &reserved);

	c->device_rx++;
	c->ingress_matched++;
	if (!reserved)
		return;
	r->inner_ns = d->way.inner_ns;
	r->token = d->way.token;
	record_submit(r);
}

/* Tells that the current thread reads a packet: now, or when its call returns. */
static __always_inline void delivery_tell(u32 ns, struct delivery_slot *d, u32 flags)
{
	struct tare_counters *c = counters_of(ns);
	struct thread *t;

	if (d->told || !c)
		return;
	d->told = 1;
	if (d->slot.ns == NOT_ACTIVE) {
		d->slot.ns = ns;
		delivery_announce(ns, c, d);
	}
	if (delivery_event == TARE_SKB_COPY) {
		delivery_finish(ns, &d->way, flags, 0);
		return;
	}
	t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
	if (!t || !t->enter_ns) {
		delivery_finish(ns, &d->way, flags, 0); /* no call to end: a kernel thread reads (io_uring's SQPOLL) */
		return;
	}
	if (t->received_count >= PENDING) {
		c->pending_overflow++;
		return;
	}
	t->received[t->received_count & (PENDING - 1)] = (struct received){ d->way, flags | TARE_F_SYSCALL, ns };
	t->received_count++;
}

/*
 * A program gets a packet: it is being copied out, or, as most of UDP's are copied without any event, thrown away
 * after that. Raw sockets and error queues hold clones, which share the head.
 */
static __always_inline void delivery_read(const struct sk_buff *skb, bool consumed)
{
	u32 ns = container_of_task(bpf_get_current_task_btf()), flags = 0;
	struct tare_counters *c;
	struct delivery_slot *d;
	const struct sock *sk;
	struct header h = {};
	struct identity id;
	u64 key;

	if (ns == NOT_ACTIVE)
		return;
	key = head_key(skb);
	d = slot_find(&delivery_slots, key);
	if (!d || (d->slot.ns != ns && d->slot.ns != NOT_ACTIVE))
		return;
	c = counters_of(ns);
	if (!c)
		return;
	/* network_header points at the quoted packet in an error queue's clone; mac_header still tells the truth. */
	packet_read(&h, skb, skb->head + skb->mac_header + skb->mac_len);
	if (consumed && h.protocol != TARE_PROTO_UDP)
		return;
	if (h.len)
		identify(&id, &h);
	if (!h.len || !slot_is(&d->slot, &id) || d->slot.seal != slot_seal(&d->slot, key)) {
		c->delivered_unmatched++;
		return;
	}
	sk = skb->sk;
	if (!sk)
		sk = socket_of_syscall(); /* UDP: its queued packets belong to no socket */
	if (consumed && !in_receiving_call(sk))
		return; /* the kernel throws it away, on top of whatever thread is current */
	/* This is what the program is given; at the device a segment with a time to send had no stamp yet. */
	d->way.inner_stamp_ns = receive_stamp(skb);
	if (sk && takes_kernel_stamp(sk))
		flags |= TARE_F_KERNEL_STAMP;
	delivery_tell(ns, d, flags);
}

/* The receiving call returns with what it has copied. */
static __always_inline void delivery_syscall_exit(struct thread *t)
{
	u32 i;

	for (i = 0; i < PENDING; i++) {
		struct received *got = &t->received[i];

		if (i >= t->received_count)
			break;
		delivery_finish(got->ns & (TARE_NAMESPACES - 1), &got->way, got->flags, 1);
	}
	t->received_count = 0;
}

#endif
