// SPDX-License-Identifier: Apache-2.0
#include "master.h"

#include "forward.h"
#include "log.h"

#include <errno.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A NIC without anything to sleep on is looked at this often: two hundred times a second cost 0.1% of a core. */
#define NIC_POLL_MS 5
/* Room that nobody announces (another master's pipe, the NIC's ring) is looked for this often. */
#define ROOM_POLL_MS 1
/* A blocked sender is looked after this often, so that a receiver that has stopped is noticed (STALL_NS). */
#define STALL_POLL_MS 10

static struct dp_pipe *region_of(const struct pipe *pipe)
{
	return atomic_load_explicit(&pipe->region, memory_order_acquire);
}

static bool is_mine(const struct master *m, const struct pipe *pipe)
{
	return pipe->master == m->index;
}

static uint32_t turn(struct master *m, struct view *view)
{
	struct nic *nic = m->all->nic;
	uint32_t work = 0;

	m->blocked = m->blocked_abroad = false;
	for (uint32_t i = 0; i < view->count; i++) {
		if (is_mine(m, view->pipe[i]))
			work += forward_from_pipe(m, view, view->pipe[i]);
	}
	if (nic->present) {
		for (uint16_t q = (uint16_t)m->index; q < nic->rx_queues; q = (uint16_t)(q + m->all->count))
			work += forward_from_nic(m, view, q);
		work += nic_flush(nic, m->index);
		if (nic->transmit[m->index].count > 0)
			m->blocked = m->blocked_abroad = true;
	}
	return work;
}

/* Announces sleep to all containers; returns whether one of them has put something into its ring meanwhile. */
static bool announce_sleep(struct master *m, struct view *view)
{
	bool work = false;

	for (uint32_t i = 0; i < view->count; i++) {
		struct pipe *pipe = view->pipe[i];
		struct dp_pipe *region = is_mine(m, pipe) ? region_of(pipe) : NULL;
		bool in_the_way;

		if (!region)
			continue;
		in_the_way = atomic_exchange_explicit(&pipe->in_the_way, false, memory_order_relaxed);
		dp_sleep_prepare(region, DP_WANT_FRAMES | (in_the_way ? DP_WANT_SPACE : 0));
		/* A blocked frame stays in its ring: that is no reason to stay awake. */
		work |= !m->blocked && dp_ring_peek(&region->tx, 1) > 0;
	}
	return work;
}

static void end_sleep(struct master *m, struct view *view)
{
	for (uint32_t i = 0; i < view->count; i++) {
		struct dp_pipe *region = is_mine(m, view->pipe[i]) ? region_of(view->pipe[i]) : NULL;

		if (region)
			dp_sleep_cancel(region);
	}
}

static int sleep_limit_ms(const struct master *m)
{
	const struct nic *nic = m->all->nic;

	if (m->blocked_abroad)
		return ROOM_POLL_MS;
	if (m->blocked)
		return STALL_POLL_MS;
	return nic->present && nic->fds == 0 ? NIC_POLL_MS : -1;
}

static void sleep_until_work(struct master *m, struct view *view)
{
	struct epoll_event events[16];
	int limit_ms = sleep_limit_ms(m);
	bool work;

	nic_arm(m->all->nic);
	work = announce_sleep(m, view);
	/* While blocked, one more look after the announcement finds room that came just before it. */
	if (m->blocked && turn(m, view) > 0)
		work = true;
	if (!work) {
		counter_add(&m->sleeps, 1);
		/* Offline: the control thread need not wait for a sleeper. Nothing of the view is used until online. */
		rte_rcu_qsbr_thread_offline(m->all->quiescent, m->index);
		(void)epoll_wait(m->epoll_fd, events, 16, limit_ms); /* events are looked at, not read: see attach.h */
		rte_rcu_qsbr_thread_online(m->all->quiescent, m->index);
		view = atomic_load_explicit(&m->all->view, memory_order_acquire);
	}
	end_sleep(m, view);
	nic_disarm(m->all->nic);
}

static void *run(void *argument)
{
	struct master *m = argument;
	struct masters *all = m->all;

	prctl(PR_SET_NAME, "master", 0, 0, 0);
	(void)rte_thread_register();
	rte_rcu_qsbr_thread_register(all->quiescent, m->index);
	rte_rcu_qsbr_thread_online(all->quiescent, m->index);
	while (!atomic_load_explicit(&all->stop, memory_order_relaxed)) {
		struct view *view = atomic_load_explicit(&all->view, memory_order_acquire);
		uint32_t work = turn(m, view);

		counter_add(&m->turns, 1);
		if (work > 0) {
			counter_add(&m->work, work);
			dp_waiter_busy(&m->waiter);
		} else if (dp_waiter_idle(&m->waiter, m->peer_cpu)) {
			sleep_until_work(m, view);
		}
		rte_rcu_qsbr_quiescent(all->quiescent, m->index);
	}
	rte_rcu_qsbr_thread_offline(all->quiescent, m->index);
	rte_rcu_qsbr_thread_unregister(all->quiescent, m->index);
	rte_thread_unregister();
	return NULL;
}

