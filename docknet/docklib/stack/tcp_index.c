/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_index.c - a chained hash of PCBs that doubles when it is full, and a count of users for each port.
 *
 * Keys are hashed with a secret: a peer that could choose its ports to collide would bring the walks back.
 */
#include <string.h>

#include "entropy.h"
#include "heap.h"
#include "lwip/priv/tcp_priv.h"

#define FIRST_BUCKETS 256u

static struct tcp_pcb *first_table[FIRST_BUCKETS];
static struct tcp_pcb **table = first_table;
static u32_t buckets = FIRST_BUCKETS;
static u32_t entries;
static u16_t port_users[65536];

static u64_t secret(void)
{
	static u64_t s;

	if (s == 0)
		s = ((u64_t)docknet_random() << 32 | docknet_random()) | 1;
	return s;
}

static u64_t mix(u64_t h, u64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static u64_t mix_address(u64_t h, const ip_addr_t *address)
{
	if (IP_IS_V4_VAL(*address))
		return mix(h, ip4_addr_get_u32(ip_2_ip4(address)));

	const u32_t *words = ip_2_ip6(address)->addr;

	return mix(mix(h, (u64_t)words[0] << 32 | words[1]), (u64_t)words[2] << 32 | words[3]);
}

static struct tcp_pcb **bucket(const ip_addr_t *remote, u16_t remote_port, const ip_addr_t *local, u16_t local_port)
{
	u64_t h = mix(secret(), (u64_t)remote_port << 16 | local_port);

	return &table[mix_address(mix_address(h, remote), local) & (buckets - 1)];
}

static void link_pcb(struct tcp_pcb **head, struct tcp_pcb *pcb)
{
	pcb->index_next = *head;
	pcb->index_pprev = head;
	if (*head)
		(*head)->index_pprev = &pcb->index_next;
	*head = pcb;
}

/* grow doubles the table; without memory it stays as it is, and chains get longer. */
static void grow(void)
{
	struct tcp_pcb **old = table;
	u32_t old_buckets = buckets;
	struct tcp_pcb **larger = docknet_heap_get_zeroed((size_t)buckets * 2, sizeof *larger);

	if (!larger)
		return;
	table = larger;
	buckets *= 2;
	for (u32_t i = 0; i < old_buckets; i++) {
		for (struct tcp_pcb *pcb = old[i], *next; pcb; pcb = next) {
			next = pcb->index_next;
			link_pcb(bucket(&pcb->remote_ip, pcb->remote_port, &pcb->local_ip, pcb->local_port), pcb);
		}
	}
	if (old != first_table)
		docknet_heap_put(old);
}

static bool hashed(struct tcp_pcb *const *list)
{
	return list == &tcp_active_pcbs || list == &tcp_tw_pcbs;
}

void tcp_index_add(struct tcp_pcb *const *list, struct tcp_pcb *pcb)
{
	port_users[pcb->local_port]++;
	if (!hashed(list))
		return;
	if (++entries > buckets)
		grow();
	link_pcb(bucket(&pcb->remote_ip, pcb->remote_port, &pcb->local_ip, pcb->local_port), pcb);
}

void tcp_index_remove(struct tcp_pcb *const *list, struct tcp_pcb *pcb)
{
	if (port_users[pcb->local_port] > 0)
		port_users[pcb->local_port]--;
	if (!hashed(list) || !pcb->index_pprev)
		return;
	*pcb->index_pprev = pcb->index_next;
	if (pcb->index_next)
		pcb->index_next->index_pprev = pcb->index_pprev;
	pcb->index_next = NULL;
	pcb->index_pprev = NULL;
	if (--entries == 0 && table != first_table) {
		docknet_heap_put(table);
		memset(first_table, 0, sizeof first_table); /* as grow left it */
		table = first_table;
		buckets = FIRST_BUCKETS;
	}
}

struct tcp_pcb *tcp_index_find(const ip_addr_t *remote, u16_t remote_port, const ip_addr_t *local, u16_t local_port)
{
	for (struct tcp_pcb *pcb = *bucket(remote, remote_port, local, local_port); pcb; pcb = pcb->index_next) {
		if (pcb->remote_port == remote_port && pcb->local_port == local_port &&
		    ip_addr_cmp(&pcb->remote_ip, remote) && ip_addr_cmp(&pcb->local_ip, local))
			return pcb;
	}
	return NULL;
}

bool tcp_index_port_used(u16_t port)
{
	return port_users[port] != 0;
}
