// SPDX-License-Identifier: Apache-2.0
#include "methods.h"

#include "log.h"

#include <unistd.h>

static const char *const wait_names[] = { "adaptive", "busy", "sleep" };

static json_t *info(const struct daemon_state *d)
{
	return json_pack("{s:i, s:i, s:i, s:s, s:i, s:i, s:o}", "pid", (int)getpid(), "layout_version", DP_VERSION,
			 "masters", (int)d->masters.count, "wait", wait_names[d->options->wait], "pipes",
			 (int)d->registry.count, "user", (int)geteuid(), "nic", nic_to_json(&d->nic));
}

static json_t *stats(const struct daemon_state *d)
{
	return json_pack("{s:o, s:o, s:o}", "pipes", registry_to_json(&d->registry, true), "masters",
			 masters_to_json(&d->masters), "nic", nic_to_json(&d->nic));
}

json_t *methods_call(struct daemon_state *d, const struct rpc_request *request, struct rpc_error *error)
{
	switch (request->method) {
	case RPC_DAEMON_INFO:
		return info(d);
	case RPC_PIPE_ADD:
		if (registry_add(&d->registry, &request->add, false, error) < 0)
			return NULL;
		log_line("pipe %s added", request->add.name);
		return json_pack("{s:s++}", "directory", d->registry.directory, "/pipes/", request->add.name);
	case RPC_PIPE_REMOVE:
		if (registry_remove(&d->registry, request->remove, error) < 0)
			return NULL;
		log_line("pipe %s removed", request->remove);
		return json_true();
	case RPC_PIPE_LIST:
		return registry_to_json(&d->registry, false);
	case RPC_STATS:
		return stats(d);
	case RPC_DAEMON_SHUTDOWN:
		d->forget = request->forget;
		d->loop.stop = true;
		return json_true();
	}
	(void)rpc_fail(error, RPC_METHOD_NOT_FOUND, "unknown method");
	return NULL;
}
