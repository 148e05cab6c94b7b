/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receive.c - from the receive ring to lwIP's pbufs. The master is not trusted: a descriptor is checked against the
 * container's own book, and headers are parsed in a private copy, which lwIP may also swap bytes in.
 */
#include <errno.h>

#include "heap.h"
#include "lwip/ip.h"
#include "lwip/ip6.h"
#include "lwip/prot/tcp.h"
#include "net.h"

/* Frames up to here are copied as a whole: their buffer is free again at once. */
#define WHOLE_MAX 256u
/* Enough for IPv4 or IPv6 and TCP with all options. */
#define HEADERS_MAX 128u
/* Buffers of a class that the master has at a time: few, so that the same ones come again while they are in the cache;
 * enough for the burst between two polls. Never more than half of them. */
#define LENT_BYTES (1024u * 1024)

int rx_pool_open(struct docknet *net)
{
	struct rx_pool *pool = &net->rx;

	for (unsigned c = 0; c < DP_CLASSES; c++) {
		uint32_t count = net->pipe.geometry.rx_class[c].count;

		pool->state[c] = docknet_heap_get_zeroed(count, 1);
		pool->free[c] = docknet_heap_get(count * sizeof *pool->free[c]);
		if (!pool->state[c] || !pool->free[c])
			return -ENOMEM;
		for (uint32_t i = 0; i < count; i++)
			pool->free[c][i] = count - 1 - i;
		pool->free_count[c] = count;
	}
	pool->refill = true;
	return 0;
}

void rx_pool_close(struct docknet *net)
{
	for (unsigned c = 0; c < DP_CLASSES; c++) {
		docknet_heap_put(net->rx.state[c]);
		docknet_heap_put(net->rx.free[c]);
	}
	net->rx = (struct rx_pool){ 0 };
}

static void give_back(struct docknet *net, unsigned class, uint32_t number)
{
	struct rx_pool *pool = &net->rx;

	pool->state[class][number] = RX_FREE;
	pool->held_count[class]--;
	pool->free[class][pool->free_count[class]++] = number;
	pool->refill = true;
}

void rx_recall(struct docknet *net)
{
	for (unsigned c = 0; c < DP_CLASSES; c++) {
		for (uint32_t i = 0; i < net->pipe.geometry.rx_class[c].count; i++) {
			if (net->rx.state[c][i] == RX_LENT) {
				net->rx.state[c][i] = RX_FREE;
				net->rx.free[c][net->rx.free_count[c]++] = i;
			}
		}
	}
	net->rx.refill = true;
}

static uint32_t lend_target(const struct dp_class *class)
{
	uint32_t n = LENT_BYTES / class->size;

	if (n > class->count / 2)
		n = class->count / 2;
	return n > 0 ? n : 1;
}

bool rx_refill(struct docknet *net)
{
	struct rx_pool *pool = &net->rx;
	bool lent = false;

	for (unsigned c = 0; c < DP_CLASSES; c++) {
		struct dp_ring *fill = &net->pipe.fill[c];
		uint32_t target = lend_target(&net->pipe.geometry.rx_class[c]);
		uint32_t in_ring = dp_ring_in_use(fill);
		uint32_t n = 0;

		/* Half empty: a store and a cache line for many buffers, not for each. */
		if (in_ring > target / 2)
			continue;
		while (in_ring + n < target && pool->free_count[c] > 0) {
			uint32_t number = pool->free[c][--pool->free_count[c]];

			pool->state[c][number] = RX_LENT;
			atomic_store_explicit(&net->pipe.fill_entry[c][dp_ring_at(fill, n)], number,
					      memory_order_relaxed);
			n++;
		}
		if (n > 0) {
			dp_ring_submit(fill, n);
			lent = true;
		}
	}
	return lent;
}

/* ---- from descriptor to pbuf ---- */

static void free_pbuf(struct pbuf *p)
{
	struct rx_buffer *b = rx_buffer_of(p);

	if (b->shared && docknet_current)
		give_back(docknet_current, b->class, b->number);
	docknet_heap_put(b);
}

