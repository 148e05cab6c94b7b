/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame.h - the master's side of a pipe: frames out of a transmit ring, frames into a receive ring. No policy: who
 * may send what, and where it goes, is decided between the two.
 */
#ifndef DOCKPIPE_FRAME_H
#define DOCKPIPE_FRAME_H

#include "pipe.h"

struct dp_segment {
	const uint8_t *data;
	uint32_t length;
};

/* A frame in a transmit ring: checked, and still in memory that its sender may write to. Copy what you decide on. */
struct dp_frame {
	struct dp_segment segment[DP_FRAME_SEGMENTS];
	uint32_t segments;
	uint32_t length; /* bytes of all segments, 1 to DP_FRAME_MAX */
	uint32_t descs;	 /* ring entries, for dp_frame_release */
	uint16_t flags;	 /* DP_DESC_CSUM_ELIDED or 0 */
	uint16_t gso_size;
};

/* Look at the next frame of the pipe's transmit ring. 1: it is in *frame. 0: none is there. -EBADMSG: what is
 * there is no frame; it has been counted and released. Bounded work in any case. */
int dp_frame_peek(struct dp_pipe *pipe, struct dp_frame *frame);

/* Give a peeked frame's entries back: its buffers are the sender's again. Then dp_wake(pipe, DP_WANT_SPACE), once a burst. */
void dp_frame_release(struct dp_pipe *pipe, const struct dp_frame *frame);

/* Take a receive buffer of at least length bytes, of the smallest class that has one. Its offset is in *offset; it
 * must then be submitted by dp_frame_submit: there is no way back. -EAGAIN: none. Bounded work. */
int dp_buffer_take(struct dp_pipe *pipe, uint32_t length, uint32_t *offset);

/* Submit a frame of length bytes in one receive buffer. Needs room, which dp_frame_room has promised. */
void dp_frame_submit(struct dp_pipe *pipe, uint32_t offset, uint32_t length, uint16_t flags);

/* Whether the receive ring has an entry free. */
bool dp_frame_room(struct dp_pipe *pipe);

/* Copy a frame into the pipe's receive ring: room, buffer, copy, submit. The first head_length bytes are taken from head
 * instead of the frame: the copy that addresses were decided on. -EAGAIN: no room now, nothing happened. Then
 * dp_wake(pipe, DP_WANT_FRAMES), once a burst. */
int dp_frame_deliver(struct dp_pipe *pipe, const struct dp_frame *frame, const void *head, uint32_t head_length);

/* Copy up to length bytes from the frame's start; returns how many. */
uint32_t dp_frame_copy(const struct dp_frame *frame, void *to, uint32_t length);

#endif
