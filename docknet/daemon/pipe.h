/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipe, as the daemon has it: what the operator configured, and, while a container is attached, the region they share.
 *
 * Two kinds of threads meet here. The control thread makes, attaches, detaches and frees pipes. Masters move frames. A master
 * learns of a region by loading "region" once per burst; after a detachment the control thread waits until every master
 * has passed a quiescent state (master.h) before it unmaps.
 */
#ifndef DOCKDAEMON_PIPE_H
#define DOCKDAEMON_PIPE_H

#include "counter.h"
#include "pipe_config.h"

#include "../dockpipe/pipe.h"

#include <rte_spinlock.h>
#include <sys/types.h>

/* Why a frame was not delivered. */
enum drop_reason {
	DROP_SPOOFED,	 /* its source is not the pipe's address */
	DROP_MALFORMED,	 /* it is no IP packet, or its lengths contradict each other */
	DROP_UNROUTABLE, /* no pipe has its destination, and there is no NIC, or no route to it */
	DROP_DETACHED,	 /* the pipe with its destination has no container now */
	DROP_STALLED,	 /* its receiver has taken nothing for STALL_NS */
	DROP_TOO_BIG,	 /* longer than the NIC's MTU, and neither TCP nor to be fragmented */
	DROP_UNRESOLVED, /* nobody on the NIC's network answers for its next hop */
	DROP_NIC_FULL,	 /* from the NIC to a container that does not keep up */
	DROP_REASONS,
};

extern const char *const drop_reason_names[DROP_REASONS];

struct pipe_stats {
	counter tx_frames, tx_bytes;	       /* from the container; the pipe's master writes */
	counter rx_frames, rx_bytes;	       /* to the container; who holds receive_lock writes */
	counter tx_dropped[DROP_REASONS];      /* of what the container sent; the pipe's master writes */
	counter rx_nic_full;		       /* of what came from the NIC; who holds receive_lock writes */
	counter tx_blocked;		       /* how often its next frame had to wait for a receiver */
	counter bad_descs, attaches, detaches; /* of all attachments; the control thread writes */
};

/* Where frames from the NIC wait for a container that is not fast enough: a burst, not more. */
#define PIPE_BACKLOG 512u

struct rte_mbuf;
struct rte_flow;

struct pipe {
	struct pipe_config config;
	unsigned int master; /* whose: index of the master that serves the transmit ring */

	/* Masters: what is attached, NULL while nothing is. */
	_Atomic(struct dp_pipe *) region;
	rte_spinlock_t receive_lock; /* for the receive and fill rings, where any master may deliver */
	/* Under receive_lock: since when there is no room (0: there is), and how far the container was then. */
	uint64_t blocked_since_ns;
	uint32_t blocked_progress;
	uint64_t expected_until_ns; /* its container was there before this daemon began, and may come back until then */
	_Atomic bool in_the_way;    /* a frame waits for room here */
	_Atomic bool condemned;	    /* a master asks for the container to be detached: too much garbage */
	struct rte_mbuf *backlog[PIPE_BACKLOG]; /* the NIC's, in order; under receive_lock */
	uint32_t backlog_head, backlog_count;
	struct pipe_stats stats;

	/* The control thread: */
	struct attachment_listener *listener;
	struct attachment *attached; /* NULL while detached */
	int bell;		     /* the container wakes the master by it; -1: none */
	pid_t peer_pid;
	uint32_t epoch;
	uint16_t nic_queue; /* 0: shared; otherwise this pipe's own, steered by flow[] */
	struct rte_flow *flow[FAMILIES];
};

/* pipe_new returns a detached pipe without socket, or NULL without memory. */
struct pipe *pipe_new(const struct pipe_config *config, unsigned int master);

/* pipe_free needs a detached pipe that no master knows of. */
void pipe_free(struct pipe *pipe);

/* Whether the container behind this pipe may send from this address. */
static inline bool pipe_owns(const struct pipe *pipe, const struct ip_key *address)
{
	const struct pipe_address *a = &pipe->config.address[ip_key_is4(address) ? FAMILY_IPV4 : FAMILY_IPV6];

	return a->present && ip_key_equal(&a->ip, address);
}

json_t *pipe_stats_to_json(const struct pipe *pipe);

#endif
