// SPDX-License-Identifier: Apache-2.0
/* Frames from the NIC: parsing reads nothing beyond them, and filled-in checksums are found right. */
#include "../neighbor.h"
#include "../packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mac_address own = { { 2, 0, 0, 0, 0, 1 } };
	struct neighbor_message message;
	uint8_t answer[NEIGHBOR_FRAME];
	struct packet p;

	if (neighbor_parse(data, size, &message) == NEIGHBOR_REQUEST &&
	    neighbor_answer(&message, &own, answer) > sizeof(answer))
		abort();
	if (packet_parse(data, (uint32_t)(size < PACKET_HEAD_MAX ? size : PACKET_HEAD_MAX), (uint32_t)size, &p) == 0) {
		uint8_t *copy = malloc(size);

		memcpy(copy, data, size);
		(void)packet_checksum_ok(copy, &p);
		packet_checksum_fill(copy, &p);
		if (!packet_checksum_ok(copy, &p))
			abort();
		free(copy);
	}
	return 0;
}
