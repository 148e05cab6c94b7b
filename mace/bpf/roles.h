/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Whose device is it? The question comes first in every program and costs a few loads, because most packets on a
 * host belong to nobody who asked.
 */
#ifndef TARE_ROLES_H
#define TARE_ROLES_H

#include <bpf/bpf_helpers.h>

#include "path.h"
#include "tare.h"

#define LOOPBACK_IFINDEX 1 /* in every network namespace */

/*
 * The active namespaces, at cookie % TARE_COOKIE_SLOTS or up to PROBES - 1 places behind it. Cookies are handed out
 * one after the other, so collisions are rare; the Go side (namespaces.go) refuses what does not fit.
 */
#define PROBES 8

struct active_namespace {
	u64 cookie; /* 0: free */
	u32 index;
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TARE_COOKIE_SLOTS);
	__type(key, u32);
	__type(value, struct active_namespace);
} namespaces SEC(".maps");

#define NOT_ACTIVE TARE_NAMESPACES

static __always_inline u32 namespace_index(u64 cookie)
{
	u32 i, at;

	for (i = 0; i < PROBES; i++) {
		struct active_namespace *ns;

		at = (cookie + i) & (TARE_COOKIE_SLOTS - 1);
		ns = bpf_map_lookup_elem(&namespaces, &at);
		if (!ns || !ns->cookie)
			return NOT_ACTIVE;
		if (ns->cookie == cookie)
			return ns->index & (TARE_NAMESPACES - 1);
	}
	return NOT_ACTIVE;
}

/* The namespace whose container this device belongs to, or NOT_ACTIVE. */
static __always_inline u32 container_of_device(const struct net_device *dev)
{
	if (dev->ifindex == LOOPBACK_IFINDEX)
		return NOT_ACTIVE;
	return namespace_index(dev->nd_net.net->net_cookie);
}

#define NOT_A_NIC TARE_NICS

/* Which of the NICs it is, or NOT_A_NIC. */
static __always_inline u32 nic_of_device(const struct net_device *dev)
{
	u32 ifindex = dev->ifindex, found = NOT_A_NIC;
	u32 i;

	/* The verifier knows the constants and removes the comparison with those that are 0: most hosts have one NIC. */
#pragma unroll
	for (i = 0; i < TARE_NICS; i++) {
		if (nic_ifindex[i] && ifindex == nic_ifindex[i])
			found = i;
	}
	if (found != NOT_A_NIC && dev->nd_net.net->net_cookie != nic_netns_cookie)
		found = NOT_A_NIC;
	return found;
}

static __always_inline bool is_nic(const struct net_device *dev)
{
	return nic_of_device(dev) != NOT_A_NIC;
}

/* Is the process current during which the programs are to see nothing? */
static __always_inline bool is_blind(void)
{
	return blind_pid && bpf_get_current_pid_tgid() >> 32 == blind_pid;
}

#endif
