/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The event path: constants that are set before loading, so that the verifier removes what a path does not use.
 */
#ifndef TARE_PATH_H
#define TARE_PATH_H

#include "tare.h"

const volatile u32 egress_start_event;	 /* on a container's device: keep identity and time */
const volatile u32 egress_end_event;	 /* on a NIC */
const volatile u32 egress_from_syscall;	 /* the inner end is the sending system call, not the device */
const volatile u32 ingress_start_events; /* on a NIC: the first of them to happen counts */
const volatile u32 ingress_outer_stamp;	 /* the outer end is skb->tstamp where there is one */
const volatile u32 ingress_end_event;	 /* on a container's device: write the record */
const volatile u32 ingress_inner_event;	 /* what the aggregate ends at; may be TARE_STAMP, TARE_SKB_COPY, ... */
const volatile u32 ingress_by_socket;	 /* a socket that takes its time from skb->tstamp ends there instead */
const volatile u32 ingress_stamp_pair;	 /* ... and then begins at the NIC's skb->tstamp too */
const volatile u32 delivery_event;	 /* 0, TARE_SKB_COPY or TARE_SYS_EXIT */

const volatile u32 keep_aggregates; /* for readers that do not look at every record */

const volatile u64 nic_netns_cookie;
const volatile u32 nic_ifindex[TARE_NICS]; /* unused: 0, which no device has */

const volatile u64 max_age_ns = 1000000000; /* state older than this is not trusted */
const volatile u16 vxlan_port = 4789;

const volatile u32 direct_loads; /* this kernel lets programs load through skb->data: see identity_copy() */

/*
 * Packets are found again by their identity instead of by their skb: where XDP rebuilds skbs on the way. Fragments
 * always are, because reassembly moves them from one skb to another.
 */
const volatile u32 identity_keys;
volatile u32 fragments_sent; /* a container has sent one: until then nobody looks for them at the NIC */

/*
 * The container's device takes its packets from the NIC by itself (macvlan, ipvlan): no tracepoint sees them arrive,
 * and between the two there is next to nothing. A received packet is known as the container's when it is read.
 */
const volatile u32 nic_delivers;

/*
 * For tests: the programs do nothing while this process is current, as on kernels that skip them while PID 1 is. 0: off,
 * and the verifier removes the question.
 */
const volatile u32 blind_pid;

/* CLOCK_REALTIME minus CLOCK_MONOTONIC: the reader keeps it current; only a clock that is set changes it. */
volatile s64 real_minus_mono_ns;

#endif