struct rx_buffer *rx_buffer_of(struct pbuf *p)
{
	return (struct rx_buffer *)((uint8_t *)p - offsetof(struct rx_buffer, custom.pbuf));
}

static struct rx_buffer *new_buffer(uint32_t bytes)
{
	struct rx_buffer *b = docknet_heap_get(sizeof *b + bytes);

	if (b) {
		memset(b, 0, sizeof *b);
		b->custom.custom_free_function = free_pbuf;
	}
	return b;
}

static struct pbuf *wrap(struct rx_buffer *b, void *data, uint32_t length)
{
	return pbuf_alloced_custom(PBUF_RAW, (u16_t)length, PBUF_REF, &b->custom, data, (u16_t)length);
}

/* header_length finds where the payload of a TCP or UDP packet begins; all of a packet that is neither. */
static uint32_t header_length(const uint8_t *head, uint32_t length)
{
	uint32_t ip = 40, next;

	if (length < 40)
		return length;
	if (head[0] >> 4 == 4) {
		ip = (head[0] & 15u) * 4u;
		next = head[9];
	} else {
		next = head[6];
	}
	if (next == IP_PROTO_UDP)
		ip += 8;
	else if (next == IP_PROTO_TCP && ip + 13 <= length)
		ip += (head[ip + 12] >> 4) * 4u;
	else
		return length;
	return ip < length ? ip : length;
}

/* A piece of a frame, checked: in a buffer that the master had from us, and has no longer. */
struct piece {
	const uint8_t *data;
	uint32_t length;
	unsigned class;
	uint32_t number;
	bool more;
};

/* take checks a descriptor; false: it is none of ours, or not the master's to give. */
static bool take(struct docknet *net, const struct dp_desc *desc, struct piece *piece)
{
	const struct dp_layout *l = &net->pipe.layout;
	unsigned c = DP_CLASSES - 1;

	if (desc->offset < l->rx_begin || desc->offset >= l->rx_end || desc->length == 0 ||
	    (desc->flags & ~DP_DESC_FLAGS))
		return false;
	while (desc->offset < l->rx_class[c])
		c--;

	const struct dp_class *class = &net->pipe.geometry.rx_class[c];
	uint64_t at = desc->offset - l->rx_class[c];
	uint64_t number = at / class->size;

	if (number >= class->count || at % class->size + desc->length > class->size)
		return false;
	if (net->rx.state[c][number] != RX_LENT)
		return false;
	net->rx.state[c][number] = RX_HELD;
	net->rx.held_count[c]++;
	net->rx.refill = true;
	*piece = (struct piece){ net->pipe.base + desc->offset, desc->length, c, (uint32_t)number,
				 (desc->flags & DP_DESC_MORE) != 0 };
	return true;
}

/* scarce: when most of a class is held by applications, the rest must keep the pipe going. */
static bool scarce(struct docknet *net, unsigned class)
{
	uint32_t count = net->pipe.geometry.rx_class[class].count;

	return net->rx.held_count[class] > count - count / 4;
}

/* rest_pbuf makes a pbuf of the piece's bytes from skip on: where they are, or copied. */
static struct pbuf *rest_pbuf(struct docknet *net, const struct piece *piece, uint32_t skip)
{
	uint32_t length = piece->length - skip;
	bool copy = scarce(net, piece->class);
	struct rx_buffer *b = new_buffer(copy ? length : 0);

	if (!b)
		return NULL;
	if (copy) {
		memcpy(b->bytes, piece->data + skip, length);
		give_back(net, piece->class, piece->number);
		net->stats.rx_copied++;
		return wrap(b, b->bytes, length);
	}
	b->shared = true;
	b->class = (uint8_t)piece->class;
	b->number = piece->number;
	return wrap(b, (uint8_t *)piece->data + skip, length);
}

