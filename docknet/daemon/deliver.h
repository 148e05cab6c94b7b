/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a pipe's receive ring: whose turn it is to write there, and what happens when there is no room. */
#ifndef DOCKDAEMON_DELIVER_H
#define DOCKDAEMON_DELIVER_H

#include "../dockpipe/frame.h"
#include "master.h"

enum delivery {
	DELIVERED,
	DELIVER_LATER,	  /* no room now: the sender waits */
	DELIVER_DETACHED, /* no container is attached */
	DELIVER_STALLED,  /* no room for longer than STALL_NS */
};

/* deliver_local delivers a frame of another pipe; head is the copy of its head that was checked. */
enum delivery deliver_local(struct master *master, struct pipe *to, const struct dp_frame *frame, const uint8_t *head,
			    uint32_t head_length);

/* deliver_from_nic delivers an IP packet from the NIC, or lets it wait in the pipe's backlog. Takes the frame. */
void deliver_from_nic(struct master *master, struct pipe *to, struct rte_mbuf *frame);

/* deliver_backlogs delivers what waits from earlier; returns how many frames. */
uint32_t deliver_backlogs(struct master *master, struct view *view);

/* deliver_wake wakes a pipe's container if it sleeps: once after a burst, not for each frame. */
void deliver_wake(struct pipe *to);

/* deliver_condemn has a pipe detached by the control thread. */
void deliver_condemn(struct master *master, struct pipe *pipe);

#endif
