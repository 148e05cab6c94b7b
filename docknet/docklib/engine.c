/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - one round of work, waiting for more, and the thread that does nothing else. */
#include <errno.h>
#include <time.h>

#include "lwip/stats.h"
#include "lwip/timeouts.h"
#include "net.h"

/* Frames between two looks at everything else: ACKs should not wait longer. */
#define BURST 32u
/* A master's death is noticed after this long at the latest: an idle container wakes twice a second for it. */
#define ALIVE_NS 500000000u
/* Rounds without a look at the clock while frames keep coming: timers have 25 ms. */
#define ROUNDS_PER_CLOCK 16u

/* ---- calls from other threads ---- */

static void run_calls(struct docknet *net)
{
	struct engine *e = &net->engine;

	pthread_mutex_lock(&e->lock);
	atomic_store(&e->calls_waiting, false);
	while (e->first) {
		struct engine_call *c = e->first;

		e->first = c->next;
		if (!e->first)
			e->last = &e->first;
		pthread_mutex_unlock(&e->lock);
		c->result = c->call(c->argument);
		pthread_mutex_lock(&e->lock);
		c->done = true;
		pthread_cond_broadcast(&e->done);
	}
	pthread_mutex_unlock(&e->lock);
}

static bool interrupted(struct docknet *net)
{
	return net->engine.running && (atomic_load(&net->engine.calls_waiting) || atomic_load(&net->engine.stop));
}

/* ---- one round ---- */

void engine_kick(struct docknet *net)
{
	if (!net->submitted || !net->attached)
		return;
	net->submitted = false;
	if (dp_wake(&net->pipe, DP_WANT_FRAMES | DP_WANT_SPACE))
		net->stats.wakes++;
}

static unsigned round_of_work(struct docknet *net)
{
	unsigned frames;

	net->stats.polls++;
	if (interrupted(net))
		run_calls(net);
	tcp_flush_all(net);
	frames = rx_burst(net, BURST);
	if (frames == 0 || net->stats.polls % ROUNDS_PER_CLOCK == 0)
		sys_check_timeouts();
	tcp_flush_all(net);
	tx_reclaim(net);
	if (net->tx.blocked && dp_ring_reserve(&net->pipe.tx, 1) > 0) {
		net->tx.blocked = false;
		tcp_send_blocked(); /* may be blocked again */
	}
	if (net->rx.refill) {
		net->rx.refill = false;
		if (rx_refill(net))
			net->submitted = true;
	}
	engine_kick(net);
	return frames;
}

/* ---- waiting ---- */

static uint32_t wanted(const struct docknet *net)
{
	return DP_WANT_FRAMES | (net->tx.blocked ? DP_WANT_SPACE : 0);
}

/* work_waits looks once more, after a sleep was announced. */
static bool work_waits(struct docknet *net)
{
	struct dp_ring *tx = &net->pipe.tx;
	uint32_t before = tx->peer;

	if (interrupted(net) || dp_ring_peek(&net->pipe.rx, 1) > 0)
		return true;
	if (!net->tx.blocked)
		return false;
	(void)dp_ring_reserve(tx, tx->size);
	return tx->peer != before;
}

