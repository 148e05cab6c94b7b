/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_master.h"
#include "heap.h"
#include "pair.h"

#define PATIENCE_NS 20000000000ull
/* What is left after a detach: lwIP's cyclic timers for fragments of both versions, for neighbours, and for TCP. */
#define TIMERS 4

struct docknet_address address_a4 = { 4, { 10, 0, 0, 1 }, 1000 };
struct docknet_address address_a6 = { 6, { 0xfd, [15] = 1 }, 1000 };

static bool in_peer;
static struct pair *current; /* until it is closed */

_Noreturn void peer_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: the peer expected %s\n", file, line, condition);
	fflush(stderr);
	_exit(1);
}

void check(const char *file, int line, const char *text, bool condition)
{
	if (condition)
		return;
	if (in_peer)
		peer_failed(file, line, text);
	fail_msg("%s:%d: expected %s", file, line, text);
}

static void must(bool condition, const char *what)
{
	check("pair.c", 0, what, condition);
}

void poll_patiently(struct docknet *net, struct patience *patience, const char *what)
{
	uint64_t now = dp_now_ns();

	if (patience->until_ns == 0)
		patience->until_ns = now + PATIENCE_NS;
	must(now < patience->until_ns, what);
	must(docknet_poll(net, 50) >= 0, "a pipe that is not lost");
}

void pair_pipe(const struct pair *pair, const char *name, char path[100])
{
	snprintf(path, 100, "%s/%s", pair->base, name);
}

/* child forks a process that dies with the test. */
static pid_t child(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		signal(SIGTERM, SIG_DFL);
	}
	return pid;
}

void pair_start_master(struct pair *pair)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pair->master = child();
	if (pair->master == 0) {
		static struct fake_master m;

		fake_master_init(&m, DP_WAIT_ADAPTIVE);
		if (pair->mtu)
			m.mtu = pair->mtu;
		m.drop_every = pair->drop_every;
		m.double_every = pair->double_every;
		m.reorder_every = pair->reorder_every;
		PEER_CHECK(fake_master_add(&m, pair->base, "a", "10.0.0.1,fd00::1") == 0);
		PEER_CHECK(fake_master_add(&m, pair->base, "b", "10.0.0.2,fd00::2") == 0);
		PEER_CHECK(write(ready[1], "", 1) == 1);
		fake_master_run(&m, 120);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

void pair_kill_master(struct pair *pair)
{
	kill(pair->master, SIGKILL);
	waitpid(pair->master, NULL, 0);
	pair->master = 0;
}

static void start_peer(struct pair *pair, pair_peer peer)
{
	int ready[2];
	char path[100], byte;

	assert_int_equal(pipe(ready), 0);
	pair->peer = child();
	if (pair->peer == 0) {
		struct docknet *net;
		int status;

		in_peer = true;
		pair_pipe(pair, "a", path);
		PEER_CHECK(docknet_attach(&(struct docknet_options){ .pipe = path, .wait = pair->wait }, &net) == 0);
		PEER_CHECK(write(ready[1], "", 1) == 1);
		status = peer(net);
		docknet_detach(net);
		PEER_CHECK(docknet_heap_out() <= TIMERS || status);
		_exit(status);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
}

void pair_open(struct pair *pair, pair_peer peer)
{
	char path[100];

	current = pair;
	strcpy(pair->base, "/tmp/docknet-test.XXXXXX");
	assert_non_null(mkdtemp(pair->base));
	pair_start_master(pair);
	if (peer)
		start_peer(pair, peer);
	pair_pipe(pair, "b", path);
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = path, .tap = pair->tap, .wait = pair->wait },
					&pair->net),
			 0);
}

void pair_peer_done(struct pair *pair)
{
	struct patience patience = { 0 };
	int status;

	while (waitpid(pair->peer, &status, WNOHANG) == 0)
		poll_patiently(pair->net, &patience, "the peer's end");
	pair->peer = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void clean_up(struct pair *pair)
{
	char path[120];

	current = NULL;
	if (pair->peer > 0) {
		kill(pair->peer, SIGKILL);
		waitpid(pair->peer, NULL, 0);
	}
	if (pair->master > 0)
		pair_kill_master(pair);
	for (const char *name = "ab"; *name; name++) {
		snprintf(path, sizeof path, "%s/%c/attach", pair->base, *name);
		unlink(path);
		snprintf(path, sizeof path, "%s/%c", pair->base, *name);
		rmdir(path);
	}
	rmdir(pair->base);
}

void pair_close(struct pair *pair)
{
	docknet_detach(pair->net);
	clean_up(pair);
	assert_in_range(docknet_heap_out(), 0, TIMERS);
}

int pair_teardown(void **state)
{
	(void)state;
	if (current) {
		docknet_detach(current->net);
		clean_up(current);
	}
	return 0;
}

/* ---- helpers on the pull API ---- */

struct docknet_listener *listen_on(struct docknet *net, uint16_t port)
{
	struct docknet_address any = { .port = port };
	struct docknet_listener *l;

	must(docknet_tcp_listen(net, &any, NULL, NULL, &l) == 0, "to listen");
	return l;
}

struct docknet_tcp *accept_one(struct docknet *net, struct docknet_listener *l)
{
	struct docknet_tcp *c;

	POLL_UNTIL(net, docknet_tcp_accept(l, &c) == 0);
	return c;
}

struct docknet_tcp *connect_to(struct docknet *net, const struct docknet_address *to)
{
	struct docknet_tcp *c;
	int status;

	/* The peer may not listen yet: it attached a moment ago. */
	for (unsigned tries = 0; tries < 200; tries++) {
		must(docknet_tcp_connect(net, to, NULL, NULL, &c) == 0, "to connect");
		POLL_UNTIL(net, docknet_tcp_status(c) != -EINPROGRESS);
		status = docknet_tcp_status(c);
		if (status != -ECONNREFUSED)
			break;
		docknet_tcp_close(c);
		usleep(10000);
	}
	if (status != 0)
		fprintf(stderr, "connecting: %s\n", strerror(-status));
	must(status == 0, "an established connection");
	return c;
}

void send_pattern(struct docknet *net, struct docknet_tcp *c, uint64_t from, uint64_t bytes)
{
	static uint8_t data[100000];

	for (uint64_t done = 0; done < bytes;) {
		size_t length = bytes - done < sizeof data ? (size_t)(bytes - done) : sizeof data;
		ssize_t n;

		for (size_t i = 0; i < length; i++)
			data[i] = pattern(from + done + i);
		POLL_UNTIL(net, (n = docknet_tcp_send(c, data, length)) != -EAGAIN);
		must(n > 0, "to send");
		done += (uint64_t)n;
	}
	docknet_tcp_flush(c);
}

void expect_pattern(struct docknet *net, struct docknet_tcp *c, uint64_t from, uint64_t bytes)
{
	static uint8_t data[100000];

	for (uint64_t done = 0; done < bytes;) {
		size_t length = bytes - done < sizeof data ? (size_t)(bytes - done) : sizeof data;
		ssize_t n;

		POLL_UNTIL(net, (n = docknet_tcp_recv(c, data, length)) != -EAGAIN);
		must(n > 0, "data");
		for (ssize_t i = 0; i < n; i++)
			must(data[i] == pattern(from + done + (uint64_t)i), "the bytes that were sent");
		done += (uint64_t)n;
	}
}

void expect_end(struct docknet *net, struct docknet_tcp *c)
{
	uint8_t byte;
	ssize_t n;

	POLL_UNTIL(net, (n = docknet_tcp_recv(c, &byte, 1)) != -EAGAIN);
	must(n == 0, "the end of the stream");
}
