/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - from a geometry to offsets. Pure arithmetic, in 64 bits, on numbers that may come from an enemy. */
#include <errno.h>

#include "pipe.h"

#define HUGE_PAGE (2u * 1024 * 1024)

static bool power_of_two(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static bool ring_size_valid(uint32_t entries)
{
	return power_of_two(entries) && entries <= DP_RING_MAX;
}

static bool classes_valid(const struct dp_class *classes)
{
	for (unsigned i = 0; i < DP_CLASSES; i++) {
		const struct dp_class *c = &classes[i];

		if (!power_of_two(c->size) || c->size < DP_BUFFER_MIN || c->size > DP_BUFFER_MAX ||
		    !ring_size_valid(c->count))
			return false;
		if (i > 0 && c->size <= classes[i - 1].size)
			return false;
	}
	/* A frame of any length must fit into one receive buffer. */
	return classes[DP_CLASSES - 1].size == DP_BUFFER_MAX;
}

void dp_geometry_default(struct dp_geometry *geometry)
{
	*geometry = (struct dp_geometry){
		.tx_entries = 1024,
		.rx_entries = 1024,
		.tx_class = { { 256, 512 }, { 2048, 256 }, { 16384, 32 }, { 65536, 32 } },
		.rx_class = { { 256, 512 }, { 2048, 256 }, { 16384, 32 }, { 65536, 32 } },
	};
}

/* place gives a part of the region its offset and moves on to the next page. */
static uint64_t place(uint64_t *at, uint64_t bytes)
{
	uint64_t offset = *at;

	*at = round_up(*at + bytes, DP_PAGE);
	return offset;
}

int dp_layout_compute(const struct dp_geometry *geometry, bool hugepages, struct dp_layout *layout)
{
	struct dp_layout l = { 0 };
	uint64_t at = DP_PAGE; /* the header */

	if (!ring_size_valid(geometry->tx_entries) || !ring_size_valid(geometry->rx_entries) ||
	    !classes_valid(geometry->tx_class) || !classes_valid(geometry->rx_class))
		return -EINVAL;

	l.control = place(&at, sizeof(struct dp_control));
	l.tx_slots = place(&at, (uint64_t)geometry->tx_entries * sizeof(struct dp_slot));
	l.rx_slots = place(&at, (uint64_t)geometry->rx_entries * sizeof(struct dp_slot));
	for (unsigned i = 0; i < DP_CLASSES; i++)
		l.fill[i] = place(&at, (uint64_t)geometry->rx_class[i].count * sizeof(uint32_t));
	l.rx_begin = at;
	for (unsigned i = 0; i < DP_CLASSES; i++)
		l.rx_class[i] = place(&at, (uint64_t)geometry->rx_class[i].count * geometry->rx_class[i].size);
	l.rx_end = at;
	l.tx_begin = at;
	for (unsigned i = 0; i < DP_CLASSES; i++)
		l.tx_class[i] = place(&at, (uint64_t)geometry->tx_class[i].count * geometry->tx_class[i].size);
	l.tx_end = at;
	l.size = round_up(at, hugepages ? HUGE_PAGE : DP_PAGE);
	if (l.size > DP_REGION_MAX)
		return -EINVAL;
	*layout = l;
	return 0;
}
