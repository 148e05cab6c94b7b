/* SPDX-License-Identifier: Apache-2.0 */
/* The NIC: any port that DPDK drives. Opening it, its queues, what it takes off our hands, and how to sleep on it. */
#ifndef DOCKDAEMON_NIC_H
#define DOCKDAEMON_NIC_H

#include "address.h"
#include "counter.h"
#include "options.h"

#include <jansson.h>
#include <rte_mbuf.h>

#define NIC_FDS_MAX 64u

/* Frames that a master has made and the NIC has not taken yet. Room for one frame of 64 KiB cut into the smallest
 * segments that are allowed, and a burst. */
#define NIC_PENDING 2048u

struct nic_transmit {
	struct rte_mbuf *pending[NIC_PENDING];
	uint32_t first, count;
};

struct nic {
	bool present;
	enum nic_kind kind;
	char name[NIC_NAME_MAX + 1];
	uint16_t port;
	struct mac_address mac;
	uint32_t mtu;
	uint16_t rx_queues, tx_queues;
	bool checks;			       /* it checks received checksums */
	bool fills_ipv4, fills_tcp, fills_udp; /* it fills in checksums */
	bool segments;			       /* it segments TCP, and takes frames in several pieces */
	struct rte_mempool *pool;
	struct neighbor_table *neighbors;
	struct nic_transmit transmit[MASTERS_MAX]; /* one per master, and its queue */
	int fd[NIC_FDS_MAX];			   /* to sleep on; with none the master looks every few ms */
	unsigned int fds;
	_Atomic uint32_t backlogged; /* pipes for which frames wait */
	bool interrupts;	     /* fd[] are queues' interrupts, which have to be armed */
	counter rx_bad_checksum, rx_not_ours, tx_segments, tx_no_memory;
};

/* nic_check says, before DPDK is started, whether there is such a device. Returns 0, or -errno with the reason. */
int nic_check(const struct nic_options *options, char *reason, size_t reason_size);

/* nic_open makes the port run. Without a NIC nothing is done. Returns 0, or -errno with the reason. */
int nic_open(struct nic *nic, const struct nic_options *options, unsigned int masters, unsigned int memory_mib,
	     char *reason, size_t reason_size);

void nic_close(struct nic *nic);

/* nic_flush hands pending frames to the NIC; returns how many it took. */
uint32_t nic_flush(struct nic *nic, unsigned int master);

static inline uint32_t nic_room(const struct nic *nic, unsigned int master)
{
	return NIC_PENDING - nic->transmit[master].count;
}

static inline void nic_enqueue(struct nic *nic, unsigned int master, struct rte_mbuf *frame)
{
	struct nic_transmit *t = &nic->transmit[master];

	t->pending[(t->first + t->count++) % NIC_PENDING] = frame;
}

/* nic_arm makes the NIC's interrupts wake a sleeper, nic_disarm ends that. */
void nic_arm(const struct nic *nic);
void nic_disarm(const struct nic *nic);

json_t *nic_to_json(const struct nic *nic);

#endif
