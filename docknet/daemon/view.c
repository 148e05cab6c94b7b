// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include "pipe.h"

#include <rte_hash.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

int view_new(struct pipe *const *pipes, uint32_t count, struct view **out)
{
	static unsigned int serial; /* DPDK wants names that differ while both views exist */
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters parameters = {
		.name = name,
		.entries = count * FAMILIES + 8, /* rte_hash wants at least 8, and some room to be quick */
		.key_len = sizeof(struct ip_key),
		.hash_func = rte_jhash,
		/* An attacker does not choose who is in this table, only what is looked up: any start value will do. */
		.hash_func_init_val = 0,
		.socket_id = SOCKET_ID_ANY,
	};
	struct view *view = calloc(1, sizeof(*view) + count * sizeof(view->pipe[0]));

	if (!view)
		return -ENOMEM;
	snprintf(name, sizeof(name), "view%u", serial++);
	view->flows = rte_hash_create(&parameters);
	if (!view->flows) {
		free(view);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		view->pipe[view->count++] = pipes[i];
		for (int f = 0; f < FAMILIES; f++) {
			if (!pipes[i]->config.address[f].present)
				continue;
			if (rte_hash_add_key_data(view->flows, &pipes[i]->config.address[f].ip, pipes[i]) < 0) {
				view_free(view);
				return -ENOMEM;
			}
		}
	}
	*out = view;
	return 0;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	rte_hash_free(view->flows);
	free(view);
}

struct pipe *view_find(const struct view *view, const struct ip_key *address)
{
	void *pipe = NULL;

	return rte_hash_lookup_data(view->flows, address, &pipe) >= 0 ? pipe : NULL;
}
