/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_master.h - a master without DPDK, NIC or policy: it moves frames between pipes by destination address, as
 * dockdaemon does, with the same functions. For tests of containers' side.
 */
#ifndef DOCKNET_FAKE_MASTER_H
#define DOCKNET_FAKE_MASTER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "attach.h"
#include "frame.h"
#include "wait.h"

#define FAKE_PIPES_MAX 8

struct fake_pipe {
	char directory[100];
	struct dp_address address[DP_ADDRESSES_MAX];
	int listener;
	int conn; /* -1: nobody is attached */
	int bell;
	int region;
	bool mapped;
	struct dp_pipe pipe;
	uint64_t frames, bad, undeliverable;
};

struct fake_master {
	struct fake_pipe pipes[FAKE_PIPES_MAX];
	unsigned count;
	int epoll;
	uint32_t mtu;
	bool hugepages;
	struct dp_geometry geometry;
	struct dp_waiter waiter;
	atomic_bool stop;
	/* Faults: every n-th frame is dropped, doubled, held back until the next one. 0: never. */
	unsigned drop_every, double_every, reorder_every;
	uint64_t moved;
	uint8_t held[DP_FRAME_MAX];
	uint32_t held_length;
	struct fake_pipe *held_for;
	bool blocked; /* a frame waits for room at its destination */
	uint32_t last_cpu;
};

/* Prepare a master. Pipes are added before it runs. */
void fake_master_init(struct fake_master *m, enum dp_wait_mode mode);

/* Add a pipe whose socket is in a new directory below base. addresses: "10.0.0.1,fd00::1". 0 or -errno. */
int fake_master_add(struct fake_master *m, const char *base, const char *name, const char *addresses);

/* Move frames until stop is set, or for at most seconds (0: no limit). */
void fake_master_run(struct fake_master *m, unsigned seconds);

/* Close everything; sockets and directories are removed. */
void fake_master_close(struct fake_master *m);

#endif
