/* SPDX-License-Identifier: Apache-2.0 */
/* transmit.c - from lwIP's pbufs to the transmit ring: payload in shared memory by reference, all else copied. */
#include <errno.h>

#include "heap.h"
#include "net.h"

/* Up to here one copy is cheaper than several descriptors. */
#define COPY_MAX 1024u

int tx_pool_open(struct docknet *net)
{
	struct tx_pool *pool = &net->tx;
	const struct dp_geometry *g = &net->pipe.geometry;

	pool->in_ring = docknet_heap_get_zeroed(g->tx_entries, sizeof *pool->in_ring);
	pool->reclaimed = net->pipe.tx.own;
	if (!pool->in_ring)
		return -ENOMEM;
	for (unsigned c = 0; c < DP_CLASSES; c++) {
		uint32_t count = g->tx_class[c].count;

		pool->free[c] = docknet_heap_get(count * sizeof *pool->free[c]);
		pool->refs[c] = docknet_heap_get_zeroed(count, sizeof *pool->refs[c]);
		if (!pool->free[c] || !pool->refs[c])
			return -ENOMEM;
		for (uint32_t i = 0; i < count; i++)
			pool->free[c][i] = count - 1 - i;
		pool->free_count[c] = count;
	}
	return 0;
}

void tx_pool_close(struct docknet *net)
{
	docknet_heap_put(net->tx.in_ring);
	for (unsigned c = 0; c < DP_CLASSES; c++) {
		docknet_heap_put(net->tx.free[c]);
		docknet_heap_put(net->tx.refs[c]);
	}
	net->tx = (struct tx_pool){ 0 };
}

uint32_t tx_buffer_size(struct docknet *net, struct tx_buffer buffer)
{
	return net->pipe.geometry.tx_class[buffer.class].size;
}

static uint64_t offset_of(struct docknet *net, struct tx_buffer buffer)
{
	return net->pipe.layout.tx_class[buffer.class] + (uint64_t)buffer.number * tx_buffer_size(net, buffer);
}

uint8_t *tx_buffer_data(struct docknet *net, struct tx_buffer buffer)
{
	return net->pipe.base + offset_of(net, buffer);
}

bool tx_buffer_get(struct docknet *net, size_t size, struct tx_buffer *buffer)
{
	for (uint8_t c = 0; c < DP_CLASSES; c++) {
		if (net->pipe.geometry.tx_class[c].size < size || net->tx.free_count[c] == 0)
			continue;
		*buffer = (struct tx_buffer){ c, net->tx.free[c][--net->tx.free_count[c]] };
		net->tx.refs[c][buffer->number] = 1;
		return true;
	}
	return false;
}

void tx_buffer_put(struct docknet *net, struct tx_buffer buffer)
{
	struct tx_pool *pool = &net->tx;

	if (--pool->refs[buffer.class][buffer.number] == 0)
		pool->free[buffer.class][pool->free_count[buffer.class]++] = buffer.number;
}

/* reclaim_seen drops the references of descriptors that the master has released, as far as we know. */
static void reclaim_seen(struct docknet *net)
{
	struct dp_ring *ring = &net->pipe.tx;

	while (net->tx.reclaimed != ring->peer) {
		tx_buffer_put(net, net->tx.in_ring[net->tx.reclaimed & (ring->size - 1)]);
		net->tx.reclaimed++;
	}
}

void tx_reclaim(struct docknet *net)
{
	(void)dp_ring_reserve(&net->pipe.tx, net->pipe.tx.size); /* looks at the master's index */
	reclaim_seen(net);
}

/* shared tells whether a pbuf's bytes lie in a transmit buffer, and in which. */
static bool shared(struct docknet *net, const struct pbuf *q, struct tx_buffer *buffer)
{
	const uint8_t *at = q->payload;
	const struct dp_layout *l = &net->pipe.layout;

	if (at < net->pipe.base + l->tx_begin || at >= net->pipe.base + l->tx_end)
		return false;

	uint64_t offset = (uint64_t)(at - net->pipe.base);
	uint8_t c = DP_CLASSES - 1;

	while (offset < l->tx_class[c])
		c--;
	*buffer = (struct tx_buffer){ c, (uint32_t)((offset - l->tx_class[c]) / net->pipe.geometry.tx_class[c].size) };
	return true;
}

/* A frame on its way into the ring. Nothing of it counts before it is submitted. */
struct frame {
	struct dp_desc desc[DP_FRAME_SEGMENTS];
	struct tx_buffer buffer[DP_FRAME_SEGMENTS]; /* each with a reference of the frame's own */
	unsigned segments;
};

static void drop(struct docknet *net, struct frame *f)
{
	for (unsigned i = 0; i < f->segments; i++)
		tx_buffer_put(net, f->buffer[i]);
}

