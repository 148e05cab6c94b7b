// SPDX-License-Identifier: Apache-2.0
#include "deliver.h"

#include "forward.h"

#include <errno.h>
#include <unistd.h>

static struct dp_pipe *region_of(const struct pipe *pipe)
{
	return atomic_load_explicit(&pipe->region, memory_order_acquire);
}

void deliver_condemn(struct master *m, struct pipe *pipe)
{
	const uint64_t one = 1;

	if (!atomic_exchange_explicit(&pipe->condemned, true, memory_order_relaxed))
		(void)!write(m->all->condemned_fd, &one, sizeof(one));
}

void deliver_wake(struct pipe *to)
{
	struct dp_pipe *region = region_of(to);

	if (region)
		(void)dp_wake(region, DP_WANT_FRAMES);
}

/* How far the container has come in taking frames and giving buffers. */
static uint32_t progress(const struct dp_pipe *region)
{
	uint32_t sum = region->rx.peer;

	for (unsigned int i = 0; i < DP_CLASSES; i++)
		sum += region->fill[i].peer;
	return sum;
}

static bool impossible_index(const struct dp_pipe *region)
{
	uint64_t bad = region->rx.bad;

	for (unsigned int i = 0; i < DP_CLASSES; i++)
		bad += region->fill[i].bad;
	return bad > 0;
}

/* There was no room. Whether the receiver may be waited for. Under receive_lock. */
static enum delivery no_room(struct master *m, struct pipe *to, const struct dp_pipe *region)
{
	uint64_t now = dp_now_ns();
	uint32_t reached = progress(region);

	if (impossible_index(region)) {
		deliver_condemn(m, to);
		return DELIVER_DETACHED;
	}
	if (to->blocked_since_ns == 0 || to->blocked_progress != reached) {
		to->blocked_since_ns = now;
		to->blocked_progress = reached;
	}
	return now - to->blocked_since_ns > STALL_NS ? DELIVER_STALLED : DELIVER_LATER;
}

static void note_delivered(struct pipe *to, uint32_t length)
{
	to->blocked_since_ns = 0;
	counter_add(&to->stats.rx_frames, 1);
	counter_add(&to->stats.rx_bytes, length);
}

/* Notes that a frame has to wait for this pipe. */
static enum delivery wait_for(struct master *m, struct pipe *to)
{
	m->blocked = true;
	if (to->master == m->index)
		atomic_store_explicit(&to->in_the_way, true, memory_order_relaxed);
	else
		m->blocked_abroad = true; /* its container announces room to its own master only */
	return DELIVER_LATER;
}

enum delivery deliver_local(struct master *m, struct pipe *to, const struct dp_frame *frame, const uint8_t *head,
			    uint32_t head_length)
{
	struct dp_pipe *region = region_of(to);
	enum delivery result = DELIVERED;

	if (!region || atomic_load_explicit(&to->condemned, memory_order_relaxed)) {
		/* After a restart of the daemon containers come back one after the other. */
		if (to->expected_until_ns != 0 && dp_now_ns() < to->expected_until_ns) {
			m->blocked = m->blocked_abroad = true;
			return DELIVER_LATER;
		}
		return DELIVER_DETACHED;
	}
	/* Never wait for the lock: its holder may have been preempted, and other pipes' frames can go on. */
	if (!rte_spinlock_trylock(&to->receive_lock)) {
		m->blocked = m->blocked_abroad = true;
		return DELIVER_LATER;
	}
	/* What came from the NIC before goes first: room is rare. */
	if (to->backlog_count == 0 && dp_frame_deliver(region, frame, head, head_length) == 0)
		note_delivered(to, frame->length);
	else
		result = no_room(m, to, region);
	rte_spinlock_unlock(&to->receive_lock);
	if (result == DELIVER_LATER)
		deliver_wake(to); /* it may sleep over a full ring */
	return result == DELIVER_LATER ? wait_for(m, to) : result;
}

static bool deliver_mbuf(struct pipe *to, struct dp_pipe *region, struct rte_mbuf *m)
{
	struct dp_frame frame = {
		.segment = { { rte_pktmbuf_mtod(m, const uint8_t *), m->data_len } },
		.segments = 1,
		.length = m->data_len,
	};

	if (dp_frame_deliver(region, &frame, NULL, 0) != 0)
		return false;
	note_delivered(to, frame.length);
	rte_pktmbuf_free(m);
	return true;
}

/* Under receive_lock. Returns how many frames left the backlog. */
static uint32_t drain_backlog(struct master *m, struct pipe *to)
{
	struct dp_pipe *region = region_of(to);
	uint32_t before = to->backlog_count;

	while (to->backlog_count > 0) {
		struct rte_mbuf *frame = to->backlog[to->backlog_head];

		if (!region || (!deliver_mbuf(to, region, frame) && no_room(m, to, region) != DELIVER_LATER)) {
			counter_add(&to->stats.rx_nic_full, 1);
			rte_pktmbuf_free(frame);
		} else if (to->blocked_since_ns != 0) {
			break;
		}
		to->backlog_head = (to->backlog_head + 1) % PIPE_BACKLOG;
		to->backlog_count--;
	}
	if (before > 0 && to->backlog_count == 0)
		atomic_fetch_sub_explicit(&m->all->nic->backlogged, 1, memory_order_relaxed);
	return before - to->backlog_count;
}

void deliver_from_nic(struct master *m, struct pipe *to, struct rte_mbuf *frame)
{
	struct dp_pipe *region = region_of(to);

	rte_spinlock_lock(&to->receive_lock);
	if (region && to->backlog_count == 0 && deliver_mbuf(to, region, frame)) {
		frame = NULL;
	} else if (region && to->backlog_count < PIPE_BACKLOG && no_room(m, to, region) == DELIVER_LATER) {
		if (to->backlog_count == 0)
			atomic_fetch_add_explicit(&m->all->nic->backlogged, 1, memory_order_relaxed);
		to->backlog[(to->backlog_head + to->backlog_count++) % PIPE_BACKLOG] = frame;
		frame = NULL;
	} else {
		counter_add(&to->stats.rx_nic_full, 1);
	}
	rte_spinlock_unlock(&to->receive_lock);
	rte_pktmbuf_free(frame);
}

uint32_t deliver_backlogs(struct master *m, struct view *view)
{
	uint32_t work = 0;

	if (atomic_load_explicit(&m->all->nic->backlogged, memory_order_relaxed) == 0)
		return 0;
	for (uint32_t i = 0; i < view->count; i++) {
		struct pipe *to = view->pipe[i];

		if (to->backlog_count == 0 || !rte_spinlock_trylock(&to->receive_lock))
			continue;
		work += drain_backlog(m, to);
		rte_spinlock_unlock(&to->receive_lock);
		deliver_wake(to);
		if (to->backlog_count > 0)
			(void)wait_for(m, to);
	}
	return work;
}
