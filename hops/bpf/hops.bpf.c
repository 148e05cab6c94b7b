// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Where does a container's packet spend its time? Each program takes the time first of all, and adds a point to the
 * trace of the packet that it sees.
 *
 *   egress    begins at net_dev_queue on a device of the container, with the sending system call before it, and is
 *             told at net_dev_xmit on a NIC.
 *   ingress   begins at the first event on a NIC, and is told at netif_receive_skb on a device of the container;
 *             the program that reads the packet adds a record of its own.
 *
 * Other devices of the host add points to traces that are there already.
 */
#include "../../mace/bpf/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "callers.h"
#include "delivery.h"
#include "egress.h"
#include "ingress.h"
#include "trace.h"

char LICENSE[] SEC("license") = "GPL";

/* Names them for the BTF, which holds no type that is only pointed at. The last one is of a map in mace's store.h. */
const struct hops_trace *btf_trace __attribute__((unused));
const struct hops_delivery *btf_delivery __attribute__((unused));
const struct tare_aggregate *btf_aggregate __attribute__((unused));

/* A device between the two ends. */
static __always_inline void point_between(const struct sk_buff *skb, u32 ifindex, u8 event, u64 now_ns)
{
	u64 key = skb_key(skb);
	struct trace_slot *s = slot_find(&egress_traces, key);
	struct hops_point *p;

	if (!s)
		s = slot_find(&ingress_traces, key);
	if (!s)
		return;
	p = point_add(&s->trace, ifindex, event, now_ns);
	if ((event & HOPS_IN_CONTAINER) && s->trace.kind == HOPS_INGRESS)
		stamp_note(&s->trace, skb, 1);
	point_end(&s->trace, p);
}

/* --- egress --------------------------------------------------------------------------------------------------- */

SEC("tp_btf/net_dev_queue")
int BPF_PROG(net_dev_queue, struct sk_buff *skb)
{
	u64 now_ns = bpf_ktime_get_ns();
	const struct net_device *dev = skb->dev;
	enum place place = place_of(dev);

	if (place == IN_CONTAINER)
		egress_start(skb, dev->ifindex, now_ns);
	else if (place == IN_HOST && is_outer(dev))
		egress_at_nic(skb, dev->ifindex, HOPS_NET_DEV_QUEUE, now_ns);
	else if (place == IN_HOST)
		point_between(skb, dev->ifindex, HOPS_NET_DEV_QUEUE, now_ns);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	u64 now_ns = bpf_ktime_get_ns();
	enum place place = place_of(dev);

	if (place == IN_HOST && is_outer(dev))
		egress_at_nic(skb, dev->ifindex, HOPS_NET_DEV_START_XMIT, now_ns);
	else if (place == IN_HOST)
		point_between(skb, dev->ifindex, HOPS_NET_DEV_START_XMIT, now_ns);
	else if (place == IN_CONTAINER)
		point_between(skb, dev->ifindex, HOPS_NET_DEV_START_XMIT | HOPS_IN_CONTAINER, now_ns);
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit, struct sk_buff *skb, int rc, struct net_device *dev)
{
	u64 now_ns = bpf_ktime_get_ns();

	if (!rc && is_outer(dev))
		egress_end(skb, dev->ifindex, now_ns);
	return 0;
}

/* --- ingress -------------------------------------------------------------------------------------------------- */

static __always_inline void on_receive(const struct sk_buff *skb, u8 event, u64 now_ns)
{
	const struct net_device *dev = skb->dev;
	enum place place = place_of(dev);

	if (place == IN_HOST && is_outer(dev))
		ingress_at_nic(skb, dev->ifindex, event, now_ns);
	else if (place == IN_HOST)
		point_between(skb, dev->ifindex, event, now_ns);
	else if (place == IN_CONTAINER && event == HOPS_NETIF_RECEIVE_SKB)
		ingress_end(skb, dev->ifindex, now_ns);
	else if (place == IN_CONTAINER)
		point_between(skb, dev->ifindex, event | HOPS_IN_CONTAINER, now_ns);
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(napi_gro_receive_entry, const struct sk_buff *skb)
{
	on_receive(skb, HOPS_NAPI_GRO_RECEIVE, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/napi_gro_frags_entry")
int BPF_PROG(napi_gro_frags_entry, const struct sk_buff *skb)
{
	on_receive(skb, HOPS_NAPI_GRO_FRAGS, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(netif_rx, struct sk_buff *skb)
{
	on_receive(skb, HOPS_NETIF_RX, bpf_ktime_get_ns());
	return 0;
}

/* Between this one and the next a packet may change the CPU: receive packet steering. */
SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(netif_receive_skb_entry, const struct sk_buff *skb)
{
	on_receive(skb, HOPS_NETIF_RECEIVE_SKB_ENTRY, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	on_receive(skb, HOPS_NETIF_RECEIVE_SKB, bpf_ktime_get_ns());
	return 0;
}

/* --- delivery and system calls -------------------------------------------------------------------------------- */

SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(skb_copy_datagram_iovec, const struct sk_buff *skb)
{
	delivery_copy(skb, false);
	return 0;
}

/* Before Linux 6.3, which has neither of the two after it. */
SEC("tp_btf/consume_skb")
int BPF_PROG(consume_skb, struct sk_buff *skb)
{
	delivery_copy(skb, true);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, const struct sock *sk)
{
	udp_queued(sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int bytes, int flags)
{
	udp_read(sk, bytes, flags);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (in_container(task))
		caller_enters(task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (in_container(task))
		caller_returns(task, bpf_ktime_get_ns());
	return 0;
}
