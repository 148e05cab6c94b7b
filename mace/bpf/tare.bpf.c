// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * tare's eBPF programs: how long does each packet take between a container and a NIC?
 *
 * One program per tracepoint; an event path, set in the constants below before the programs are loaded, says which
 * of them are attached and what each means. A packet's way:
 *
 *   egress    net_dev_queue or net_dev_start_xmit on a device of the container: egress_start() keeps time, identity
 *             and headers in the slot that its skb's address selects.
 *             The path's outer event on a NIC: egress_end() finds the slot, checks the identity, writes a record.
 *   ingress   the first event on a NIC: ingress_start().
 *             netif_receive_skb (or netif_rx) on a device of the container: ingress_end() writes a record.
 *   delivery  skb_copy_datagram_iovec in the program that receives it: the packet is found again by skb->head, since
 *             raw sockets get clones. UDP has no such event: see udp.h. The record is written here, or at sys_exit where the path ends there.
 *
 * The tracer's own time belongs to neither the container nor the network: a start takes its time first and an end
 * takes it last, so that what happens here lies inside the interval and is subtracted with it.
 *
 * A slot is shared by all CPUs without a lock. It carries a seal over its fields: a slot that two CPUs wrote at once
 * fails its seal and is counted as ambiguous instead of giving one packet's time to another.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "audit.h"
#include "egress.h"
#include "ingress.h"
#include "path.h"
#include "roles.h"
#include "tare.h"
#include "udp.h"

/* The kernel knows only this spelling; the files are offered under Apache-2.0 as well. */
char LICENSE[] SEC("license") = "GPL";

/* Names them for the BTF, which holds no type that is only pointed at. */
const struct tare_record *btf_record __attribute__((unused));
const struct tare_delivery *btf_delivery __attribute__((unused));
const struct tare_aggregate *btf_aggregate __attribute__((unused));
const struct tare_nic_counters *btf_nic_counters __attribute__((unused));

/* --- egress --------------------------------------------------------------------------------------------------- */

static __always_inline void on_transmit(const struct sk_buff *skb, const struct net_device *dev, u32 event)
{
	bool starts = egress_start_event == event, ends = egress_end_event == event;
	bool checks = egress_end_event == TARE_NET_DEV_XMIT && event == TARE_NET_DEV_START_XMIT;
	u32 ns, nic;

	if (starts) {
		ns = container_of_device(dev);
		if (ns != NOT_ACTIVE) {
			struct tare_counters *c = counters_of(ns);

			if (c) {
				c->device_tx++;
				egress_start(skb, dev, ns, c);
			}
		}
	}
	if (!ends && !checks)
		return;
	nic = nic_of_device(dev);
	if (nic == NOT_A_NIC)
		return;
	/* Where the way ends at net_dev_xmit this is counted just before it, as long as the skb may be looked at. */
	nic_sent(skb, nic);
	if (ends)
		egress_end(skb);
	else
		egress_check(skb);
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(net_dev_queue, struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	on_transmit(skb, skb->dev, TARE_NET_DEV_QUEUE);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	if (is_blind())
		return 0;
	on_transmit(skb, dev, TARE_NET_DEV_START_XMIT);
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(net_dev_xmit, struct sk_buff *skb, int rc, struct net_device *dev)
{
	if (is_blind())
		return 0;
	if (!rc && is_nic(dev))
		egress_end_checked(skb);
	return 0;
}

/* --- ingress -------------------------------------------------------------------------------------------------- */

static __always_inline void on_receive(const struct sk_buff *skb, u32 event)
{
	const struct net_device *dev = skb->dev;
	u32 ns, nic;

	if (ingress_start_events & event) {
		nic = nic_of_device(dev);
		if (nic != NOT_A_NIC) {
			ingress_start(skb, event);
			/* A packet may pass several of the events, and all but a few pass this one. */
			if (event == TARE_NETIF_RECEIVE_SKB || !(ingress_start_events & TARE_NETIF_RECEIVE_SKB))
				nic_received(skb, nic);
		}
	}
	if (ingress_end_event == event) {
		ns = container_of_device(dev);
		if (ns != NOT_ACTIVE) {
			struct tare_counters *c = counters_of(ns);

			if (c) {
				c->device_rx++;
				ingress_end(skb, ns, c);
			}
		}
	}
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(napi_gro_receive_entry, const struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	on_receive(skb, TARE_NAPI_GRO_RECEIVE);
	return 0;
}

SEC("tp_btf/napi_gro_frags_entry")
int BPF_PROG(napi_gro_frags_entry, const struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	on_receive(skb, TARE_NAPI_GRO_FRAGS);
	return 0;
}

SEC("tp_btf/netif_rx")
int BPF_PROG(netif_rx, struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	on_receive(skb, TARE_NETIF_RX);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(netif_receive_skb, struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	on_receive(skb, TARE_NETIF_RECEIVE_SKB);
	return 0;
}

/* --- delivery and system calls -------------------------------------------------------------------------------- */

SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(skb_copy_datagram_iovec, const struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	delivery_read(skb, false);
	return 0;
}

/* Before Linux 6.3, which has neither of the two after it. */
SEC("tp_btf/consume_skb")
int BPF_PROG(consume_skb, struct sk_buff *skb)
{
	if (is_blind())
		return 0;
	delivery_read(skb, true);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, const struct sock *sk)
{
	if (is_blind())
		return 0;
	udp_queued(sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int bytes, int flags)
{
	if (is_blind())
		return 0;
	udp_read(sk, bytes, flags);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;
	u64 now_ns;

	if (is_blind() || container_of_task(task) == NOT_ACTIVE)
		return 0;
	now_ns = bpf_ktime_get_ns();
	t = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t) {
		t->enter_ns = now_ns;
		t->received_count = 0;
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *t;

	if (is_blind() || container_of_task(task) == NOT_ACTIVE)
		return 0;
	t = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!t)
		return 0;
	if (t->received_count)
		delivery_syscall_exit(t);
	t->enter_ns = 0;
	return 0;
}
