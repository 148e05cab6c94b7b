/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCKDAEMON_EAL_H
#define DOCKDAEMON_EAL_H

#include "options.h"

/*
 * eal_start starts DPDK: in hugepages if enough are free, in ordinary memory otherwise; without files that others could
 * open, and without its own control socket. *hugepages tells which. Returns 0 or -errno with the reason.
 */
int eal_start(const struct options *options, bool *hugepages, char *reason, size_t reason_size);

#endif
