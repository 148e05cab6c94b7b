/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCKDAEMON_PRIVILEGES_H
#define DOCKDAEMON_PRIVILEGES_H

#include <sys/types.h>

/*
 * privileges_drop gives up, for good, all that the start needed: every capability, supplementary groups, and, unless user
 * is 0, root's identity. All threads must be started afterwards, or they keep what they had. Returns 0 or -errno.
 */
int privileges_drop(uid_t user);

#endif
