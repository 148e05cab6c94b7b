/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_master.h"

#define BURST 64

void fake_master_init(struct fake_master *m, enum dp_wait_mode mode)
{
	memset(m, 0, sizeof *m);
	m->epoll = epoll_create1(EPOLL_CLOEXEC);
	m->mtu = DP_FRAME_MAX;
	m->waiter.mode = mode;
	m->last_cpu = DP_CPU_UNKNOWN;
	dp_geometry_default(&m->geometry);
}

static int parse_addresses(struct fake_pipe *p, const char *addresses)
{
	char copy[256], *rest = copy, *text;
	unsigned n = 0;

	snprintf(copy, sizeof copy, "%s", addresses);
	while ((text = strsep(&rest, ",")) && n < DP_ADDRESSES_MAX) {
		struct dp_address *a = &p->address[n++];

		if (inet_pton(AF_INET, text, a->bytes) == 1)
			*a = (struct dp_address){
				4, 24, { 0 }, { a->bytes[0], a->bytes[1], a->bytes[2], a->bytes[3] }
			};
		else if (inet_pton(AF_INET6, text, a->bytes) == 1)
			a->family = 6, a->prefix_length = 64;
		else
			return -EINVAL;
	}
	return 0;
}

static void watch(struct fake_master *m, int fd, uint32_t events, struct fake_pipe *p)
{
	struct epoll_event e = { .events = events, .data.ptr = p };

	epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e);
}