static uint64_t next_timer_ns(void)
{
	u32_t ms = sys_timeouts_sleeptime();

	return ms == SYS_TIMEOUTS_SLEEPTIME_INFINITE ? UINT64_MAX : (uint64_t)ms * 1000000u;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void nap(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

	nanosleep(&t, NULL);
}

/* sleep_until sleeps until there may be work, at most to the deadline. */
static void sleep_until(struct docknet *net, uint64_t deadline)
{
	uint64_t now = dp_now_ns();
	uint64_t most = smaller(next_timer_ns(), ALIVE_NS);

	if (deadline <= now)
		return;
	most = smaller(most, deadline - now);
	if (!net->attached) {
		nap(smaller(most, 10000000u)); /* nobody could wake us */
		return;
	}
	dp_sleep_prepare(&net->pipe, wanted(net));
	if (!work_waits(net)) {
		net->stats.sleeps++;
		dp_sleep(&net->pipe, most);
	}
	dp_sleep_cancel(&net->pipe);
	dp_publish_cpu(&net->pipe);
}

static void check_master(struct docknet *net)
{
	uint64_t now;

	if (!net->attached) {
		attachment_retry(net);
		return;
	}
	now = dp_now_ns();
	if (now - net->alive_ns < ALIVE_NS / 2)
		return;
	net->alive_ns = now;
	(void)attachment_alive(net);
}

int docknet_poll(struct docknet *net, int timeout_ms)
{
	uint64_t deadline = UINT64_MAX;
	unsigned idle_rounds = 0;

	if (net->armed) {
		net->armed = false;
		dp_sleep_cancel(&net->pipe);
		(void)attachment_alive(net); /* also takes the byte that woke us */
	}
	for (;;) {
		unsigned frames = round_of_work(net);

		if (net->lost)
			return net->lost;
		if (frames > 0) {
			dp_waiter_busy(&net->waiter);
			return (int)frames;
		}
		if (timeout_ms == 0) {
			if (net->stats.polls % 1024 == 0)
				check_master(net);
			return 0;
		}
		if (idle_rounds++ == 0) {
			dp_publish_cpu(&net->pipe);
			if (timeout_ms > 0)
				deadline = dp_now_ns() + (uint64_t)timeout_ms * 1000000u;
		}
		if (net->engine.running && atomic_load(&net->engine.stop))
			return 0;
		if (!net->attached || dp_waiter_idle(&net->waiter, dp_peer_cpu(&net->pipe))) {
			check_master(net);
			sleep_until(net, deadline);
		} else if (net->waiter.mode == DP_WAIT_BUSY && idle_rounds % 1024 == 0) {
			check_master(net);
		}
		if (timeout_ms > 0 && idle_rounds % 16 == 0 && dp_now_ns() >= deadline)
			return 0;
		if (timeout_ms > 0 && net->waiter.since_ns == 0 && dp_now_ns() >= deadline)
			return 0;
	}
}

int docknet_arm(struct docknet *net)
{
	if (!net->attached)
		return 1;
	engine_kick(net);
	net->armed = true;
	dp_sleep_prepare(&net->pipe, wanted(net) | DP_WAKE_SOCKET);
	return work_waits(net) ? 1 : 0;
}

int docknet_deadline_ms(struct docknet *net)
{
	uint64_t ns = smaller(next_timer_ns(), ALIVE_NS);

	return net->attached ? (int)((ns + 999999u) / 1000000u) : 10;
}

/* ---- the thread ---- */

static void *run(void *argument)
{
	struct docknet *net = argument;

	while (!atomic_load(&net->engine.stop) && docknet_poll(net, -1) >= 0)
		;
	/* Calls that come too late still get their answer. */
	while (!atomic_load(&net->engine.stop)) {
		run_calls(net);
		nap(1000000);
	}
	run_calls(net);
	return NULL;
}

int docknet_engine_start(struct docknet *net)
{
	struct engine *e = &net->engine;
	int err;

	if (e->running)
		return -EALREADY;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->done, NULL);
	e->first = NULL;
	e->last = &e->first;
	atomic_store(&e->stop, false);
	atomic_store(&e->calls_waiting, false);
	e->running = true;
	err = -pthread_create(&e->thread, NULL, run, net);
	if (err)
		e->running = false;
	return err;
}

int docknet_engine_stop(struct docknet *net)
{
	struct engine *e = &net->engine;

	if (!e->running)
		return -EINVAL;
	if (pthread_equal(pthread_self(), e->thread))
		return -EDEADLK;
	atomic_store(&e->stop, true);
	dp_sleep_interrupt(&net->pipe);
	pthread_join(e->thread, NULL);
	e->running = false;
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->done);
	return 0;
}

int docknet_engine_call(struct docknet *net, int (*call)(void *argument), void *argument)
{
	struct engine *e = &net->engine;
	struct engine_call c = { .call = call, .argument = argument };

	if (!e->running || pthread_equal(pthread_self(), e->thread))
		return call(argument);
	pthread_mutex_lock(&e->lock);
	*e->last = &c;
	e->last = &c.next;
	atomic_store(&e->calls_waiting, true);
	dp_sleep_interrupt(&net->pipe);
	while (!c.done)
		pthread_cond_wait(&e->done, &e->lock);
	pthread_mutex_unlock(&e->lock);
	return c.result;
}

/* ---- hooks and numbers ---- */

void docknet_set_stack_rx(struct docknet *net, docknet_stack_rx stack_rx, void *argument)
{
	net->stack_rx = stack_rx;
	net->stack_rx_argument = argument;
}

void docknet_stats(const struct docknet *net, struct docknet_stats *stats)
{
	*stats = net->stats;
	stats->tcp_retransmits = lwip_stats.mib2.tcpretranssegs - net->retransmits_before;
	stats->spins = net->waiter.spins;
	stats->yields = net->waiter.yields;
	stats->rx_bad += net->pipe.rx.bad;
	stats->tap_lost = tap_lost(net->tap);
}
