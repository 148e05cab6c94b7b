/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - waiting for the other side, and waking it.
 *
 * A sleeper says what it waits for, looks once more, and sleeps; a waker submits, and looks whether somebody sleeps:
 *
 *   dp_sleep_prepare(pipe, want)                dp_ring_submit / dp_ring_release
 *     want = ...; full fence                    dp_wake(pipe, what): full fence; want?
 *   nothing there? -> dp_sleep / epoll_wait       -> want = 0, bell + 1, futex wake or eventfd
 *   dp_sleep_cancel(pipe)
 *
 * Of the two fences one comes first, so either the sleeper sees the entry or the waker sees the sleeper.
 */
#ifndef DOCKPIPE_WAIT_H
#define DOCKPIPE_WAIT_H

#include "pipe.h"

enum dp_wait_mode {
	DP_WAIT_ADAPTIVE, /* spin while that helps, then sleep */
	DP_WAIT_BUSY,	  /* never sleep */
	DP_WAIT_SLEEP,	  /* sleep at once */
};

/* "adaptive", "busy" or "sleep"; -EINVAL for anything else. */
int dp_wait_mode_parse(const char *text, enum dp_wait_mode *mode);

/* A side's decision how to wait. Zero but for the mode before its first use. */
struct dp_waiter {
	enum dp_wait_mode mode;
	uint64_t since_ns; /* when idling began; 0: not idle */
	uint32_t cpu;	   /* where we ran when idling began */
	uint32_t steps;
	bool spinning;			/* still hoping for an answer at once */
	uint64_t yield_ns;		/* what yields took of late */
	uint32_t no_yield;		/* so many waits will do without them */
	uint64_t spins, yields, sleeps; /* statistics */
};

/* There was work. */
static inline void dp_waiter_busy(struct dp_waiter *w)
{
	w->since_ns = 0;
}

/* There was no work: spins or yields for a moment and returns false: look again; or true: it is time to sleep. peer_cpu
 * is where the side that would give work runs: the peer's published cpu, or DP_CPU_UNKNOWN. A peer on our own CPU cannot
 * run while we spin. */
bool dp_waiter_idle(struct dp_waiter *w, uint32_t peer_cpu);

/* Publish where we run. Cheap: writes only when that has changed. */
void dp_publish_cpu(struct dp_pipe *pipe);

/* The peer's published CPU. */
static inline uint32_t dp_peer_cpu(const struct dp_pipe *pipe)
{
	return atomic_load_explicit(&pipe->peer->cpu, memory_order_relaxed);
}

/* Whether the peer asks to be woken: it sleeps or is about to. */
static inline bool dp_peer_sleeps(const struct dp_pipe *pipe)
{
	return atomic_load_explicit(&pipe->peer->want, memory_order_relaxed) != 0;
}

/* Announce a sleep that ends with any of want (DP_WANT_*, for a container with DP_WAKE_SOCKET if it will poll the
 * attach socket). Look at the rings once more afterwards. */
void dp_sleep_prepare(struct dp_pipe *pipe, uint32_t want);

/* Awake again, or no sleep after all. */
void dp_sleep_cancel(struct dp_pipe *pipe);

/* Container: sleep on the futex, at most timeout_ns. Only between prepare and cancel. Returns early without harm. */
void dp_sleep(struct dp_pipe *pipe, uint64_t timeout_ns);

/* From any thread of this process: end this side's dp_sleep, or the one that it is about to begin. */
void dp_sleep_interrupt(struct dp_pipe *pipe);

/* Wake the peer if it sleeps for any of what. Never blocks. Returns whether a system call was made. */
bool dp_wake(struct dp_pipe *pipe, uint32_t what);

uint64_t dp_now_ns(void); /* CLOCK_MONOTONIC */

#endif
