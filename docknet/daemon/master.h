/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A master: a thread that moves frames between pipes, and between pipes and the NIC. Each pipe's transmit ring belongs to one
 * master, each of the NIC's receive queues, too; any master delivers into any pipe.
 *
 *   view = current view                      the control thread never waits for a lock that a master holds, nor the other
 *   for each of its pipes: a burst           way round: it swaps a pointer, and waits until every master has begun a new
 *   for each of its queues: a burst          turn (quiescent state) or sleeps
 *   hand frames to the NIC
 *   nothing done? spin, yield, sleep
 */
#ifndef DOCKDAEMON_MASTER_H
#define DOCKDAEMON_MASTER_H

#include "nic.h"
#include "options.h"
#include "pipe.h"
#include "view.h"

#include <pthread.h>
#include <rte_rcu_qsbr.h>

struct masters;

struct master {
	struct masters *all;
	unsigned int index;
	pthread_t thread;
	int epoll_fd;
	int kick_fd; /* the control thread ends a sleep */
	struct dp_waiter waiter;
	uint32_t peer_cpu;   /* where the last container ran that gave us work */
	bool blocked;	     /* a frame waits for room in a pipe of this master, */
	bool blocked_abroad; /* ... or of another one, or at the NIC */
	counter turns, work, sleeps;
};

struct masters {
	unsigned int count;
	_Atomic(struct view *) view;
	struct rte_rcu_qsbr *quiescent;
	atomic_bool stop;
	int condemned_fd; /* masters tell the control thread that a pipe is condemned */
	struct nic *nic;
	struct master master[MASTERS_MAX];
};

/* masters_start starts the threads. Returns 0 or -errno. */
int masters_start(struct masters *masters, const struct options *options, struct nic *nic);

/* masters_stop ends and joins them. Pipes may be freed then; masters_close frees the rest. */
void masters_stop(struct masters *masters);
void masters_close(struct masters *masters);

/* masters_set_view makes a view the current one and returns the old one, which no master uses any more. */
struct view *masters_set_view(struct masters *masters, struct view *view);

/* masters_synchronize returns when no master uses any more what was unpublished before. */
void masters_synchronize(struct masters *masters);

/* masters_watch makes the owner of a pipe wake up by the container's eventfd. */
int masters_watch(struct masters *masters, const struct pipe *pipe);

/* masters_kick ends sleeps, so that masters look at what has changed. */
void masters_kick(struct masters *masters);

json_t *masters_to_json(const struct masters *masters);

#endif
