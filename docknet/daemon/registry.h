/* SPDX-License-Identifier: Apache-2.0 */
/* All pipes: added, removed, remembered. For the control thread alone. */
#ifndef DOCKDAEMON_REGISTRY_H
#define DOCKDAEMON_REGISTRY_H

#include "loop.h"
#include "master.h"
#include "rpc.h"

/* dp_fault_guard has room for 4096 regions. */
#define PIPES_MAX 2048u

struct registry {
	const char *directory; /* state.json, and pipes/NAME/attach for each pipe */
	struct loop *loop;
	struct masters *masters;
	struct nic *nic;
	struct dp_geometry geometry;
	bool hugepages; /* to be tried for regions */
	struct pipe **pipe;
	uint32_t count;
};

int registry_init(struct registry *registry);

/* registry_add makes a pipe and offers it; -1 with the error filled in. restored: it was there before this daemon. */
int registry_add(struct registry *registry, const struct pipe_config *config, bool restored, struct rpc_error *error);

int registry_remove(struct registry *registry, const char *name, struct rpc_error *error);

/* registry_restore adds the pipes of the state file; a missing file is none. Returns 0 or -errno with the reason logged. */
int registry_restore(struct registry *registry);

/* registry_close detaches and frees everything; forget removes the pipes' sockets and the state file, too. */
void registry_close(struct registry *registry, bool forget);

json_t *registry_to_json(const struct registry *registry, bool with_stats);

#endif
