/* SPDX-License-Identifier: Apache-2.0 */
/* entropy.h - numbers that a stranger cannot guess. One thread. */
#ifndef DOCKNET_ENTROPY_H
#define DOCKNET_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

uint32_t docknet_random(void);

/* SipHash-2-4 of data under a key that is this process's own. */
uint64_t docknet_keyed_hash(const void *data, size_t length);

#endif
