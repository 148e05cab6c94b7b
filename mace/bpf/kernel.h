/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The few kernel types that tare reads, and of each only the fields that it reads. CO-RE finds every field's
 * place in the running kernel, so order and size here mean nothing; a whole vmlinux.h would say the same in
 * 130,000 lines, of one kernel.
 */
#ifndef TARE_KERNEL_H
#define TARE_KERNEL_H

/* It stands in for vmlinux.h: libbpf names registers as the kernel does only if it sees one. */
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

/* Of linux/bpf.h, which cannot be included when compiling for another architecture than this one. */
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
	u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
};

struct file;

struct socket {
	struct file *file;
	struct sock *sk;
};

struct file {
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct nsproxy {
	struct net *net_ns;
};

struct task_struct {
	struct files_struct *files;
	struct nsproxy *nsproxy;
};

typedef struct {
	int owned;
} socket_lock_t;

struct sock_common {
	unsigned long skc_flags;
	possible_net_t skc_net;
	u16 skc_num; /* the local port */
	volatile unsigned char skc_state;
};

struct sk_buff_head {
	struct sk_buff *prev;
	u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	u32 sk_tsflags; /* u16 before Linux 6.3 */
	u16 sk_protocol;
	struct socket *sk_socket;
	struct sk_buff_head sk_receive_queue;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	s64 tstamp;
	unsigned int len;
	unsigned int data_len;
	u16 network_header;
	u16 mac_header;
	u16 mac_len;
	unsigned char *head;
	unsigned char *data;
	unsigned int end; /* an offset from head, on 64-bit kernels */
};

struct skb_shared_info {
	u16 gso_size;
	u16 gso_segs;
};

struct pt_regs {
	/* x86-64: the first argument of a system call */
	unsigned long di;
};

struct user_pt_regs {
	u64 regs[31];
};

enum sock_flags {
	SOCK_RCVTSTAMP = 11,
	SOCK_RCVTSTAMPNS = 12,
	SOCK_TIMESTAMPING_RX_SOFTWARE = 15,
};

#pragma clang attribute pop

#endif
