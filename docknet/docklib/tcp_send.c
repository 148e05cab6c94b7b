/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_send.c - data on its way out. It is copied once, into a chunk, where lwIP refers to it until it is acknowledged.
 * A connection that has little to say gets a small private chunk; one that streams, transmit buffers of 64 KiB, each
 * of which becomes one frame however small the pieces were that filled it.
 */
#include <errno.h>

#include "connection.h"
#include "heap.h"
#include "lwip/priv/tcp_priv.h"

/* A conversation fits in here, and a thousand conversations fit in the cache. */
#define CHUNK_SMALL 1920u
/* When transmit buffers have run out. */
#define CHUNK_FALLBACK 16256u
/* Unused at a chunk's end: lwIP joins data that touches, and a descriptor stays within one buffer. */
#define CHUNK_GAP 64u

static void free_chunk(struct docknet *net, struct chunk *chunk)
{
	if (chunk->shared)
		tx_buffer_put(net, chunk->place);
	docknet_heap_put(chunk);
}

static void append_chunk(struct docknet_tcp *c, struct chunk *chunk)
{
	if (c->last)
		c->last->next = chunk;
	else
		c->first = chunk;
	c->last = chunk;
}

static struct chunk *private_chunk(size_t capacity)
{
	struct chunk *chunk = docknet_heap_get(sizeof *chunk + capacity);

	if (!chunk)
		return NULL;
	*chunk = (struct chunk){ .data = chunk->bytes, .capacity = capacity };
	return chunk;
}

static struct chunk *shared_chunk(struct docknet *net, size_t size)
{
	struct chunk *chunk = docknet_heap_get(sizeof *chunk);

	if (!chunk)
		return NULL;
	*chunk = (struct chunk){ .shared = true };
	if (!tx_buffer_get(net, size, &chunk->place)) {
		docknet_heap_put(chunk);
		return NULL;
	}
	chunk->data = tx_buffer_data(net, chunk->place);
	chunk->capacity = tx_buffer_size(net, chunk->place) - CHUNK_GAP;
	return chunk;
}

/* chunk_for returns a chunk with space; length is how much there is to come. */
static struct chunk *chunk_for(struct docknet_tcp *c, size_t length)
{
	struct chunk *chunk = c->last;

	if (chunk && chunk->used < chunk->capacity)
		return chunk;
	if (c->queued + length <= CHUNK_SMALL) {
		chunk = private_chunk(CHUNK_SMALL);
	} else {
		tx_reclaim(c->net);
		chunk = shared_chunk(c->net, DP_BUFFER_MAX);
		if (!chunk)
			chunk = private_chunk(CHUNK_FALLBACK);
	}
	if (chunk)
		append_chunk(c, chunk);
	return chunk;
}

/* ---- flushing ---- */

static void mark_unflushed(struct docknet_tcp *c)
{
	if (c->unflushed)
		return;
	c->unflushed = true;
	c->next_unflushed = c->net->unflushed;
	c->net->unflushed = c;
}

void unflushed_remove(struct docknet_tcp *c)
{
	if (!c->unflushed)
		return;
	for (struct docknet_tcp **at = &c->net->unflushed; *at; at = &(*at)->next_unflushed) {
		if (*at == c) {
			*at = c->next_unflushed;
			break;
		}
	}
	c->unflushed = false;
}

void docknet_tcp_flush(struct docknet_tcp *c)
{
	unflushed_remove(c);
	if (c->pcb)
		tcp_output(c->pcb);
}

void tcp_flush_all(struct docknet *net)
{
	while (net->unflushed) {
		struct docknet_tcp *c = net->unflushed;

		net->unflushed = c->next_unflushed;
		c->unflushed = false;
		if (c->pcb)
			tcp_output(c->pcb);
	}
}

void tcp_send_blocked(void)
{
	for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb; pcb = pcb->next) {
		if (pcb->flags & (TF_NAGLEMEMERR | TF_ACK_NOW))
			tcp_output(pcb);
	}
}

/* ---- sending ---- */