static bool add_shared(struct docknet *net, struct frame *f, const struct pbuf *q, struct tx_buffer buffer)
{
	if (f->segments == DP_FRAME_SEGMENTS)
		return false;
	net->tx.refs[buffer.class][buffer.number]++;
	f->buffer[f->segments] = buffer;
	f->desc[f->segments++] = (struct dp_desc){ .offset = (uint32_t)((const uint8_t *)q->payload - net->pipe.base),
						   .length = q->len };
	return true;
}

/* add_copy copies length bytes of the chain from q on into a buffer. */
static bool add_copy(struct docknet *net, struct frame *f, const struct pbuf *q, uint32_t length)
{
	struct tx_buffer buffer;
	uint8_t *to;

	if (f->segments == DP_FRAME_SEGMENTS || !tx_buffer_get(net, length, &buffer))
		return false;
	f->buffer[f->segments] = buffer;
	f->desc[f->segments++] =
		(struct dp_desc){ .offset = (uint32_t)offset_of(net, buffer), .length = (uint16_t)length };
	to = tx_buffer_data(net, buffer);
	for (uint32_t done = 0; done < length; q = q->next) {
		memcpy(to + done, q->payload, q->len);
		done += q->len;
	}
	return true;
}

/* build makes descriptors of a chain: each run of private pbufs becomes one copy. */
static bool build(struct docknet *net, struct frame *f, const struct pbuf *p)
{
	const struct pbuf *q = p;

	while (q) {
		struct tx_buffer buffer;
		const struct pbuf *run = q;
		uint32_t length = 0;

		if (q->len > 0 && shared(net, q, &buffer)) {
			if (!add_shared(net, f, q, buffer))
				return false;
			q = q->next;
			continue;
		}
		for (; q && !(q->len > 0 && shared(net, q, &buffer)); q = q->next)
			length += q->len;
		if (length > 0 && !add_copy(net, f, run, length))
			return false;
	}
	return true;
}

err_t tx_packet(struct docknet *net, struct pbuf *p)
{
	struct frame f = { .segments = 0 };
	struct dp_ring *ring = &net->pipe.tx;
	bool built;

	if (net->tap)
		tap_packet(net->tap, p, true);
	if (!net->attached && dp_ring_reserve(ring, 1) == 0)
		goto no_room;
	tx_reclaim(net);
	built = p->tot_len > COPY_MAX && build(net, &f, p);
	if (!built) {
		/* Small, or in too many pieces, or no buffer for one of them. */
		drop(net, &f);
		f.segments = 0;
		if (!add_copy(net, &f, p, p->tot_len))
			goto no_room;
	}
	if (dp_ring_reserve(ring, f.segments) < f.segments) {
		drop(net, &f);
		goto no_room;
	}
	/* That may have moved the master's index: entries must be dealt with before they are used again. */
	reclaim_seen(net);
	f.desc[0].flags = DP_DESC_CSUM_ELIDED;
	for (unsigned i = 0; i < f.segments; i++) {
		if (i + 1 < f.segments)
			f.desc[i].flags |= DP_DESC_MORE;
		net->tx.in_ring[dp_ring_at(ring, i)] = f.buffer[i];
		dp_slot_write(&net->pipe.tx_slot[dp_ring_at(ring, i)], &f.desc[i]);
	}
	dp_ring_submit(ring, f.segments);
	net->submitted = true;
	net->stats.tx_frames++;
	net->stats.tx_bytes += p->tot_len;
	return ERR_OK;

no_room:
	net->tx.blocked = true;
	net->stats.tx_blocked++;
	return ERR_MEM;
}

/* ---- the user's buffers ---- */

int docknet_buffer_get(struct docknet *net, size_t capacity, struct docknet_buffer **buffer)
{
	size_t largest = DP_BUFFER_MAX;
	struct tx_buffer place;
	struct tx_user_buffer *b;

	tx_reclaim(net);
	if (capacity > largest)
		capacity = largest;
	while (!tx_buffer_get(net, capacity, &place)) {
		/* Rather a smaller one than none. */
		if (capacity <= DP_BUFFER_MIN) {
			net->tx.blocked = true;
			return -EAGAIN;
		}
		capacity /= 2;
	}
	b = docknet_heap_get(sizeof *b);
	if (!b) {
		tx_buffer_put(net, place);
		return -ENOMEM;
	}
	/* Never to its last byte: lwIP would join data that touches, and a descriptor stays within one buffer. */
	size_t usable = tx_buffer_size(net, place) - 64;

	*b = (struct tx_user_buffer){ .place = place, .capacity = usable };
	b->buffer.kind = BUFFER_TX;
	b->buffer.user.data = tx_buffer_data(net, place);
	b->buffer.user.length = capacity < usable ? capacity : usable;
	*buffer = &b->buffer.user;
	return 0;
}
