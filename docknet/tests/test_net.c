/* SPDX-License-Identifier: Apache-2.0 */
/* test_net.c - everything of docknet.h that is not TCP, and a master that lies. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "net.h"
#include "pair.h"

/* ---- UDP ---- */

static void echo_datagram(void *argument, struct docknet_udp *s, const struct docknet_address *from,
			  struct docknet_buffer *b)
{
	(void)argument;
	PEER_CHECK(docknet_udp_send(s, from, b->data, b->length) == 0);
	docknet_buffer_release(b);
}

static int peer_udp(struct docknet *net)
{
	struct docknet_address any = { .port = 1000 };
	struct docknet_udp *s;

	PEER_CHECK(docknet_udp_bind(net, &any, echo_datagram, NULL, &s) == 0);
	for (;;)
		PEER_CHECK(docknet_poll(net, 1000) >= 0);
}

static int peer_none(struct docknet *net)
{
	for (;;)
		PEER_CHECK(docknet_poll(net, 1000) >= 0);
}

static void udp_round_trip(struct docknet *net, struct docknet_udp *s, const struct docknet_address *to, size_t length)
{
	static uint8_t out[DOCKNET_UDP_MAX], in[DOCKNET_UDP_MAX];
	struct docknet_address from;
	ssize_t n;

	for (size_t i = 0; i < length; i++)
		out[i] = pattern(i + length);
	assert_int_equal(docknet_udp_send(s, to, out, length), 0);
	POLL_UNTIL(net, (n = docknet_udp_recv(s, &from, in, sizeof in)) != -EAGAIN);
	assert_int_equal(n, length);
	assert_memory_equal(in, out, length);
	assert_int_equal(from.family, to->family);
	assert_int_equal(from.port, 1000);
	assert_memory_equal(from.bytes, to->bytes, to->family == 4 ? 4 : 16);
}

static void udp_sizes(struct pair *pair)
{
	static const size_t sizes[] = { 1, 2, 200, 228, 229, 1400, 1472, 1473, 9000, 40000, DOCKNET_UDP_MAX };
	static uint8_t too_long[DOCKNET_UDP_MAX + 1];
	struct docknet_address any = { .port = 2000 };
	struct docknet_udp *s;

	pair_open(pair, peer_udp);
	assert_int_equal(docknet_udp_bind(pair->net, &any, NULL, NULL, &s), 0);
	usleep(50000); /* the peer binds */
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		udp_round_trip(pair->net, s, &address_a4, sizes[i]);
		udp_round_trip(pair->net, s, &address_a6, sizes[i]);
	}
	assert_int_equal(docknet_udp_send(s, &address_a4, too_long, sizeof too_long), -EMSGSIZE);
	docknet_udp_close(s);
	pair_close(pair);
}

static void test_udp(void **state)
{
	PAIR({ 0 });

	(void)state;
	udp_sizes(&pair);
}

/* In fragments, there and back. */
static void test_udp_fragments(void **state)
{
	PAIR({ .mtu = 1500 });

	(void)state;
	udp_sizes(&pair);
}

/* ---- errors ---- */

static void test_attach_errors(void **state)
{
	PAIR({ 0 });
	struct docknet *other;
	char path[100];

	(void)state;
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = "/nonexistent" }, &other), -ENOENT);
	pair_open(&pair, peer_none);
	pair_pipe(&pair, "a", path);
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = path }, &other), -EBUSY);
	docknet_detach(pair.net);
	/* The peer has that pipe: the master says so. */
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = path }, &other), -EBUSY);
	assert_string_equal(docknet_refusal(), "the pipe is in use");
	pair_pipe(&pair, "b", path);
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = path, .tap = "/nonexistent/tap" }, &other),
			 -ENOENT);
	assert_int_equal(docknet_attach(&(struct docknet_options){ .pipe = path }, &pair.net), 0);
	pair_close(&pair);
}

static void test_address_errors(void **state)
{
	PAIR({ 0 });
	struct docknet_listener *l, *other;
	struct docknet_udp *u, *v;
	struct docknet_address own = { 4, { 10, 0, 0, 2 }, 80 }, foreign = { 4, { 10, 0, 0, 3 }, 80 }, a;
	char text[DOCKNET_ADDRESS_TEXT];

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(docknet_tcp_listen(pair.net, &foreign, NULL, NULL, &l), -EADDRNOTAVAIL);
	assert_int_equal(docknet_tcp_listen(pair.net, &own, NULL, NULL, &l), 0);
	assert_int_equal(docknet_tcp_listen(pair.net, &own, NULL, NULL, &other), -EADDRINUSE);
	docknet_listener_close(l);
	assert_int_equal(docknet_tcp_listen(pair.net, &own, NULL, NULL, &l), 0);
	docknet_listener_close(l);
	assert_int_equal(docknet_udp_bind(pair.net, &own, NULL, NULL, &u), 0);
	assert_int_equal(docknet_udp_bind(pair.net, &own, NULL, NULL, &v), -EADDRINUSE);
	docknet_udp_close(u);
	assert_int_equal(docknet_address(pair.net, 0, &a), 0);
	docknet_address_format(&a, text);
	assert_string_equal(text, "10.0.0.2:0");
	assert_int_equal(docknet_address(pair.net, 1, &a), 0);
	docknet_address_format(&a, text);
	assert_string_equal(text, "[fd00::2]:0");
	assert_int_equal(docknet_address(pair.net, 2, &a), -ENOENT);
	assert_int_equal(docknet_address_parse("10.0.0", 1, &a), -EINVAL);
	pair_close(&pair);
}

/* ---- the engine ---- */

static int add_one(void *argument)
{
	return ++*(int *)argument;
}