static int watch(int epoll_fd, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int prepare(struct master *m, const struct options *options)
{
	struct nic *nic = m->all->nic;
	int r;

	m->waiter.mode = options->wait;
	m->peer_cpu = DP_CPU_UNKNOWN;
	m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	m->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->epoll_fd < 0 || m->kick_fd < 0)
		return -errno;
	r = watch(m->epoll_fd, m->kick_fd, EPOLLIN | EPOLLET);
	/* Level-triggered: a frame that came between the last look and the sleep ends it. */
	for (unsigned int i = m->index; i < nic->fds && r == 0; i += m->all->count)
		r = watch(m->epoll_fd, nic->fd[i], EPOLLIN | (nic->interrupts ? EPOLLET : 0));
	return r;
}

static int start_thread(struct master *m, int cpu)
{
	pthread_attr_t attributes;
	cpu_set_t set;
	int r;

	pthread_attr_init(&attributes);
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		pthread_attr_setaffinity_np(&attributes, sizeof(set), &set);
	}
	r = -pthread_create(&m->thread, &attributes, run, m);
	pthread_attr_destroy(&attributes);
	return r;
}

int masters_start(struct masters *all, const struct options *options, struct nic *nic)
{
	struct view *view;
	int r = view_new(NULL, 0, &view);

	if (r < 0)
		return r;
	all->nic = nic;
	atomic_init(&all->view, view);
	atomic_init(&all->stop, false);
	all->condemned_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->quiescent = aligned_alloc(RTE_CACHE_LINE_SIZE,
				       RTE_ALIGN(rte_rcu_qsbr_get_memsize(MASTERS_MAX), RTE_CACHE_LINE_SIZE));
	if (all->condemned_fd < 0 || !all->quiescent || rte_rcu_qsbr_init(all->quiescent, MASTERS_MAX) != 0)
		return -ENOMEM;
	for (unsigned int i = 0; i < options->masters; i++) {
		struct master *m = &all->master[i];

		m->all = all;
		m->index = i;
		all->count = options->masters;
		r = prepare(m, options);
		if (r == 0)
			r = start_thread(m, options->cpu[i]);
		if (r < 0) {
			all->count = i;
			masters_stop(all);
			masters_close(all);
			return r;
		}
	}
	return 0;
}

void masters_stop(struct masters *all)
{
	atomic_store(&all->stop, true);
	masters_kick(all);
	for (unsigned int i = 0; i < all->count; i++) {
		pthread_join(all->master[i].thread, NULL);
		close(all->master[i].epoll_fd);
		close(all->master[i].kick_fd);
	}
	all->count = 0;
}

void masters_close(struct masters *all)
{
	view_free(atomic_load(&all->view));
	free(all->quiescent);
	close(all->condemned_fd);
}

void masters_kick(struct masters *all)
{
	const uint64_t one = 1;

	for (unsigned int i = 0; i < all->count; i++)
		(void)!write(all->master[i].kick_fd, &one, sizeof(one));
}

void masters_synchronize(struct masters *all)
{
	uint64_t token = rte_rcu_qsbr_start(all->quiescent);

	/* Not rte_rcu_qsbr_synchronize: that spins, and a master may want this very core. */
	while (rte_rcu_qsbr_check(all->quiescent, token, false) == 0)
		sched_yield();
}

struct view *masters_set_view(struct masters *all, struct view *view)
{
	struct view *old = atomic_exchange_explicit(&all->view, view, memory_order_acq_rel);

	masters_kick(all);
	masters_synchronize(all);
	return old;
}

int masters_watch(struct masters *all, const struct pipe *pipe)
{
	/* Edge-triggered, never read: the container could make a read block. See attach.h. The file's last close ends it. */
	return watch(all->master[pipe->master].epoll_fd, pipe->bell, EPOLLIN | EPOLLET);
}

json_t *masters_to_json(const struct masters *all)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < all->count; i++) {
		const struct master *m = &all->master[i];

		json_array_append_new(list, json_pack("{s:i, s:I, s:I, s:I}", "master", (int)i, "turns",
						      (json_int_t)counter_read(&m->turns), "frames",
						      (json_int_t)counter_read(&m->work), "sleeps",
						      (json_int_t)counter_read(&m->sleeps)));
	}
	return list;
}
