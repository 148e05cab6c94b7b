/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What these programs and the Go side say to each other; Go's mirrors are generated from it (bpf2go -type).
 *
 * A trace is one packet's way: a list of points, each an event on a device at a time of CLOCK_MONOTONIC. The time
 * between two points that follow each other is a hop, so the hops of a trace add up to its last time minus its first,
 * whatever lies between.
 */
#ifndef HOPS_H
#define HOPS_H

#include "../../mace/bpf/kernel.h"
#include "../../mace/bpf/tare.h"

enum {
	HOPS_POINTS = 16, /* of a packet: a bridge has 9, VXLAN under a bridge 11; a power of two */
};

/* In the order in which one device sees them, so that a later value on the same device is a later event. */
enum hops_event {
	HOPS_SYS_ENTER = 1,
	HOPS_NET_DEV_QUEUE,
	HOPS_NET_DEV_START_XMIT,
	HOPS_NET_DEV_XMIT,
	HOPS_NAPI_GRO_RECEIVE,
	HOPS_NAPI_GRO_FRAGS,
	HOPS_NETIF_RX,
	HOPS_NETIF_RECEIVE_SKB_ENTRY,
	HOPS_NETIF_RECEIVE_SKB,
	HOPS_EVENT_MASK = 0x3f,
	HOPS_IN_CONTAINER = 0x80, /* ored to the event: the device is the container's, not the host's */
};

enum hops_kind {
	HOPS_EGRESS = 1,
	HOPS_INGRESS = 2,
	HOPS_DELIVERY = 3, /* a program has read the packet of the trace with this token */
};

enum hops_status {
	HOPS_COMPLETE = 0,
	HOPS_UNFINISHED = 1, /* left the container and was not seen to leave by a NIC */
	HOPS_TORN = 2,	     /* two CPUs wrote its slot at once */
	HOPS_MERGED = 3,     /* GRO has made one packet of several on its way */
};

enum hops_flags {
	HOPS_F_TIMED = 1 << 0,	      /* spent_ns of its points was measured */
	HOPS_F_CHECKED = 1 << 1,      /* at a NIC it was the packet that the container had sent */
	HOPS_F_KERNEL_STAMP = 1 << 2, /* the receiving socket takes its time from skb->tstamp */
};

struct hops_point {
	u64 time_ns;  /* taken as the program's first act */
	u32 ifindex;  /* 0 where there is no device */
	u16 spent_ns; /* from then to the program's last act: the tracer's own part of the hop that begins here */
	u8 event;
	u8 tag; /* the trace's: a point that another packet's trace has left here shows */
};

struct hops_trace {
	u8 kind;
	u8 status;
	u8 tag;
	u8 count;	/* of points; more than HOPS_POINTS: the others are lost */
	u8 nic_points;	/* ingress: the first ones, taken on the NIC */
	u8 stamp_at[2]; /* the first point on the NIC, and in the container, whose skb bore a receive stamp */
	u8 reserved;
	u32 flags;
	u32 pid; /* the process that sent it; 0: the kernel */
	u32 len; /* bytes from the IP header on */
	u32 header_len;
	u64 token;
	u64 stamp_ns[2]; /* these stamps, CLOCK_REALTIME; 0: none */
	u8 header[TARE_HEADER_BYTES];
	struct hops_point points[HOPS_POINTS];
};

struct hops_delivery {
	u8 kind;
	u8 reserved[3];
	u32 flags;
	u32 pid;
	u32 spent_ns; /* of copy_ns's program */
	u64 token;
	u64 copy_ns;  /* the packet was copied to the program's buffer, or for UDP its socket told of the bytes */
	u64 exit_ns;  /* the call returned; 0 where there is none */
	u64 stamp_ns; /* skb->tstamp as the program was given it, CLOCK_REALTIME */
};

struct hops_counters {
	u64 device_tx; /* packets that the container's devices were given to send */
	u64 device_rx; /* ... and received */
	u64 egress_started;
	u64 egress_finished;
	u64 egress_replaced; /* did not finish: another packet took the slot, or the skb */
	u64 egress_rejected; /* did not finish: at the NIC the skb held another packet, or too late */
	u64 ingress_traced;
	u64 ingress_unstarted; /* reached the container and were not seen at a NIC */
	u64 delivered;
	u64 pending_overflow; /* more packets in one receiving call than are followed */
	u64 malformed;	      /* not IP */
	u64 ring_dropped;
};

#endif
