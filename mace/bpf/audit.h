/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the programs saw, to be compared with what the devices counted by themselves: some kernels skip programs without
 * telling. A device may count a packet that segmentation will make several of, or GRO has made of several, as one or
 * as all of them; so both are counted here, and the device's count must be between them.
 */
#ifndef TARE_AUDIT_H
#define TARE_AUDIT_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "path.h"
#include "tare.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TARE_NICS);
	__type(key, u32);
	__type(value, struct tare_nic_counters);
} nic_counters SEC(".maps");

#define SMALLEST_GSO 576 /* no link's MTU is smaller, so no packet below that is GSO's or GRO's */

/* How many segments a GSO packet has; 0: it is none. */
static __always_inline u32 gso_segments(const struct sk_buff *skb)
{
	struct skb_shared_info *shared;
	u16 size = 0, segments = 0;

	if (skb->len <= SMALLEST_GSO)
		return 0;
	shared = (struct skb_shared_info *)(skb->head + skb->end);
	if (direct_loads) {
		size = shared->gso_size;
		segments = shared->gso_segs;
	} else {
		bpf_core_read(&size, sizeof(size), &shared->gso_size);
		if (size)
			bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	}
	if (!size)
		return 0;
	return segments ? segments : 1;
}

static __always_inline void count_extra(u64 *extra, u32 segments)
{
	if (segments > 1)
		*extra += segments - 1;
}

static __always_inline void nic_sent(const struct sk_buff *skb, u32 nic)
{
	struct tare_nic_counters *n = bpf_map_lookup_elem(&nic_counters, &nic);

	if (!n)
		return;
	n->tx++;
	count_extra(&n->tx_extra, gso_segments(skb));
}

static __always_inline void nic_received(const struct sk_buff *skb, u32 nic)
{
	struct tare_nic_counters *n = bpf_map_lookup_elem(&nic_counters, &nic);

	if (!n)
		return;
	n->rx++;
	count_extra(&n->rx_extra, gso_segments(skb));
}

#endif
