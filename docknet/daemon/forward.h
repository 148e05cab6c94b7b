/* SPDX-License-Identifier: Apache-2.0 */
/* Where frames go. Everything in a frame from a pipe is hostile: decisions are taken on a copy of its head, and the copy is
 * what the receiver gets. */
#ifndef DOCKDAEMON_FORWARD_H
#define DOCKDAEMON_FORWARD_H

#include "master.h"

/* A receiver that has taken nothing for this long, while frames wait for it, does not stall their senders any longer: frames
 * for it are dropped until it goes on. Longer than a busy machine keeps a process from running, shorter than TCP's
 * retransmission timers take to do harm to a sender's other connections. */
#define STALL_NS 100000000ull

/* forward_from_pipe moves a burst out of a pipe's transmit ring; returns how many frames it took. */
uint32_t forward_from_pipe(struct master *master, struct view *view, struct pipe *pipe);

/* forward_from_nic moves a burst out of a receive queue; returns how many frames it took or delivered. */
uint32_t forward_from_nic(struct master *master, struct view *view, uint16_t queue);

#endif
