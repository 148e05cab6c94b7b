/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCKDAEMON_METHODS_H
#define DOCKDAEMON_METHODS_H

#include "registry.h"

/* What requests work on. */
struct daemon_state {
	const struct options *options;
	struct loop loop;
	struct masters masters;
	struct nic nic;
	struct registry registry;
	bool forget; /* at the end: do not offer the pipes again */
};

/* methods_call does what a request asks for. Returns its result, or NULL with the error filled in. */
json_t *methods_call(struct daemon_state *daemon, const struct rpc_request *request, struct rpc_error *error);

#endif