/* head_pbuf makes a pbuf of a frame's first piece: headers private, payload wherever. */
static struct pbuf *head_pbuf(struct docknet *net, const struct piece *piece)
{
	bool whole = piece->length <= WHOLE_MAX;
	uint32_t copied = whole ? piece->length : HEADERS_MAX;
	struct rx_buffer *b = new_buffer(whole ? WHOLE_MAX : HEADERS_MAX);
	struct pbuf *head, *rest;

	if (!b)
		goto fail;
	memcpy(b->bytes, piece->data, copied);
	if (whole) {
		give_back(net, piece->class, piece->number);
		return wrap(b, b->bytes, copied);
	}
	copied = header_length(b->bytes, copied);
	head = wrap(b, b->bytes, copied);
	rest = rest_pbuf(net, piece, copied);
	if (!rest) {
		pbuf_free(head);
		goto fail;
	}
	pbuf_cat(head, rest);
	return head;
fail:
	give_back(net, piece->class, piece->number);
	return NULL;
}

/* next_frame takes one frame out of the ring. used: ring entries. NULL: it was bad, or there is no memory. */
static struct pbuf *next_frame(struct docknet *net, uint32_t ready, uint32_t *used)
{
	struct pbuf *frame = NULL;
	uint32_t total = 0, n = 0;
	struct piece piece = { .more = true };

	while (piece.more && n < ready && n < DP_FRAME_SEGMENTS) {
		const struct dp_desc desc = dp_slot_read(&net->pipe.rx_slot[dp_ring_at(&net->pipe.rx, n++)]);
		struct pbuf *p;

		if (!take(net, &desc, &piece)) {
			net->stats.rx_bad++;
			goto bad;
		}
		total += piece.length;
		if (total > DP_FRAME_MAX) {
			give_back(net, piece.class, piece.number);
			net->stats.rx_bad++;
			goto bad;
		}
		p = frame ? rest_pbuf(net, &piece, 0) : head_pbuf(net, &piece);
		if (!p) {
			if (frame) /* head_pbuf has given it back itself */
				give_back(net, piece.class, piece.number);
			goto bad;
		}
		if (frame)
			pbuf_cat(frame, p);
		else
			frame = p;
	}
	*used = n;
	if (!piece.more)
		return frame;
	net->stats.rx_bad++; /* a frame without an end */
bad:
	*used = n;
	if (frame)
		pbuf_free(frame);
	return NULL;
}

unsigned rx_burst(struct docknet *net, unsigned max)
{
	unsigned frames = 0;

	while (frames < max) {
		uint32_t used, ready = dp_ring_peek(&net->pipe.rx, DP_FRAME_SEGMENTS);
		struct pbuf *p;

		if (ready == 0)
			break;
		p = next_frame(net, ready, &used);
		dp_ring_release(&net->pipe.rx, used);
		net->submitted = true; /* room in the ring */
		frames++;
		if (!p)
			continue;
		net->stats.rx_frames++;
		net->stats.rx_bytes += p->tot_len;
		if (net->tap)
			tap_packet(net->tap, p, false);
		if (net->stack_rx && !net->stack_rx(net->stack_rx_argument, p->payload, p->len, p->tot_len)) {
			pbuf_free(p);
			continue;
		}
		if (net->netif.input(p, &net->netif) != ERR_OK)
			pbuf_free(p);
	}
	return frames;
}

/* ---- the user's buffers ---- */

void docknet_buffer_release(struct docknet_buffer *user)
{
	struct buffer *buffer = (struct buffer *)user;

	if (!user)
		return;
	if (buffer->kind == BUFFER_TX) {
		if (docknet_current)
			tx_buffer_put(docknet_current, ((struct tx_user_buffer *)buffer)->place);
		docknet_heap_put(buffer);
		return;
	}

	struct rx_buffer *b = (struct rx_buffer *)buffer;
	struct docknet_tcp *owner = b->owner;
	size_t window = b->window;

	pbuf_free(&b->custom.pbuf);
	if (owner)
		tcp_buffer_released(owner, window);
}
