/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h - private memory for lwIP and docklib, in size classes. One thread. What has been got from the system stays. */
#ifndef DOCKNET_HEAP_H
#define DOCKNET_HEAP_H

#include <stddef.h>

void *docknet_heap_get(size_t size);
void *docknet_heap_get_zeroed(size_t count, size_t size);
void docknet_heap_put(void *memory); /* NULL is allowed */

/* Pieces that are out: 0 after everything has been torn down. */
size_t docknet_heap_out(void);

#endif