static bool may_send(const struct docknet_tcp *c)
{
	return c->pcb && !c->shut && (c->pcb->state == ESTABLISHED || c->pcb->state == CLOSE_WAIT);
}

static int cannot_send(const struct docknet_tcp *c)
{
	if (c->shut)
		return -EPIPE;
	if (c->pcb)
		return -EAGAIN; /* not connected yet */
	return c->status ? c->status : -ENOTCONN;
}

/* write_piece hands a chunk's next bytes to lwIP. */
static bool write_piece(struct docknet_tcp *c, struct chunk *chunk, size_t length)
{
	if (tcp_write(c->pcb, chunk->data + chunk->used, (u16_t)length, 0) != ERR_OK)
		return false;
	chunk->used += length;
	c->queued += length;
	mark_unflushed(c);
	return true;
}

ssize_t docknet_tcp_send(struct docknet_tcp *c, const void *data, size_t length)
{
	size_t sent = 0;

	if (!may_send(c))
		return cannot_send(c);
	if (length == 0)
		return 0;
	while (sent < length) {
		size_t n = length - sent, room = tcp_sndbuf(c->pcb);
		struct chunk *chunk;

		if (room == 0)
			break;
		chunk = chunk_for(c, n);
		if (!chunk)
			break;
		if (n > room)
			n = room;
		if (n > chunk->capacity - chunk->used)
			n = chunk->capacity - chunk->used;
		memcpy(chunk->data + chunk->used, (const uint8_t *)data + sent, n);
		if (!write_piece(c, chunk, n))
			break;
		sent += n;
		/* A full frame need not wait for the next poll: the peer can work while we fill another. */
		if (chunk->shared && chunk->used == chunk->capacity) {
			docknet_tcp_flush(c);
			engine_kick(c->net);
			if (!c->pcb)
				break;
		}
	}
	return sent > 0 ? (ssize_t)sent : -EAGAIN;
}

int docknet_tcp_send_buffer(struct docknet_tcp *c, struct docknet_buffer *user)
{
	struct tx_user_buffer *b = (struct tx_user_buffer *)user;
	struct chunk *chunk;

	if (b->buffer.kind != BUFFER_TX || user->length == 0 || user->length > b->capacity)
		return -EINVAL;
	if (!may_send(c))
		return cannot_send(c);
	if (tcp_sndbuf(c->pcb) < user->length)
		return -EAGAIN;
	chunk = docknet_heap_get(sizeof *chunk);
	if (!chunk)
		return -ENOMEM;
	*chunk = (struct chunk){ .shared = true, .place = b->place, .data = user->data, .capacity = user->length };
	if (!write_piece(c, chunk, user->length)) {
		docknet_heap_put(chunk);
		return -EAGAIN;
	}
	append_chunk(c, chunk);
	docknet_heap_put(b); /* the place is the chunk's now */
	return 0;
}

size_t docknet_tcp_room(const struct docknet_tcp *c)
{
	return may_send(c) ? tcp_sndbuf(c->pcb) : 0;
}

/* ---- acknowledged ---- */

void chunks_acked(struct docknet_tcp *c, size_t bytes)
{
	while (bytes > 0 && c->first) {
		struct chunk *chunk = c->first;
		size_t n = chunk->used - chunk->acked;

		if (n > bytes)
			n = bytes;
		chunk->acked += n;
		bytes -= n;
		c->queued -= n;
		if (chunk->acked < chunk->used)
			return;
		/* The last one is kept while it has space, unless all is said: an idle connection holds nothing. */
		if (chunk == c->last && chunk->used < chunk->capacity && c->queued > 0)
			return;
		c->first = chunk->next;
		if (!c->first)
			c->last = NULL;
		free_chunk(c->net, chunk);
	}
}

void chunks_drop(struct docknet_tcp *c)
{
	while (c->first) {
		struct chunk *chunk = c->first;

		c->first = chunk->next;
		free_chunk(c->net, chunk);
	}
	c->last = NULL;
	c->queued = 0;
}
