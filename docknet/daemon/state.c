// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int state_path(const char *directory, const char *suffix, char path[256])
{
	int n = snprintf(path, 256, "%s/state.json%s", directory, suffix);

	return n < 0 || n >= 256 ? -ENAMETOOLONG : 0;
}

int state_save(const struct registry *r)
{
	char path[256], fresh[256];
	json_t *pipes = json_array(), *root;
	int err = state_path(r->directory, "", path);

	if (err == 0)
		err = state_path(r->directory, ".new", fresh);
	for (uint32_t i = 0; i < r->count; i++)
		json_array_append_new(pipes, pipe_config_to_json(&r->pipe[i]->config));
	root = json_pack("{s:i, s:o}", "version", 1, "pipes", pipes);
	if (err == 0) {
		errno = ENOMEM;
		if (!root || json_dump_file(root, fresh, JSON_INDENT(2)) < 0 || rename(fresh, path) < 0)
			err = -errno;
	}
	json_decref(root);
	return err;
}

int state_load(const char *directory, struct pipe_config **configs, uint32_t *count)
{
	char path[256], why[CONFIG_ERROR_SIZE];
	json_error_t error;
	json_t *root, *pipes, *value;
	size_t i;
	int err = state_path(directory, "", path);

	*configs = NULL;
	*count = 0;
	if (err < 0)
		return err;
	if (access(path, F_OK) < 0)
		return 0;
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	pipes = json_object_get(root, "pipes");
	if (!root || json_integer_value(json_object_get(root, "version")) != 1 || !json_is_array(pipes)) {
		log_line("%s is damaged (%s): remove it, or take the net down", path,
			 root ? "no version 1, or no pipes" : error.text);
		json_decref(root);
		return -EINVAL;
	}
	*configs = calloc(json_array_size(pipes) + 1, sizeof(**configs));
	json_array_foreach(pipes, i, value)
	{
		if (*configs && pipe_config_from_json(value, &(*configs)[*count], why) == 0)
			(*count)++;
		else
			log_line("%s: pipe %zu: %s", path, i, *configs ? why : "no memory");
	}
	json_decref(root);
	return *configs ? 0 : -ENOMEM;
}

void state_forget(const char *directory)
{
	char path[256];

	if (state_path(directory, "", path) == 0)
		(void)unlink(path);
}
