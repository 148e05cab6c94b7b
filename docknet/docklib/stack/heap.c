/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - a free list for each power of two. lwIP asks for the same few sizes millions of times a second, and a
 * general malloc looks for the best place each time.
 *
 *   [ class | ... 16 bytes ][ the caller's memory ... ]
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

#define HEADER	   16u /* keeps the caller's memory aligned */
#define SMALLEST   6u  /* 64 bytes */
#define LARGEST	   18u /* 256 KiB; more goes to malloc */
#define NOT_POOLED 255u

/* Under a sanitizer each piece is malloc's own, so that it can see wrong uses. */
#if defined(__SANITIZE_ADDRESS__)
#define POOLED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOLED 0
#endif
#endif
#ifndef POOLED
#define POOLED 1
#endif

struct piece {
	struct piece *next;
	size_t class;
};
_Static_assert(sizeof(struct piece) == HEADER, "a piece's header keeps the alignment");

static struct piece *free_pieces[LARGEST + 1];
static size_t out;

static unsigned class_of(size_t size)
{
	unsigned class = SMALLEST;

	while (class <= LARGEST && ((size_t)1 << class) < size)
		class ++;
	return class <= LARGEST && POOLED ? class : NOT_POOLED;
}

void *docknet_heap_get(size_t size)
{
	unsigned class;
	struct piece *p;

	if (size > SIZE_MAX - HEADER)
		return NULL;
	size += HEADER;
	class = class_of(size);
	if (class != NOT_POOLED && free_pieces[class]) {
		p = free_pieces[class];
		free_pieces[class] = p->next;
	} else {
		p = malloc(class == NOT_POOLED ? size : (size_t)1 << class);
		if (!p)
			return NULL;
		p->class = class;
	}
	out++;
	return (uint8_t *)p + HEADER;
}

void *docknet_heap_get_zeroed(size_t count, size_t size)
{
	void *memory;

	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	memory = docknet_heap_get(count * size);
	if (memory)
		memset(memory, 0, count * size);
	return memory;
}

void docknet_heap_put(void *memory)
{
	struct piece *p;

	if (!memory)
		return;
	p = (struct piece *)((uint8_t *)memory - HEADER);
	out--;
	if (p->class == NOT_POOLED) {
		free(p);
		return;
	}
	p->next = free_pieces[p->class];
	free_pieces[p->class] = p;
}

size_t docknet_heap_out(void)
{
	return out;
}
