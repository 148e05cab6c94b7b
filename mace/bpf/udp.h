/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Which UDP packet did a program read? Most are copied out without any event that names the skb, and since Linux 6.18
 * they are freed without one, too. What there is: sk_data_ready when a packet has been queued, and sock_recv_length
 * when a call has read from a socket.
 *
 * So the last packets queued are remembered per socket. A call reads the oldest; when it returns, as many packets are
 * queued as came after the one that it has read: counting back from the newest by the queue's length finds it. That
 * needs no count of what was read or dropped, and so never gets out of step. Where an event comes late, because two
 * CPUs are at it, counting back finds one that was taken before, or none: a packet is missed then, not mistaken.
 */
#ifndef TARE_UDP_H
#define TARE_UDP_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "ingress.h"

#define QUEUED	 16 /* packets that are remembered of a socket: a power of two */
#define QUEUES	 4096
#define MSG_PEEK 2

struct udp_queue {
	u64 key; /* the socket's address, as skb_key() */
	u64 queued;
	u64 heads[QUEUED]; /* head_key() of the packets; 0: taken */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, struct udp_queue);
} udp_queues SEC(".maps");

static __always_inline struct udp_queue *udp_queue_of(u64 key)
{
	u32 index = slot_index(key) & (QUEUES - 1);

	return bpf_map_lookup_elem(&udp_queues, &index);
}

static __always_inline u64 sock_key(const struct sock *sk)
{
	return (u64)sk - (u64)&real_minus_mono_ns;
}

/* A packet has been queued, the last one. */
static __always_inline void udp_queued(const struct sock *sk)
{
	const struct sk_buff *last;
	struct udp_queue *q;
	u64 key, at;

	if (sk->sk_protocol != TARE_PROTO_UDP || namespace_index(sk->__sk_common.skc_net.net->net_cookie) == NOT_ACTIVE)
		return;
	key = sock_key(sk);
	q = udp_queue_of(key);
	if (!q)
		return;
	if (q->key != key) {
		q->queued = 0;
		q->key = key;
	}
	/* If a reader was faster the queue is empty, and this is no skb: its head finds no packet then. */
	last = BPF_CORE_READ(sk, sk_receive_queue.prev);
	at = __sync_fetch_and_add(&q->queued, 1);
	q->heads[at & (QUEUED - 1)] = head_key(last);
}

/* A call has read bytes from a socket: tell of the packet. */
static __always_inline void udp_read(const struct sock *sk, int bytes, int flags)
{
	u32 ns, left;
	struct delivery_slot *d;
	struct udp_queue *q;
	u64 key, newest, *head;

	if (bytes < 0 || (flags & MSG_PEEK) || sk->sk_protocol != TARE_PROTO_UDP)
		return;
	ns = container_of_task(bpf_get_current_task_btf());
	if (ns == NOT_ACTIVE)
		return;
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
	d = key ? slot_find(&delivery_slots, key) : NULL;
	if (!d || (d->slot.ns != ns && d->slot.ns != NOT_ACTIVE) || d->udp_port != sk->__sk_common.skc_num ||
	    bytes > d->udp_bytes || d->slot.seal != slot_seal(&d->slot, key))
		return;
	delivery_tell(ns, d, takes_kernel_stamp(sk) ? TARE_F_KERNEL_STAMP : 0);
}

#endif
