/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_descriptors.c - the master's reading of rings that the fuzzer fills: descriptors first, then numbers of buffers. */
#include <stdlib.h>

#include "frame.h"
#include "wait.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dp_pipe container, master;

static void start(void)
{
	struct dp_geometry g;
	int fd;

	dp_geometry_default(&g);
	if (dp_region_create("fuzz", &g, false, &fd) || dp_pipe_map(fd, DP_MASTER, &g, &master) ||
	    dp_pipe_map(fd, DP_CONTAINER, NULL, &container))
		abort();
}

static void fill(const uint8_t *data, size_t size)
{
	for (; size >= 5; data += 5, size -= 5) {
		struct dp_ring *ring = &container.fill[data[0] % DP_CLASSES];
		uint32_t number;

		memcpy(&number, data + 1, 4);
		if (dp_ring_reserve(ring, 1) == 0)
			continue;
		atomic_store(&container.fill_entry[data[0] % DP_CLASSES][dp_ring_at(ring, 0)], number);
		dp_ring_submit(ring, 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t descs = size / sizeof(struct dp_desc) / 2 + 1, i;
	struct dp_frame f;
	int got;

	if (!master.base)
		start();
	for (i = 0; i < descs && size >= sizeof(struct dp_desc); i++) {
		struct dp_desc d;

		memcpy(&d, data, sizeof d);
		data += sizeof d;
		size -= sizeof d;
		/* Most of all numbers are out of bounds, which is soon tried: half of the descriptors are made to be within. */
		if (d.offset & 1)
			d.offset = (uint32_t)container.layout.tx_begin + d.offset % (4u << 20);
		if (dp_ring_reserve(&container.tx, 1) == 0)
			break;
		dp_slot_write(&container.tx_slot[dp_ring_at(&container.tx, 0)], &d);
		dp_ring_submit(&container.tx, 1);
	}
	fill(data, size);
	while ((got = dp_frame_peek(&master, &f)) != 0) {
		if (got < 0)
			continue;
		if (f.length == 0 || f.length > DP_FRAME_MAX || f.segments == 0 || f.segments > DP_FRAME_SEGMENTS)
			abort();
		(void)dp_frame_deliver(&master, &f, NULL, 0);
		dp_frame_release(&master, &f);
	}
	if (dp_ring_in_use(&container.tx) != 0)
		abort();
	/* The container takes what has come, whatever it is. */
	dp_ring_release(&container.rx, dp_ring_peek(&container.rx, container.rx.size));
	return 0;
}
