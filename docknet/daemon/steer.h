/* SPDX-License-Identifier: Apache-2.0 */
/* The flow director: a receive queue of its own for a pipe, where the NIC's hardware can tell its packets from others. */
#ifndef DOCKDAEMON_STEER_H
#define DOCKDAEMON_STEER_H

#include "nic.h"
#include "pipe.h"

/*
 * steer_pipe asks the NIC to put packets for the pipe's addresses into a queue that no other pipe has. Where it cannot (its
 * driver refuses the rule, or the queues are used up), the pipe stays with queue 0 and is found by its address. Nothing
 * relies on the steering: what comes out of a queue is looked up like everything else.
 */
void steer_pipe(struct nic *nic, struct pipe *const *pipes, uint32_t count, struct pipe *pipe);

void steer_remove(struct nic *nic, struct pipe *pipe);

#endif
