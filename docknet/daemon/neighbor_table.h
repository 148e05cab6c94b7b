/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is where on the NIC's network: next hop's address -> MAC address, and the frames that wait for an answer.
 *
 * It holds a bounded number of neighbours, so a container that sends to ever new addresses makes others' entries be asked for
 * again, and no more. Only what was asked for is believed.
 */
#ifndef DOCKDAEMON_NEIGHBOR_TABLE_H
#define DOCKDAEMON_NEIGHBOR_TABLE_H

#include "address.h"

#define NEIGHBOR_PARKED 16u /* frames that wait in one entry; Linux keeps about as many (unres_qlen) */

struct neighbor_table;
struct rte_mbuf;

struct neighbor_table *neighbor_table_new(void);
void neighbor_table_free(struct neighbor_table *table);

enum neighbor_state {
	NEIGHBOR_KNOWN,	  /* *mac is valid */
	NEIGHBOR_UNKNOWN, /* park the frame */
};

/* neighbor_lookup: *ask tells whether the caller must send a request now. */
enum neighbor_state neighbor_lookup(struct neighbor_table *table, const struct ip_key *hop, uint64_t now_ns,
				    struct mac_address *mac, bool *ask);

/* neighbor_park keeps a frame until its next hop is known. Returns false where there is no room: the caller keeps it. */
bool neighbor_park(struct neighbor_table *table, const struct ip_key *hop, struct rte_mbuf *frame);

/* neighbor_learn: somebody says where hop is. If it was asked for, it is written down, and the frames that waited are
 * returned in parked; the number is the result. */
uint32_t neighbor_learn(struct neighbor_table *table, const struct ip_key *hop, const struct mac_address *mac,
			uint64_t now_ns, struct rte_mbuf *parked[NEIGHBOR_PARKED]);

#endif