static void *caller(void *argument)
{
	static int counter;

	for (int i = 0; i < 200; i++) {
		if (docknet_engine_call(argument, add_one, &counter) <= 0)
			return argument;
	}
	return NULL;
}

static void test_engine(void **state)
{
	PAIR({ 0 });
	pthread_t threads[2];
	void *failed[2];
	int counter = 0;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(docknet_engine_start(pair.net), 0);
	assert_int_equal(docknet_engine_start(pair.net), -EALREADY);
	assert_int_equal(docknet_engine_call(pair.net, add_one, &counter), 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, caller, pair.net), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &failed[i]);
		assert_null(failed[i]);
	}
	assert_int_equal(docknet_engine_stop(pair.net), 0);
	assert_int_equal(docknet_engine_stop(pair.net), -EINVAL);
	assert_int_equal(docknet_poll(pair.net, 0), 0);
	pair_close(&pair);
}

/* ---- the tap ---- */

static void test_tap(void **state)
{
	PAIR({ .tap = "/tmp/docknet-test.pcapng" });
	struct docknet_address any = { .port = 2000 };
	struct docknet_udp *s;
	static uint8_t file[100000];
	size_t length, packets = 0;
	FILE *f;

	(void)state;
	pair_open(&pair, peer_udp);
	assert_int_equal(docknet_udp_bind(pair.net, &any, NULL, NULL, &s), 0);
	usleep(50000);
	udp_round_trip(pair.net, s, &address_a4, 100);
	udp_round_trip(pair.net, s, &address_a6, 1001);
	pair_close(&pair);

	f = fopen(pair.tap, "r");
	assert_non_null(f);
	length = fread(file, 1, sizeof file, f);
	fclose(f);
	unlink(pair.tap);
	for (size_t at = 0; at < length;) {
		uint32_t type, size, again, captured;

		memcpy(&type, file + at, 4);
		memcpy(&size, file + at + 4, 4);
		assert_true(size >= 12 && size % 4 == 0 && at + size <= length);
		memcpy(&again, file + at + size - 4, 4);
		assert_int_equal(size, again);
		memcpy(&captured, file + at + 20, 4);
		if (type == 6) {
			static const uint32_t expected[] = { 128, 128, 1049, 1049 };

			assert_in_range(packets, 0, 3);
			assert_int_equal(captured, expected[packets]);
			assert_int_equal(file[at + 28] >> 4, packets < 2 ? 4 : 6);
			packets++;
		}
		at += size;
	}
	assert_int_equal(packets, 4);
}

/* ---- a master that lies ---- */

static unsigned seen;

static bool count_rx(void *argument, const void *head, size_t head_length, size_t length)
{
	(void)argument;
	(void)head;
	assert_true(head_length > 0 && head_length <= length && length <= DP_FRAME_MAX);
	seen++;
	return true;
}

/* The test plays the master on its own pipe: the real one is dead. */
static void test_lying_master(void **state)
{
	PAIR({ 0 });
	struct docknet_stats stats;
	struct dp_pipe master;
	struct dp_layout l;
	uint32_t offset;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(dp_pipe_map(pair.net->region, DP_MASTER, NULL, &master), 0);
	l = master.layout;
	docknet_set_stack_rx(pair.net, count_rx, NULL);
	seen = 0;

	const struct dp_desc bad[] = {
		{ .offset = 0, .length = 100 },
		{ .offset = (uint32_t)l.tx_begin, .length = 100 },
		{ .offset = (uint32_t)l.rx_begin, .length = 0 },
		{ .offset = (uint32_t)l.rx_begin + 511 * 256, .length = 20 }, /* never lent */
		{ .offset = (uint32_t)l.rx_begin + 200, .length = 100 },      /* over the end of its buffer */
		{ .offset = (uint32_t)l.rx_end - 10, .length = 20 },
		{ .offset = UINT32_MAX - 5, .length = 20 },
		{ .offset = (uint32_t)l.rx_begin, .length = 20, .flags = 0x4000 },
		{ .offset = (uint32_t)l.rx_end - 1, .length = 65535 },
	};
	const unsigned n = sizeof bad / sizeof bad[0];

	for (unsigned i = 0; i < n; i++) {
		dp_slot_write(&master.rx_slot[dp_ring_at(&master.rx, 0)], &bad[i]);
		dp_ring_submit(&master.rx, 1);
		(void)docknet_poll(pair.net, 0);
	}
	docknet_stats(pair.net, &stats);
	assert_int_equal(stats.rx_bad, n);
	assert_int_equal(seen, 0);

	/* The same buffer twice: the first time it was lent, the second time not. */
	assert_int_equal(dp_buffer_take(&master, 2000, &offset), 0);
	memset(master.base + offset, 0x45, 2000);
	dp_frame_submit(&master, offset, 2000, 0);
	dp_frame_submit(&master, offset, 2000, 0);
	(void)docknet_poll(pair.net, 0);
	docknet_stats(pair.net, &stats);
	assert_int_equal(stats.rx_bad, n + 1);
	assert_int_equal(seen, 1);

	/* An index from nowhere stops the ring and nothing else. */
	atomic_store(&master.rx.shared->producer, master.rx.own + 100000);
	(void)docknet_poll(pair.net, 0);
	docknet_stats(pair.net, &stats);
	assert_true(stats.rx_bad > n + 1);
	dp_pipe_unmap(&master);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_udp, pair_teardown),
		cmocka_unit_test_teardown(test_udp_fragments, pair_teardown),
		cmocka_unit_test_teardown(test_attach_errors, pair_teardown),
		cmocka_unit_test_teardown(test_address_errors, pair_teardown),
		cmocka_unit_test_teardown(test_engine, pair_teardown),
		cmocka_unit_test_teardown(test_tap, pair_teardown),
		cmocka_unit_test_teardown(test_lying_master, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
