/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * From the container's device to the program that reads the packet. It is found again by skb->head, because raw
 * sockets get clones. UDP is copied out without an event that names the skb; how it is found is told in mace's udp.h,
 * and this is the same in the form that traces need.
 *
 * A packet need not be read at all, as ACKs are not. So its trace is told when it reaches the device, and the reading
 * by a record of its own with the same token.
 */
#ifndef HOPS_DELIVERY_H
#define HOPS_DELIVERY_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "callers.h"
#include "trace.h"

struct expected {
	struct slot slot;
	u64 token;
	u64 stamp_ns;
	u32 told; /* the first reading counts */
	u16 udp_port;
	u16 udp_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct expected);
} deliveries SEC(".maps");

/* With nic_delivers: the traces of what came by the NIC, whose container is known once it is read. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, struct trace_slot);
} kept_traces SEC(".maps");

static __always_inline void delivery_expect(const struct sk_buff *skb, const struct header *h,
					    const struct identity *id, u64 token)
{
	u64 key = head_key(skb), overwritten = 0;
	struct expected *e = slot_claim(&deliveries, key, token, max_age_ns, &overwritten);

	if (!e)
		return;
	e->slot.key = 0;
	e->token = token;
	e->stamp_ns = stamp_of(skb);
	e->told = 0;
	e->udp_port = 0;
	if (h->protocol == TARE_PROTO_UDP) {
		u32 port_and_length = udp_port_and_length(h);

		e->udp_port = bpf_ntohs((u16)port_and_length);
		e->udp_bytes = bpf_ntohs(port_and_length >> 16) - 8;
	}
	slot_fill(&e->slot, key, id, token);
}

static __always_inline void delivery_keep(const struct sk_buff *skb, const struct header *h, const struct identity *id,
					  const struct hops_trace *t, u64 now_ns)
{
	u64 key = head_key(skb), overwritten = 0;
	struct trace_slot *s = slot_claim(&kept_traces, key, now_ns, max_age_ns, &overwritten);

	if (!s)
		return;
	s->slot.key = 0;
	s->trace = *t;
	slot_fill(&s->slot, key, id, now_ns);
	delivery_expect(skb, h, id, t->token);
}

/* Tells the trace that waited for somebody to read its packet. */
static __always_inline void delivery_announce(struct hops_counters *c, u64 key, u64 token)
{
	struct trace_slot *s = slot_find(&kept_traces, key);

	if (!s || s->trace.token != token || is_torn(s))
		return;
	s->slot.key = 0;
	c->device_rx++;
	c->ingress_traced++;
	tell(c, &s->trace, sizeof(s->trace));
}

/* The current thread reads the packet: that is told when its call returns. */
static __always_inline void delivery_read(struct expected *e, u32 flags, u64 now_ns)
{
	struct hops_counters *c = counts();
	struct hops_delivery d = {};
	struct caller *caller;

	if (!c || e->told)
		return;
	e->told = 1;
	c->delivered++;
	if (nic_delivers)
		delivery_announce(c, e->slot.key, e->token);
	d.kind = HOPS_DELIVERY;
	d.flags = flags;
	d.pid = bpf_get_current_pid_tgid() >> 32;
	d.token = e->token;
	d.copy_ns = now_ns;
	d.stamp_ns = e->stamp_ns;
	caller = bpf_task_storage_get(&callers, bpf_get_current_task_btf(), NULL, 0);
	if (!caller || !caller->enter_ns) {
		tell(c, &d, sizeof(d)); /* no call to end: a kernel thread reads (io_uring's SQPOLL) */
		return;
	}
	if (caller->received_count >= PENDING) {
		c->pending_overflow++;
		return;
	}
	d.spent_ns = since(now_ns);
	caller->received[caller->received_count & (PENDING - 1)] = d;
	caller->received_count++;
}

