/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the masters know: all pipes, and whose each address is. A view never changes. The control thread builds the next one
 * and swaps the pointer; the old one is freed when every master has passed a quiescent state. So masters need no locks, and
 * a lookup's answer is never half of a change.
 */
#ifndef DOCKDAEMON_VIEW_H
#define DOCKDAEMON_VIEW_H

#include "address.h"

struct pipe;
struct rte_hash;

struct view {
	struct rte_hash *flows; /* ip_key -> struct pipe */
	uint32_t count;
	struct pipe *pipe[];
};

/* view_new returns 0, or -ENOMEM. All addresses of the pipes must differ. */
int view_new(struct pipe *const *pipes, uint32_t count, struct view **view);

void view_free(struct view *view);

/* view_find returns the pipe with this address, or NULL. */
struct pipe *view_find(const struct view *view, const struct ip_key *address);

#endif
