/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair.h - two containers and a master, for tests: the test is one container, children are the other and the master.
 *
 *   test: pipe b, 10.0.0.2, fd00::2     child: pipe a, 10.0.0.1, fd00::1     child: the fake master
 */
#ifndef DOCKNET_PAIR_H
#define DOCKNET_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/types.h>

#include "docknet.h"

struct pair {
	char base[64];
	pid_t master, peer;
	struct docknet *net; /* the test's container */
	/* Before pair_open; zero is fine. */
	unsigned mtu, drop_every, double_every, reorder_every;
	const char *tap;
	enum docknet_wait wait;
};

/* A test's pair: static, because a failed test leaves its stack by longjmp, and pair_teardown still needs it. */
#define PAIR(...)                                                                                                      \
	static struct pair pair;                                                                                       \
	pair = (struct pair)__VA_ARGS__

/* What the peer does; returns its exit status: 0 when all was as it should be. It runs in a child, with pipe a. */
typedef int (*pair_peer)(struct docknet *net);

/* Start the master and the peer (NULL: none), attach the test. */
void pair_open(struct pair *pair, pair_peer peer);
/* Detach, end the children, fail the test if the peer failed or memory is left. */
void pair_close(struct pair *pair);
/* For cmocka: ends what a failed test has left. */
int pair_teardown(void **state);
/* The peer has ended by itself: wait for it, check its status. */
void pair_peer_done(struct pair *pair);

void pair_start_master(struct pair *pair);
void pair_kill_master(struct pair *pair);
void pair_pipe(const struct pair *pair, const char *name, char path[100]);

/* In a peer, instead of assert: leaves the process with the line's number on stderr. */
#define PEER_CHECK(condition)                                                                                          \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			peer_failed(__FILE__, __LINE__, #condition);                                                   \
	} while (0)
/* The same for code that runs in peer and test. */
#define CHECK(condition) check(__FILE__, __LINE__, #condition, condition)
void check(const char *file, int line, const char *text, bool condition);
_Noreturn void peer_failed(const char *file, int line, const char *condition);

/* Poll until condition holds; fail after 20 s, which no healthy machine needs. */
#define POLL_UNTIL(net, condition)                                                                                     \
	for (struct patience patience = { 0 }; !(condition);)                                                          \
	poll_patiently(net, &patience, #condition)
struct patience {
	uint64_t until_ns;
};
void poll_patiently(struct docknet *net, struct patience *patience, const char *what);

extern struct docknet_address address_a4, address_a6; /* the peer, port 1000 */

/* Byte number at of a stream that is unlike its neighbours. */
static inline uint8_t pattern(uint64_t at)
{
	uint64_t x = (at >> 3) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56 ^ at * 31);
}

/* Blocking helpers on the pull API. */
void send_pattern(struct docknet *net, struct docknet_tcp *c, uint64_t from, uint64_t bytes);
void expect_pattern(struct docknet *net, struct docknet_tcp *c, uint64_t from, uint64_t bytes);
struct docknet_tcp *connect_to(struct docknet *net, const struct docknet_address *to);
struct docknet_tcp *accept_one(struct docknet *net, struct docknet_listener *l);
struct docknet_listener *listen_on(struct docknet *net, uint16_t port);
/* Wait for the end of what the peer sends; there must be no more data. */
void expect_end(struct docknet *net, struct docknet_tcp *c);

#endif
