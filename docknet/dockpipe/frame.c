/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - the master's reading and writing of frames. The other side is hostile: a copy is checked, and only it is used. */
#include <errno.h>

#include "frame.h"

/* Offset and length come from the container. 64 bits, or their sum would wrap. */
static bool tx_desc_valid(const struct dp_pipe *pipe, const struct dp_desc *desc)
{
	uint64_t end = (uint64_t)desc->offset + desc->length;

	return desc->length > 0 && desc->offset >= pipe->layout.tx_begin && end <= pipe->layout.tx_end &&
	       (desc->flags & ~DP_DESC_FLAGS) == 0 && desc->reserved16 == 0 && desc->reserved32 == 0;
}

int dp_frame_peek(struct dp_pipe *pipe, struct dp_frame *frame)
{
	uint32_t ready = dp_ring_peek(&pipe->tx, DP_FRAME_SEGMENTS);
	uint32_t used = 0;

	frame->segments = 0;
	frame->length = 0;
	while (used < ready) {
		const struct dp_desc desc = dp_slot_read(&pipe->tx_slot[dp_ring_at(&pipe->tx, used)]);

		used++;
		if (!tx_desc_valid(pipe, &desc) || frame->length + desc.length > DP_FRAME_MAX)
			break;
		if (used == 1) {
			frame->flags = desc.flags & DP_DESC_CSUM_ELIDED;
			frame->gso_size = desc.gso_size;
		}
		frame->segment[frame->segments++] = (struct dp_segment){ pipe->base + desc.offset, desc.length };
		frame->length += desc.length;
		if (!(desc.flags & DP_DESC_MORE)) {
			frame->descs = used;
			return 1;
		}
	}
	if (used == 0)
		return 0;
	/* A bad descriptor, or a frame without an end: all of a frame is submitted at once, so there won't be one. */
	pipe->bad_descs++;
	dp_ring_release(&pipe->tx, used);
	return -EBADMSG;
}

void dp_frame_release(struct dp_pipe *pipe, const struct dp_frame *frame)
{
	dp_ring_release(&pipe->tx, frame->descs);
}

uint32_t dp_frame_copy(const struct dp_frame *frame, void *to, uint32_t length)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < frame->segments && done < length; i++) {
		uint32_t n = frame->segment[i].length;

		if (n > length - done)
			n = length - done;
		memcpy((uint8_t *)to + done, frame->segment[i].data, n);
		done += n;
	}
	return done;
}

/* A number out of a fill ring is the container's: bad ones are counted and passed over, at most a ringful of them. */
static bool take_from_class(struct dp_pipe *pipe, unsigned class, uint32_t *offset)
{
	const struct dp_class *c = &pipe->geometry.rx_class[class];
	struct dp_ring *fill = &pipe->fill[class];

	for (uint32_t tries = 0; tries < c->count && dp_ring_peek(fill, 1) == 1; tries++) {
		uint32_t number =
			atomic_load_explicit(&pipe->fill_entry[class][dp_ring_at(fill, 0)], memory_order_relaxed);

		dp_ring_release(fill, 1);
		if (number < c->count) {
			*offset = (uint32_t)(pipe->layout.rx_class[class] + (uint64_t)number * c->size);
			return true;
		}
		pipe->bad_descs++;
	}
	return false;
}

int dp_buffer_take(struct dp_pipe *pipe, uint32_t length, uint32_t *offset)
{
	for (unsigned class = 0; class < DP_CLASSES; class ++) {
		if (pipe->geometry.rx_class[class].size >= length && take_from_class(pipe, class, offset))
			return 0;
	}
	return -EAGAIN;
}

bool dp_frame_room(struct dp_pipe *pipe)
{
	return dp_ring_reserve(&pipe->rx, 1) == 1;
}

void dp_frame_submit(struct dp_pipe *pipe, uint32_t offset, uint32_t length, uint16_t flags)
{
	const struct dp_desc desc = { .offset = offset, .length = (uint16_t)length, .flags = flags };

	dp_slot_write(&pipe->rx_slot[dp_ring_at(&pipe->rx, 0)], &desc);
	dp_ring_submit(&pipe->rx, 1);
}

/* copy_rest copies all of the frame but its first skip bytes. */
static void copy_rest(const struct dp_frame *frame, uint8_t *to, uint32_t skip)
{
	for (uint32_t i = 0; i < frame->segments; i++) {
		const struct dp_segment *s = &frame->segment[i];

		if (skip >= s->length) {
			skip -= s->length;
			continue;
		}
		memcpy(to, s->data + skip, s->length - skip);
		to += s->length - skip;
		skip = 0;
	}
}

int dp_frame_deliver(struct dp_pipe *pipe, const struct dp_frame *frame, const void *head, uint32_t head_length)
{
	uint32_t offset;

	if (head_length > frame->length)
		head_length = frame->length;
	if (!dp_frame_room(pipe) || dp_buffer_take(pipe, frame->length, &offset))
		return -EAGAIN;
	if (head_length > 0)
		memcpy(pipe->base + offset, head, head_length);
	copy_rest(frame, pipe->base + offset + head_length, head_length);
	dp_frame_submit(pipe, offset, frame->length, frame->flags);
	return 0;
}
