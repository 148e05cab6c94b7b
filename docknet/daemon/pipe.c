// SPDX-License-Identifier: Apache-2.0
#include "pipe.h"

#include <rte_mbuf.h>
#include <stdlib.h>

const char *const drop_reason_names[DROP_REASONS] = {
	[DROP_SPOOFED] = "spoofed",	  [DROP_MALFORMED] = "malformed", [DROP_UNROUTABLE] = "unroutable",
	[DROP_DETACHED] = "detached",	  [DROP_STALLED] = "stalled",	  [DROP_TOO_BIG] = "too_big",
	[DROP_UNRESOLVED] = "unresolved", [DROP_NIC_FULL] = "nic_full",
};

struct pipe *pipe_new(const struct pipe_config *config, unsigned int master)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));

	if (!pipe)
		return NULL;
	pipe->config = *config;
	pipe->master = master;
	pipe->bell = -1;
	rte_spinlock_init(&pipe->receive_lock);
	return pipe;
}

void pipe_free(struct pipe *pipe)
{
	if (!pipe)
		return;
	for (uint32_t i = 0; i < pipe->backlog_count; i++)
		rte_pktmbuf_free(pipe->backlog[(pipe->backlog_head + i) % PIPE_BACKLOG]);
	free(pipe);
}

json_t *pipe_stats_to_json(const struct pipe *pipe)
{
	const struct pipe_stats *s = &pipe->stats;
	json_t *drops = json_object(), *out;

	for (int i = 0; i < DROP_REASONS; i++) {
		uint64_t n = i == DROP_NIC_FULL ? counter_read(&s->rx_nic_full) : counter_read(&s->tx_dropped[i]);
		json_object_set_new(drops, drop_reason_names[i], json_integer((json_int_t)n));
	}
	out = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "tx_frames",
			(json_int_t)counter_read(&s->tx_frames), "tx_bytes", (json_int_t)counter_read(&s->tx_bytes),
			"rx_frames", (json_int_t)counter_read(&s->rx_frames), "rx_bytes",
			(json_int_t)counter_read(&s->rx_bytes), "tx_blocked", (json_int_t)counter_read(&s->tx_blocked),
			"bad_descs", (json_int_t)counter_read(&s->bad_descs), "attaches",
			(json_int_t)counter_read(&s->attaches), "detaches", (json_int_t)counter_read(&s->detaches),
			"dropped", drops);
	return out;
}
