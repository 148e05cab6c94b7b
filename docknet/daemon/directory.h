/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's directory: one daemon's at a time, and its user's. */
#ifndef DOCKDAEMON_DIRECTORY_H
#define DOCKDAEMON_DIRECTORY_H

#include <stddef.h>
#include <sys/types.h>

/*
 * directory_take makes the directory if it is not there, gives it to user, and locks it for this process; the kernel lets
 * go of the lock when the process dies. Returns 0 or -errno with the reason.
 */
int directory_take(const char *directory, uid_t user, char *reason, size_t reason_size);

/* directory_leave removes what is empty below the directory. */
void directory_leave(const char *directory);

#endif
