/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe.h - a region made, mapped and checked; one side's private handle of it.
 *
 * All functions return 0 or -errno, and write their outputs only on success.
 */
#ifndef DOCKPIPE_PIPE_H
#define DOCKPIPE_PIPE_H

#include <stdbool.h>

#include "ring.h"

/* Where things are, in bytes from the start of the region. Computed from a geometry, never read from the region. */
struct dp_layout {
	uint64_t control;
	uint64_t tx_slots, rx_slots;
	uint64_t fill[DP_CLASSES];     /* arrays of _Atomic uint32_t */
	uint64_t rx_class[DP_CLASSES]; /* the first buffer of the class */
	uint64_t tx_class[DP_CLASSES];
	uint64_t rx_begin, rx_end; /* all receive buffers */
	uint64_t tx_begin, tx_end; /* all transmit buffers */
	uint64_t size;		   /* whole pages; of whole 2 MiB pages when asked for */
};

enum dp_role { DP_CONTAINER, DP_MASTER };

/* One side's handle. It has one thread. */
struct dp_pipe {
	uint8_t *base;
	uint64_t size;
	enum dp_role role;
	struct dp_geometry geometry;
	struct dp_layout layout;
	struct dp_header *header;
	struct dp_side *me, *peer;
	struct dp_ring tx, rx, fill[DP_CLASSES];
	struct dp_slot *tx_slot, *rx_slot;
	_Atomic uint32_t *fill_entry[DP_CLASSES];
	int bell_fd; /* container: the master's eventfd; master: the attach connection, for DP_WAKE_SOCKET. -1: none */
	uint64_t bad_descs; /* descriptors that were refused; also refused numbers in a fill ring */
};

/* 3 MiB in each direction: room for a window of 1 MiB in 64 KiB frames with as much again in flight. */
void dp_geometry_default(struct dp_geometry *geometry);

/* -EINVAL: a number is no power of two, out of bounds, or the region would exceed DP_REGION_MAX. */
int dp_layout_compute(const struct dp_geometry *geometry, bool hugepages, struct dp_layout *layout);

/* Make a region: a memfd with seals against shrinking, growing and further seals, its header written. With hugepages true
 * it lies in 2 MiB pages; -ENOMEM if there are too few free (the caller then asks again without). */
int dp_region_create(const char *name, const struct dp_geometry *geometry, bool hugepages, int *fd);

/* Map the region behind fd and check it: seals, size, magic, version, geometry. With expected non-NULL the geometry
 * must be that one (a master decides how much memory a pipe gets). The fd may be closed afterwards. Ring indices are
 * taken over as they are in the region if they are possible, -EBADMSG otherwise. */
int dp_pipe_map(int fd, enum dp_role role, const struct dp_geometry *expected, struct dp_pipe *pipe);

/* Unmap. Safe on a zeroed handle, and twice. */
void dp_pipe_unmap(struct dp_pipe *pipe);

/* The container's part of re-attachment, with no master alive: empty receive and fill rings, raise the epoch. The
 * transmit ring stays: what the dead master had not taken is taken by the next. */
void dp_pipe_reset_receive(struct dp_pipe *pipe);

/* Protect this process against SIGBUS from regions: a page that the kernel cannot provide (a hole punched into
 * hugepages, memory exhausted) is replaced by zeros, and the handle's region counted as broken. One handler for the
 * process; faults elsewhere go to the handler that was there before. */
int dp_fault_guard(const struct dp_pipe *pipe);
void dp_fault_unguard(const struct dp_pipe *pipe);
bool dp_fault_seen(const struct dp_pipe *pipe);

#endif
