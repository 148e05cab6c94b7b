// SPDX-License-Identifier: Apache-2.0
#include "registry.h"

#include "attachment.h"
#include "log.h"
#include "state.h"
#include "steer.h"

#include <errno.h>
#include <stdlib.h>

/* How long frames for a container that was attached to the daemon before are kept waiting. A container looks for the new
 * daemon every few ms. */
#define RETURN_NS 500000000ull

int registry_init(struct registry *r)
{
	dp_geometry_default(&r->geometry);
	r->pipe = calloc(PIPES_MAX, sizeof(r->pipe[0]));
	r->count = 0;
	return r->pipe ? 0 : -ENOMEM;
}

static struct pipe *find_name(const struct registry *r, const char *name)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (strcmp(r->pipe[i]->config.name, name) == 0)
			return r->pipe[i];
	return NULL;
}

static int check_conflicts(const struct registry *r, const struct pipe_config *config, struct rpc_error *error)
{
	char text[IP_TEXT_SIZE];

	if (find_name(r, config->name))
		return rpc_fail(error, RPC_NAME_IN_USE, "there is a pipe %s already", config->name);
	if (r->count == PIPES_MAX)
		return rpc_fail(error, RPC_FAILED, "there are %u pipes, which is the most", PIPES_MAX);
	for (uint32_t i = 0; i < r->count; i++) {
		for (int f = 0; f < FAMILIES; f++) {
			const struct pipe_address *mine = &config->address[f], *other = &r->pipe[i]->config.address[f];

			if (mine->present && other->present && ip_key_equal(&mine->ip, &other->ip))
				return rpc_fail(error, RPC_ADDRESS_IN_USE, "address %s is pipe %s's",
						ip_format(&mine->ip, -1, text), r->pipe[i]->config.name);
		}
	}
	return 0;
}

/* Shows the masters the present list of pipes. */
static int publish(struct registry *r)
{
	struct view *view;
	int err = view_new(r->pipe, r->count, &view);

	if (err == 0)
		view_free(masters_set_view(r->masters, view));
	return err;
}

static unsigned int least_loaded_master(const struct registry *r)
{
	unsigned int load[MASTERS_MAX] = { 0 }, best = 0;

	for (uint32_t i = 0; i < r->count; i++)
		load[r->pipe[i]->master]++;
	for (unsigned int m = 1; m < r->masters->count; m++)
		if (load[m] < load[best])
			best = m;
	return best;
}

int registry_add(struct registry *r, const struct pipe_config *config, bool restored, struct rpc_error *error)
{
	struct pipe *pipe;
	int err;

	if (check_conflicts(r, config, error) < 0)
		return -1;
	pipe = pipe_new(config, least_loaded_master(r));
	if (!pipe)
		return rpc_fail(error, RPC_FAILED, "no memory for pipe %s", config->name);
	if (restored)
		pipe->expected_until_ns = dp_now_ns() + RETURN_NS;
	err = attachment_offer(r, pipe);
	if (err < 0) {
		pipe_free(pipe);
		return rpc_fail(error, RPC_FAILED, "making the socket of pipe %s in %s/pipes: %s", config->name,
				r->directory, strerror(-err));
	}
	steer_pipe(r->nic, r->pipe, r->count, pipe);
	r->pipe[r->count++] = pipe;
	err = publish(r);
	if (err == 0 && !restored)
		err = state_save(r);
	if (err < 0) {
		struct rpc_error ignored;

		(void)registry_remove(r, config->name, &ignored);
		return rpc_fail(error, RPC_FAILED, "adding pipe %s: %s", config->name, strerror(-err));
	}
	return 0;
}

/* Ends a pipe that no view has any more. */
static void end(struct registry *r, struct pipe *pipe, bool forget)
{
	attachment_withdraw(r, pipe, forget);
	steer_remove(r->nic, pipe);
	if (pipe->backlog_count > 0)
		atomic_fetch_sub(&r->nic->backlogged, 1);
	pipe_free(pipe);
}

int registry_remove(struct registry *r, const char *name, struct rpc_error *error)
{
	struct pipe *pipe = find_name(r, name);
	uint32_t i = 0;
	int err;

	if (!pipe)
		return rpc_fail(error, RPC_NOT_FOUND, "there is no pipe %s", name);
	while (r->pipe[i] != pipe)
		i++;
	memmove(&r->pipe[i], &r->pipe[i + 1], (r->count - i - 1) * sizeof(r->pipe[0]));
	r->count--;
	err = publish(r);
	if (err < 0) { /* the masters know it still, so it has to stay */
		r->pipe[r->count++] = pipe;
		return rpc_fail(error, RPC_FAILED, "removing pipe %s: %s", name, strerror(-err));
	}
	end(r, pipe, true);
	err = state_save(r);
	if (err < 0)
		return rpc_fail(error, RPC_FAILED, "pipe %s is removed, but writing %s/state.json: %s", name,
				r->directory, strerror(-err));
	return 0;
}

int registry_restore(struct registry *r)
{
	struct pipe_config *configs;
	uint32_t count;
	int err = state_load(r->directory, &configs, &count);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < count; i++) {
		struct rpc_error error = { 0 };

		if (registry_add(r, &configs[i], true, &error) < 0)
			log_line("restoring pipe %s: %s", configs[i].name, error.message);
	}
	if (count > 0)
		log_line("%u pipes are offered again", r->count);
	free(configs);
	return 0;
}

void registry_close(struct registry *r, bool forget)
{
	for (uint32_t i = 0; i < r->count; i++)
		end(r, r->pipe[i], forget);
	if (forget)
		state_forget(r->directory);
	free(r->pipe);
	r->pipe = NULL;
	r->count = 0;
}

json_t *registry_to_json(const struct registry *r, bool with_stats)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->count; i++) {
		const struct pipe *pipe = r->pipe[i];
		json_t *object = pipe_config_to_json(&pipe->config);

		json_object_set_new(object, "attached", json_boolean(pipe->attached != NULL));
		json_object_set_new(object, "pid", json_integer(pipe->attached ? pipe->peer_pid : 0));
		json_object_set_new(object, "epoch", json_integer(pipe->epoch));
		json_object_set_new(object, "master", json_integer(pipe->master));
		json_object_set_new(object, "nic_queue", json_integer(pipe->nic_queue));
		json_object_set_new(object, "directory", json_sprintf("%s/pipes/%s", r->directory, pipe->config.name));
		if (with_stats)
			json_object_set_new(object, "stats", pipe_stats_to_json(pipe));
		json_array_append_new(list, object);
	}
	return list;
}
