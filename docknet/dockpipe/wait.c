/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - see wait.h for the protocol. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wait.h"

/* Two cores exchange a message in 0.2 to 0.5 us; a futex costs 7. Waiting three times as long as sleeping would take
 * finds nearly every answer that is on its way. */
#define WAIT_NS 20000u
/* Pure spinning is for a peer that answers at once. After that somebody may need this CPU to go on: the master, a third
 * program, or the peer itself, whose published CPU is old news. A yield with nobody waiting costs 0.3 us. */
#define SPIN_NS 2000u
/* Yields that take this long, as an average of the last ones, let third programs run and not the peer, which takes a
 * microsecond or two for an answer. More of them would take as long: somebody who sleeps is put before such programs when he
 * is woken, somebody who yields behind them. So the next waits for a peer on our own CPU end in sleep at once; then yielding
 * is tried again. For a peer elsewhere a yield is a pause, and a sleep would cost both CPUs more. */
#define YIELD_SLOW_NS	  25000u
#define YIELD_AVERAGE	  8u
#define WAITS_UNTIL_YIELD 64u
/* Looking at the clock costs as much as several looks at a ring. */
#define SPINS_PER_CLOCK 16u

uint64_t dp_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int dp_wait_mode_parse(const char *text, enum dp_wait_mode *mode)
{
	static const char *const names[] = { "adaptive", "busy", "sleep" };

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*mode = (enum dp_wait_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

static uint32_t this_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? DP_CPU_UNKNOWN : (uint32_t)cpu;
}

void dp_publish_cpu(struct dp_pipe *pipe)
{
	uint32_t cpu = this_cpu();

	if (atomic_load_explicit(&pipe->me->cpu, memory_order_relaxed) != cpu)
		atomic_store_explicit(&pipe->me->cpu, cpu, memory_order_relaxed);
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

static bool adaptive_idle(struct dp_waiter *w, uint32_t peer_cpu)
{
	uint64_t before, after;

	if (w->since_ns == 0) {
		w->since_ns = dp_now_ns();
		w->steps = 0;
		w->cpu = this_cpu();
		w->spinning = w->cpu != peer_cpu;
		if (w->no_yield > 0 && w->cpu == peer_cpu && --w->no_yield == 0)
			w->yield_ns = YIELD_SLOW_NS * 3 / 4; /* one slow yield more is enough */
	}
	if (w->spinning) {
		w->spins++;
		pause_cpu();
		if (++w->steps % SPINS_PER_CLOCK == 0)
			w->spinning = dp_now_ns() - w->since_ns < SPIN_NS;
		return false;
	}
	if (w->no_yield > 0 && w->cpu == peer_cpu)
		return true;
	w->yields++;
	before = dp_now_ns();
	sched_yield();
	after = dp_now_ns();
	w->yield_ns += (after - before) / YIELD_AVERAGE;
	w->yield_ns -= w->yield_ns / YIELD_AVERAGE;
	if (w->yield_ns > YIELD_SLOW_NS && w->no_yield == 0)
		w->no_yield = WAITS_UNTIL_YIELD;
	return after - w->since_ns > WAIT_NS;
}

bool dp_waiter_idle(struct dp_waiter *w, uint32_t peer_cpu)
{
	bool sleep = true;

	if (w->mode == DP_WAIT_BUSY) {
		w->spins++;
		pause_cpu();
		return false;
	}
	if (w->mode == DP_WAIT_ADAPTIVE)
		sleep = adaptive_idle(w, peer_cpu);
	if (sleep) {
		w->sleeps++;
		w->since_ns = 0;
	}
	return sleep;
}

void dp_sleep_prepare(struct dp_pipe *pipe, uint32_t want)
{
	atomic_store_explicit(&pipe->me->want, want, memory_order_relaxed);
	/* Pairs with the fence in dp_wake. */
	atomic_thread_fence(memory_order_seq_cst);
}

void dp_sleep_cancel(struct dp_pipe *pipe)
{
	atomic_store_explicit(&pipe->me->want, 0, memory_order_relaxed);
}

void dp_sleep(struct dp_pipe *pipe, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / 1000000000u),
				    .tv_nsec = (long)(timeout_ns % 1000000000u) };
	uint32_t bell = atomic_load_explicit(&pipe->me->bell, memory_order_acquire);

	/* The waker clears want before it rings. If it has cleared it already, it may have rung before we looked. */
	if (atomic_load_explicit(&pipe->me->want, memory_order_acquire) == 0)
		return;
	syscall(SYS_futex, &pipe->me->bell, FUTEX_WAIT, bell, &timeout, NULL, 0);
}

void dp_sleep_interrupt(struct dp_pipe *pipe)
{
	/* In this order: see dp_sleep. */
	atomic_store_explicit(&pipe->me->want, 0, memory_order_release);
	atomic_fetch_add_explicit(&pipe->me->bell, 1, memory_order_release);
	syscall(SYS_futex, &pipe->me->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Neither blocks: a futex wake-up never does, and an eventfd's counter that is full means that the master has been
 * told 2^64 times; the flag keeps a container from waiting for that. */
static void ring_bell(struct dp_pipe *pipe, uint32_t wanted)
{
	if (pipe->role == DP_CONTAINER) {
		const uint64_t one = 1;

		(void)!write(pipe->bell_fd, &one, sizeof one);
	} else if (wanted & DP_WAKE_SOCKET) {
		(void)send(pipe->bell_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else {
		atomic_fetch_add_explicit(&pipe->peer->bell, 1, memory_order_release);
		syscall(SYS_futex, &pipe->peer->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

bool dp_wake(struct dp_pipe *pipe, uint32_t what)
{
	uint32_t wanted;

	/* Pairs with the fence in dp_sleep_prepare: what we submitted is visible before we look who sleeps. */
	atomic_thread_fence(memory_order_seq_cst);
	wanted = atomic_load_explicit(&pipe->peer->want, memory_order_relaxed);
	if (!(wanted & what & DP_WANT_MASK))
		return false;
	/* One waker is enough, and there is only one: this thread. The exchange keeps a sleeper's next wish. */
	wanted = atomic_exchange_explicit(&pipe->peer->want, 0, memory_order_acq_rel);
	if (!(wanted & DP_WANT_MASK))
		return false;
	ring_bell(pipe, wanted);
	return true;
}
