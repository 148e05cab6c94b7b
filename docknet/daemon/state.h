/* SPDX-License-Identifier: Apache-2.0 */
/* The state file: which pipes there are, for the daemon that comes after this one. */
#ifndef DOCKDAEMON_STATE_H
#define DOCKDAEMON_STATE_H

#include "registry.h"

/* state_save writes the state file in one step. Returns 0 or -errno. */
int state_save(const struct registry *registry);

/* state_load reads it; the caller frees *configs. A missing file is an empty one; a damaged one is logged, -EINVAL. */
int state_load(const char *directory, struct pipe_config **configs, uint32_t *count);

void state_forget(const char *directory);

#endif