int fake_master_add(struct fake_master *m, const char *base, const char *name, const char *addresses)
{
	struct fake_pipe *p = &m->pipes[m->count];
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*p = (struct fake_pipe){ .conn = -1, .bell = -1, .region = -1 };
	if (parse_addresses(p, addresses))
		return -EINVAL;
	snprintf(p->directory, sizeof p->directory, "%s/%s", base, name);
	if (mkdir(p->directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	snprintf(address.sun_path, sizeof address.sun_path, "%.90s/" DP_ATTACH_SOCKET, p->directory);
	unlink(address.sun_path);
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(p->listener, 4) < 0)
		return -errno;
	watch(m, p->listener, EPOLLIN, p);
	m->count++;
	return 0;
}

static void let_go(struct fake_pipe *p)
{
	if (p->mapped)
		dp_pipe_unmap(&p->pipe);
	p->mapped = false;
	if (p->conn >= 0)
		close(p->conn);
	if (p->bell >= 0)
		close(p->bell);
	if (p->region >= 0)
		close(p->region);
	p->conn = p->bell = p->region = -1;
}

static void welcome(struct fake_master *m, struct fake_pipe *p)
{
	struct dp_welcome w = { .mtu = m->mtu };
	struct dp_hello hello;
	int err, region;

	err = dp_attach_receive_hello(p->conn, &hello, &region);
	if (err == -EAGAIN)
		return;
	if (!err && region < 0)
		err = dp_region_create("test", &m->geometry, m->hugepages, &region);
	if (!err) {
		p->region = region;
		err = dp_pipe_map(region, DP_MASTER, &m->geometry, &p->pipe);
	}
	if (err) {
		dp_attach_refuse(p->conn, err, "the region is not acceptable");
		let_go(p);
		return;
	}
	p->mapped = true;
	dp_fault_guard(&p->pipe);
	p->pipe.bell_fd = p->conn;
	p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch(m, p->bell, EPOLLIN | EPOLLET, p);
	w.size = p->pipe.size;
	w.epoch = atomic_load(&p->pipe.header->epoch);
	snprintf(w.name, sizeof w.name, "test%u", (unsigned)(p - m->pipes));
	memcpy(w.address, p->address, sizeof w.address);
	if (dp_attach_send_welcome(p->conn, &w, p->region, p->bell) < 0)
		let_go(p);
}

/* attend does what the sockets of a pipe ask for. */
static void attend(struct fake_master *m, struct fake_pipe *p)
{
	int conn;
	char byte;

	if (p->conn >= 0 && p->mapped && recv(p->conn, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
		let_go(p);
	conn = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (conn >= 0 && p->conn >= 0) {
		dp_attach_refuse(conn, -EBUSY, "the pipe is in use");
		close(conn);
	} else if (conn >= 0) {
		p->conn = conn;
		watch(m, conn, EPOLLIN | EPOLLRDHUP, p);
	}
	if (p->conn >= 0 && !p->mapped)
		welcome(m, p);
}

static struct fake_pipe *destination(struct fake_master *m, const uint8_t *head, uint32_t length)
{
	bool v6 = head[0] >> 4 == 6;
	const uint8_t *to = head + (v6 ? 24 : 16);

	if (length < (v6 ? 40u : 20u))
		return NULL;
	for (unsigned i = 0; i < m->count; i++) {
		for (unsigned a = 0; a < DP_ADDRESSES_MAX; a++) {
			const struct dp_address *address = &m->pipes[i].address[a];

			if (address->family == (v6 ? 6 : 4) && memcmp(address->bytes, to, v6 ? 16 : 4) == 0)
				return m->pipes[i].mapped ? &m->pipes[i] : NULL;
		}
	}
	return NULL;
}

static int deliver_bytes(struct fake_pipe *to, const uint8_t *bytes, uint32_t length)
{
	struct dp_frame f = {
		.segment = { { bytes, length } }, .segments = 1, .length = length, .flags = DP_DESC_CSUM_ELIDED
	};

	return dp_frame_deliver(&to->pipe, &f, NULL, 0);
}

static bool every(uint64_t count, unsigned n)
{
	return n != 0 && count % n == 0;
}

/* deliver applies the faults. -EAGAIN: no room, the frame stays where it is. */
static int deliver(struct fake_master *m, struct fake_pipe *to, const struct dp_frame *f, const uint8_t *head,
		   uint32_t head_length)
{
	int err;

	if (every(m->moved + 1, m->drop_every))
		return 0;
	if (every(m->moved + 1, m->reorder_every) && !m->held_for) {
		m->held_length = dp_frame_copy(f, m->held, sizeof m->held);
		m->held_for = to;
		return 0;
	}
	err = dp_frame_deliver(&to->pipe, f, head, head_length);
	if (err)
		return err;
	if (every(m->moved + 1, m->double_every))
		(void)dp_frame_deliver(&to->pipe, f, head, head_length);
	if (m->held_for) {
		if (m->held_for->mapped)
			(void)deliver_bytes(m->held_for, m->held, m->held_length);
		m->held_for = NULL;
	}
	return 0;
}

static bool move(struct fake_master *m, struct fake_pipe *from)
{
	bool worked = false;
	bool touched[FAKE_PIPES_MAX] = { false };

	for (unsigned i = 0; i < BURST; i++) {
		struct dp_frame f;
		struct fake_pipe *to;
		uint8_t head[40] = { 0 };
		uint32_t n;
		int got = dp_frame_peek(&from->pipe, &f);

		if (got == 0)
			break;
		worked = true;
		if (got < 0) {
			from->bad++;
			continue;
		}
		n = dp_frame_copy(&f, head, sizeof head);
		to = destination(m, head, f.length);
		if (!to) {
			from->undeliverable++;
		} else {
			if (deliver(m, to, &f, head, n)) {
				m->blocked = true;
				worked = i > 0;
				break;
			}
			touched[to - m->pipes] = true;
			m->moved++;
			from->frames++;
		}
		dp_frame_release(&from->pipe, &f);
	}
	for (unsigned i = 0; worked && i < m->count; i++) {
		if (touched[i] && m->pipes[i].mapped)
			dp_wake(&m->pipes[i].pipe, DP_WANT_FRAMES);
	}
	if (worked) {
		dp_wake(&from->pipe, DP_WANT_SPACE);
		m->last_cpu = dp_peer_cpu(&from->pipe);
	}
	return worked;
}

static bool move_all(struct fake_master *m)
{
	bool worked = false;

	m->blocked = false;
	for (unsigned i = 0; i < m->count; i++) {
		struct fake_pipe *p = &m->pipes[i];

		if (p->mapped && move(m, p))
			worked = true;
		if (p->mapped && dp_fault_seen(&p->pipe))
			let_go(p);
	}
	return worked;
}

static void each_mapped(struct fake_master *m, void (*f)(struct dp_pipe *))
{
	for (unsigned i = 0; i < m->count; i++) {
		if (m->pipes[i].mapped)
			f(&m->pipes[i].pipe);
	}
}

static void prepare(struct dp_pipe *pipe)
{
	dp_sleep_prepare(pipe, DP_WANT_FRAMES | DP_WANT_SPACE);
}

static void wait_for_events(struct fake_master *m, int timeout_ms)
{
	struct epoll_event events[16];
	int n = epoll_wait(m->epoll, events, 16, timeout_ms);

	for (int i = 0; i < n; i++)
		attend(m, events[i].data.ptr);
}

void fake_master_run(struct fake_master *m, unsigned seconds)
{
	uint64_t end = seconds ? dp_now_ns() + seconds * 1000000000ull : UINT64_MAX;
	uint64_t rounds = 0;

	while (!atomic_load(&m->stop)) {
		if (move_all(m)) {
			dp_waiter_busy(&m->waiter);
			if (rounds++ % 1024 == 0) {
				each_mapped(m, dp_publish_cpu);
				wait_for_events(m, 0);
			}
			continue;
		}
		if (!dp_waiter_idle(&m->waiter, m->last_cpu))
			continue;
		if (dp_now_ns() > end)
			break;
		each_mapped(m, dp_publish_cpu);
		each_mapped(m, prepare);
		if (!move_all(m))
			wait_for_events(m, 100);
		each_mapped(m, dp_sleep_cancel);
	}
}

void fake_master_close(struct fake_master *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		struct fake_pipe *p = &m->pipes[i];
		char path[128];

		let_go(p);
		close(p->listener);
		snprintf(path, sizeof path, "%s/" DP_ATTACH_SOCKET, p->directory);
		unlink(path);
		rmdir(p->directory);
	}
	close(m->epoll);
}
