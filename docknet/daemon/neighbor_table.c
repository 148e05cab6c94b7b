// SPDX-License-Identifier: Apache-2.0
#include "neighbor_table.h"

#include <rte_jhash.h>
#include <rte_mbuf.h>
#include <rte_random.h>
#include <rte_spinlock.h>
#include <stdlib.h>

#define BUCKETS 256u
#define WAYS	4u

/* RFC 4861, 10: REACHABLE_TIME is 30 s, RETRANS_TIMER 1 s, MAX_UNICAST_SOLICIT 3. */
#define FRESH_NS 30000000000ull
#define RETRY_NS 1000000000ull
#define GONE_NS	 (FRESH_NS + 3 * RETRY_NS)

struct neighbor {
	struct ip_key hop;
	struct mac_address mac;
	bool used, known;
	uint64_t confirmed_ns, asked_ns, looked_ns;
	uint32_t parked;
	struct rte_mbuf *frame[NEIGHBOR_PARKED];
};

struct neighbor_table {
	rte_spinlock_t lock; /* masters look up, and the one that receives learns */
	uint32_t seed;	     /* a container that knew the buckets could push out a chosen neighbour */
	struct neighbor neighbor[BUCKETS][WAYS];
};

struct neighbor_table *neighbor_table_new(void)
{
	struct neighbor_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	rte_spinlock_init(&table->lock);
	table->seed = (uint32_t)rte_rand();
	return table;
}

static void drop_parked(struct neighbor *n)
{
	for (uint32_t i = 0; i < n->parked; i++)
		rte_pktmbuf_free(n->frame[i]);
	n->parked = 0;
}

void neighbor_table_free(struct neighbor_table *table)
{
	if (!table)
		return;
	for (uint32_t b = 0; b < BUCKETS; b++)
		for (uint32_t w = 0; w < WAYS; w++)
			drop_parked(&table->neighbor[b][w]);
	free(table);
}

static struct neighbor *bucket(struct neighbor_table *table, const struct ip_key *hop)
{
	return table->neighbor[rte_jhash(hop, sizeof(*hop), table->seed) % BUCKETS];
}

static struct neighbor *find(struct neighbor_table *table, const struct ip_key *hop)
{
	struct neighbor *ways = bucket(table, hop);

	for (uint32_t w = 0; w < WAYS; w++)
		if (ways[w].used && ip_key_equal(&ways[w].hop, hop))
			return &ways[w];
	return NULL;
}

/* A free entry, or the one that nobody has wanted for longest; a known neighbour goes last. */
static struct neighbor *claim(struct neighbor_table *table, const struct ip_key *hop)
{
	struct neighbor *ways = bucket(table, hop), *victim = &ways[0];

	for (uint32_t w = 0; w < WAYS; w++) {
		struct neighbor *n = &ways[w];

		if (!n->used) {
			victim = n;
			break;
		}
		if (n->known != victim->known ? !n->known : n->looked_ns < victim->looked_ns)
			victim = n;
	}
	drop_parked(victim);
	*victim = (struct neighbor){ .used = true, .hop = *hop };
	return victim;
}

enum neighbor_state neighbor_lookup(struct neighbor_table *table, const struct ip_key *hop, uint64_t now_ns,
				    struct mac_address *mac, bool *ask)
{
	enum neighbor_state state;
	struct neighbor *n;

	rte_spinlock_lock(&table->lock);
	n = find(table, hop);
	if (!n)
		n = claim(table, hop);
	n->looked_ns = now_ns;
	if (n->known && now_ns - n->confirmed_ns > GONE_NS && n->asked_ns > n->confirmed_ns)
		n->known = false; /* it has been asked for, and has not answered */
	*ask = (!n->known || now_ns - n->confirmed_ns > FRESH_NS) &&
	       (n->asked_ns == 0 || now_ns - n->asked_ns > RETRY_NS);
	if (*ask)
		n->asked_ns = now_ns;
	state = n->known ? NEIGHBOR_KNOWN : NEIGHBOR_UNKNOWN;
	if (n->known)
		*mac = n->mac;
	rte_spinlock_unlock(&table->lock);
	return state;
}

bool neighbor_park(struct neighbor_table *table, const struct ip_key *hop, struct rte_mbuf *frame)
{
	struct neighbor *n;
	bool room;

	rte_spinlock_lock(&table->lock);
	n = find(table, hop);
	room = n && n->parked < NEIGHBOR_PARKED;
	if (room)
		n->frame[n->parked++] = frame;
	rte_spinlock_unlock(&table->lock);
	return room;
}

uint32_t neighbor_learn(struct neighbor_table *table, const struct ip_key *hop, const struct mac_address *mac,
			uint64_t now_ns, struct rte_mbuf *parked[NEIGHBOR_PARKED])
{
	struct neighbor *n;
	uint32_t count = 0;

	rte_spinlock_lock(&table->lock);
	n = find(table, hop);
	if (n) {
		n->known = true;
		n->mac = *mac;
		n->confirmed_ns = now_ns;
		count = n->parked;
		memcpy(parked, n->frame, count * sizeof(parked[0]));
		n->parked = 0;
	}
	rte_spinlock_unlock(&table->lock);
	return count;
}
