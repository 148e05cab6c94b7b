/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs and the Go side say to each other. Go's mirrors of these types are generated from the
 * object's BTF (bpf2go -type), so this is the one place where the layouts are written down.
 *
 * Times are CLOCK_MONOTONIC in ns where the name says nothing else; *_stamp_ns is skb->tstamp, which is
 * CLOCK_REALTIME. Only differences of two times of one clock mean anything.
 */
#ifndef TARE_H
#define TARE_H

#include "kernel.h"

enum {
	TARE_NAMESPACES = 64,	 /* active at once, each with its own ring and aggregates */
	TARE_COOKIE_SLOTS = 256, /* direct-mapped table of the active namespaces' cookies */
	TARE_NICS = 4,
	TARE_HEADER_BYTES = 96, /* IPv6 + ICMPv6 error + the quoted IPv6 header and ports */
	TARE_BUCKETS = 1024,	/* of a histogram: see aggregate.h */
};

/* One bit for each tracepoint that a path can name. */
enum tare_event {
	TARE_NET_DEV_QUEUE = 1 << 0,
	TARE_NET_DEV_START_XMIT = 1 << 1,
	TARE_NET_DEV_XMIT = 1 << 2,
	TARE_NAPI_GRO_RECEIVE = 1 << 3,
	TARE_NAPI_GRO_FRAGS = 1 << 4,
	TARE_NETIF_RX = 1 << 5,
	TARE_NETIF_RECEIVE_SKB = 1 << 6,
	TARE_SKB_COPY = 1 << 7, /* skb_copy_datagram_iovec */
	TARE_SYS_ENTER = 1 << 8,
	TARE_SYS_EXIT = 1 << 9,
	TARE_STAMP = 1 << 10, /* no tracepoint: skb->tstamp, as SO_TIMESTAMP reports it */
};

enum tare_record_kind {
	TARE_EGRESS = 1,   /* left by a NIC; header as the container sent it */
	TARE_INGRESS = 2,  /* reached a device of the container; header as the container got it */
	TARE_DELIVERY = 3, /* reached a program; joins the TARE_INGRESS record of the same token */
};

enum tare_status {
	TARE_MATCHED = 0,
	TARE_AMBIGUOUS = 1, /* the same skb, but the state about it is torn or too old to trust */
	TARE_MERGED = 2,    /* the same skb, but GRO has grown it since: more than one packet */
	TARE_UNSTARTED = 3, /* reached the container without having been seen at a NIC */
};

enum tare_flags {
	TARE_F_GSO = 1 << 0,
	TARE_F_KERNEL_STAMP = 1 << 1, /* the receiving socket takes its time from skb->tstamp */
	TARE_F_SYSCALL = 1 << 2,      /* a system call sent (or received) it: syscall_ns is its start (end) */
};

/* A packet's way between the container and a NIC. */
struct tare_record {
	u8 kind;
	u8 status;
	u16 flags;
	u32 pid;	/* the process that sent or received it, in the host's numbers; 0: the kernel */
	u32 len;	/* bytes from the network header on, all of a GSO packet */
	u32 header_len; /* how much of header is filled */
	u64 token;	/* the tare_delivery's of the same packet */
	u64 inner_ns;	/* at the container's device */
	u64 outer_ns;	/* at the NIC */
	u64 syscall_ns; /* start of the sending call; 0 where there is none */
	u64 inner_stamp_ns;
	u64 outer_stamp_ns;
	u8 header[TARE_HEADER_BYTES]; /* IP header without options or extensions, then the transport header */
};

/* A received packet has reached a program: joins the tare_record of the same token. */
struct tare_delivery {
	u8 kind;
	u8 reserved;
	u16 flags;
	u32 pid;
	u64 token;
	u64 syscall_ns; /* end of the receiving call; 0 where there is none */
	u64 inner_stamp_ns;
};

/* Where every packet of a namespace went: per CPU, added up by the reader. */
struct tare_counters {
	u64 device_tx; /* packets that its devices (lo apart) were given to send */
	u64 device_rx; /* ... and that they received */
	u64 egress_started;
	u64 egress_started_gso;
	u64 egress_matched;
	u64 egress_matched_gso;
	u64 egress_ambiguous;
	u64 egress_overwritten; /* state replaced by another packet's before it left */
	u64 ingress_matched;
	u64 ingress_ambiguous;
	u64 ingress_merged;
	u64 ingress_unstarted;
	u64 delivered;
	u64 delivered_unmatched; /* copied to a program, but its way was not seen */
	u64 pending_overflow;	 /* more packets in one receiving call than are followed */
	u64 ring_dropped;	 /* records lost because the reader was too slow */
	u64 malformed;		 /* not IP, or too short to identify */
	u64 device_tx_extra;	 /* what is to be added to device_tx if each segment of a GSO packet counts */
	u64 device_rx_extra;
};

/*
 * Packets that the programs saw at one NIC, everybody's: to be compared with what the NIC counted by itself. The extra
 * ones are as in struct tare_counters.
 */
struct tare_nic_counters {
	u64 tx;
	u64 tx_extra;
	u64 rx;
	u64 rx_extra;
};

/* Of the whole engine, whatever the namespace: how often the identity check said no. */
struct tare_rejections {
	u64 identity; /* same skb address, another packet: would have been a false match */
	u64 age;
};

/* One direction of one namespace. 128-bit sum of squares: ns^2 overflow 64 bits within minutes. */
struct tare_aggregate {
	u64 count;
	u64 sum_ns;
	u64 sum_squares_lo;
	u64 sum_squares_hi;
	u64 min_ns;
	u64 max_ns;
	u64 buckets[TARE_BUCKETS];
};

#endif
