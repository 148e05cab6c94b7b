/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * System calls and sockets: which call sent this packet, which one got it, and how does that socket take its time?
 * The packet is followed, not the call's arguments: whatever call a thread of the container is in while its packet
 * is queued on the device has sent it, be it sendto, writev or io_uring_enter.
 */
#ifndef TARE_TASKS_H
#define TARE_TASKS_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "roles.h"
#include "store.h"

#define PENDING 16 /* packets that one receiving call can return: a power of two */

struct received {
	struct way way;
	u32 flags;
	u32 ns;
};

struct thread {
	u64 enter_ns; /* of the call that it is in; 0 outside */
	u32 received_count;
	u32 reserved;
	struct received received[PENDING];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

#define TCP_TIME_WAIT	 6
#define TCP_NEW_SYN_RECV 12

static __always_inline u32 container_of_task(const struct task_struct *task)
{
	return namespace_index(task->nsproxy->net_ns->net_cookie);
}

static __always_inline u64 current_syscall_ns(void)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	return t ? t->enter_ns : 0;
}

/*
 * Did the current thread send it? The kernel's own packets (ICMP replies, ACKs, retransmissions) run on top of
 * whatever thread is current: their socket has no file, or TCP holds it for nobody.
 */
static __always_inline bool sent_by_program(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	/* A request or a connection that waits for its end is no full socket: what is read below is not in it. */
	if (!sk || sk->__sk_common.skc_state == TCP_NEW_SYN_RECV || sk->__sk_common.skc_state == TCP_TIME_WAIT)
		return false;
	if (!sk->sk_socket || !sk->sk_socket->file)
		return false;
	return sk->sk_protocol != TARE_PROTO_TCP || sk->sk_lock.owned;
}

/* The socket behind the first argument of the current system call, or NULL. */
static __always_inline const struct sock *socket_of_syscall(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u32 fd = PT_REGS_PARM1_CORE_SYSCALL(regs);
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd);
	struct file *file = NULL;
	struct socket *socket;

	if (fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	if (!file)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	/* Anything can be behind private_data: only a socket points back at its file. */
	if (!socket || BPF_CORE_READ(socket, file) != file)
		return NULL;
	return BPF_CORE_READ(socket, sk);
}

/*
 * Is the current thread in a call that reads from this socket? A call on another descriptor, such as io_uring_enter,
 * cannot be told from one that has nothing to do with it, and is believed.
 */
static __always_inline bool in_receiving_call(const struct sock *sk)
{
	return !sk || BPF_CORE_READ(sk, sk_protocol) == TARE_PROTO_UDP;
}

#define SOF_TIMESTAMPING_SOFTWARE (1 << 4) /* linux/net_tstamp.h: report software stamps */

/* Does a receive on this socket hand skb->tstamp to the program? */
static __always_inline bool takes_kernel_stamp(const struct sock *sk)
{
	unsigned long flags = BPF_CORE_READ(sk, __sk_common.skc_flags);
	u32 timestamping = 0;

	if (flags & (1UL << bpf_core_enum_value(enum sock_flags, SOCK_RCVTSTAMP)))
		return true; /* SO_TIMESTAMP, SO_TIMESTAMPNS */
	if (!(flags & (1UL << bpf_core_enum_value(enum sock_flags, SOCK_TIMESTAMPING_RX_SOFTWARE))))
		return false;
	if (bpf_core_field_size(sk->sk_tsflags) == 2)
		bpf_probe_read_kernel(&timestamping, 2, __builtin_preserve_access_index(&sk->sk_tsflags));
	else
		bpf_probe_read_kernel(&timestamping, 4, __builtin_preserve_access_index(&sk->sk_tsflags));
	return timestamping & SOF_TIMESTAMPING_SOFTWARE;
}

#endif