/* An skb is copied to the current thread; or thrown away by it, which is all that old kernels tell of UDP. */
static __always_inline void delivery_copy(const struct sk_buff *skb, bool consumed)
{
	u64 now_ns, key;
	struct expected *e;
	const struct sock *sk;
	struct header h = {};
	struct identity id;
	u32 flags = 0;

	if (!in_container(bpf_get_current_task_btf()))
		return;
	now_ns = bpf_ktime_get_ns();
	key = head_key(skb);
	e = slot_find(&deliveries, key);
	if (!e || e->told)
		return;
	/* network_header points at the quoted packet in an error queue's clone; mac_header still tells the truth. */
	packet_read(&h, skb, skb->head + skb->mac_header + skb->mac_len);
	if (!h.len || (consumed && h.protocol != TARE_PROTO_UDP))
		return;
	identify(&id, &h);
	if (!slot_is(&e->slot, &id) || e->slot.seal != slot_seal(&e->slot, key))
		return;
	sk = skb->sk;
	if (!sk)
		sk = socket_of_syscall(); /* UDP: its queued packets belong to no socket */
	if (consumed && !in_receiving_call(sk))
		return;
	e->stamp_ns = stamp_of(skb);
	if (sk && takes_kernel_stamp(sk))
		flags |= HOPS_F_KERNEL_STAMP;
	delivery_read(e, flags, now_ns);
}

#define QUEUED	 16 /* packets that are remembered of a socket: a power of two */
#define QUEUES	 1024
#define MSG_PEEK 2

struct udp_queue {
	u64 key;
	u64 queued;
	u64 heads[QUEUED]; /* 0: taken */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, struct udp_queue);
} udp_queues SEC(".maps");

static __always_inline u64 sock_key(const struct sock *sk)
{
	return (u64)sk - (u64)&real_minus_mono_ns;
}

static __always_inline struct udp_queue *udp_queue_of(u64 key)
{
	u32 index = slot_index(key) & (QUEUES - 1);

	return bpf_map_lookup_elem(&udp_queues, &index);
}

/* A packet has been queued to a socket, the last one. */
static __always_inline void udp_queued(const struct sock *sk)
{
	struct udp_queue *q;
	u64 key, at;

	if (sk->sk_protocol != TARE_PROTO_UDP || sk->__sk_common.skc_net.net->net_cookie != container_cookie)
		return;
	key = sock_key(sk);
	q = udp_queue_of(key);
	if (!q)
		return;
	if (q->key != key) {
		q->queued = 0;
		q->key = key;
	}
	at = __sync_fetch_and_add(&q->queued, 1);
	q->heads[at & (QUEUED - 1)] = head_key(BPF_CORE_READ(sk, sk_receive_queue.prev));
}

/* A call has read bytes from a socket: the oldest packet, so counting back from the newest finds it. */
static __always_inline void udp_read(const struct sock *sk, int bytes, int flags)
{
	u64 key, newest, now_ns, *head;
	struct udp_queue *q;
	struct expected *e;
	u32 left;

	if (bytes < 0 || (flags & MSG_PEEK) || sk->sk_protocol != TARE_PROTO_UDP ||
	    !in_container(bpf_get_current_task_btf()))
		return;
	now_ns = bpf_ktime_get_ns();
	key = sock_key(sk);
	q = udp_queue_of(key);
	if (!q || q->key != key)
		return;
	left = BPF_CORE_READ(sk, sk_receive_queue.qlen) + BPF_CORE_READ((struct udp_sock *)sk, reader_queue.qlen);
	if (left >= QUEUED || q->queued <= left)
		return;
	newest = q->queued - left - 1;
	head = &q->heads[newest & (QUEUED - 1)];
	key = *head;
	*head = 0;
	/* One before it was not told, so this may be that one: two threads read at once. Then neither is told. */
	if (newest) {
		head = &q->heads[(newest - 1) & (QUEUED - 1)];
		if (*head) {
			*head = 0;
			return;
		}
	}
	e = key ? slot_find(&deliveries, key) : NULL;
	if (!e || e->udp_port != sk->__sk_common.skc_num || bytes > e->udp_bytes ||
	    e->slot.seal != slot_seal(&e->slot, key))
		return;
	delivery_read(e, takes_kernel_stamp(sk) ? HOPS_F_KERNEL_STAMP : 0, now_ns);
}

#endif
