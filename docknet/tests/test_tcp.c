/* SPDX-License-Identifier: Apache-2.0 */
/* test_tcp.c - TCP between two containers, through the fake master. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

#define TRANSFER (24u * 1024 * 1024)

/* ---- both directions at once ---- */

static uint64_t transfer_bytes = TRANSFER;

/* exchange sends and receives at the same time, with different patterns. */
static void exchange(struct docknet *net, struct docknet_tcp *c, uint64_t out, uint64_t in)
{
	static uint8_t data[70000];
	uint64_t sent = 0, received = 0;
	struct patience patience = { 0 };

	while (sent < transfer_bytes || received < transfer_bytes) {
		size_t length = sizeof data;
		ssize_t n = 0;

		if (sent < transfer_bytes) {
			if (length > transfer_bytes - sent)
				length = (size_t)(transfer_bytes - sent);
			for (size_t i = 0; i < length; i++)
				data[i] = pattern(out + sent + i);
			n = docknet_tcp_send(c, data, length);
			CHECK(n > 0 || n == -EAGAIN);
			sent += n > 0 ? (uint64_t)n : 0;
		}
		n = docknet_tcp_recv(c, data, sizeof data);
		CHECK(n > 0 || n == -EAGAIN);
		for (ssize_t i = 0; i < n; i++)
			CHECK(data[i] == pattern(in + received + (uint64_t)i));
		received += n > 0 ? (uint64_t)n : 0;
		if (n > 0) {
			patience.until_ns = 0;
			CHECK(docknet_poll(net, 0) >= 0);
		} else {
			poll_patiently(net, &patience, "progress");
		}
	}
}

static int peer_exchange(struct docknet *net)
{
	struct docknet_listener *l = listen_on(net, 1000);
	struct docknet_tcp *c = accept_one(net, l);

	exchange(net, c, 1u << 20, 77);
	expect_end(net, c);
	docknet_tcp_close(c);
	docknet_listener_close(l);
	/* Let the FIN be acknowledged. */
	for (int i = 0; i < 20; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	return 0;
}

static void transfer(struct pair *pair, const struct docknet_address *to, uint64_t bytes)
{
	struct docknet_tcp *c;

	transfer_bytes = bytes;
	pair_open(pair, peer_exchange);
	c = connect_to(pair->net, to);
	exchange(pair->net, c, 77, 1u << 20);
	assert_int_equal(docknet_tcp_shutdown(c), 0);
	expect_end(pair->net, c);
	docknet_tcp_close(c);
	pair_peer_done(pair);
	pair_close(pair);
}

static void test_transfer_ipv4(void **state)
{
	PAIR({ 0 });

	(void)state;
	transfer(&pair, &address_a4, TRANSFER);
}

static void test_transfer_ipv6(void **state)
{
	PAIR({ 0 });

	(void)state;
	transfer(&pair, &address_a6, TRANSFER);
}

static void test_transfer_mtu_1500(void **state)
{
	PAIR({ .mtu = 1500 });

	(void)state;
	transfer(&pair, &address_a4, TRANSFER / 2);
}

static void test_transfer_with_faults(void **state)
{
	/* Primes, so that the faults meet in all ways. */
	PAIR({ .mtu = 1500, .drop_every = 101, .double_every = 89, .reorder_every = 61 });

	(void)state;
	transfer(&pair, &address_a4, 2u << 20);
}

static void test_transfer_sleeping(void **state)
{
	PAIR({ .wait = DOCKNET_WAIT_SLEEP });

	(void)state;
	transfer(&pair, &address_a4, TRANSFER / 4);
}

/* ---- endings ---- */

static int peer_half_close(struct docknet *net)
{
	struct docknet_listener *l = listen_on(net, 1000);
	struct docknet_tcp *c = accept_one(net, l);

	expect_pattern(net, c, 0, 300000);
	expect_end(net, c);
	send_pattern(net, c, 5, 400000); /* the other half is still open */
	docknet_tcp_close(c);
	for (int i = 0; i < 30; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	return 0;
}

static void test_half_close(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;

	(void)state;
	pair_open(&pair, peer_half_close);
	c = connect_to(pair.net, &address_a4);
	send_pattern(pair.net, c, 0, 300000);
	assert_int_equal(docknet_tcp_shutdown(c), 0);
	assert_int_equal(docknet_tcp_send(c, "x", 1), -EPIPE);
	expect_pattern(pair.net, c, 5, 400000);
	expect_end(pair.net, c);
	docknet_tcp_close(c);
	pair_peer_done(&pair);
	pair_close(&pair);
}

static int peer_reset(struct docknet *net)
{
	struct docknet_listener *l = listen_on(net, 1000);
	struct docknet_tcp *c = accept_one(net, l);

	expect_pattern(net, c, 0, 10);
	docknet_tcp_abort(c);
	for (int i = 0; i < 10; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	return 0;
}

static void test_reset(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;
	uint8_t byte;

	(void)state;
	pair_open(&pair, peer_reset);
	c = connect_to(pair.net, &address_a4);
	send_pattern(pair.net, c, 0, 10);
	POLL_UNTIL(pair.net, docknet_tcp_status(c) != 0);
	assert_int_equal(docknet_tcp_status(c), -ECONNRESET);
	assert_int_equal(docknet_tcp_recv(c, &byte, 1), -ECONNRESET);
	assert_int_equal(docknet_tcp_send(c, &byte, 1), -ECONNRESET);
	docknet_tcp_close(c);
	pair_peer_done(&pair);
	pair_close(&pair);
}

/* idle keeps a peer alive that has nothing to do. */
static int peer_idle(struct docknet *net)
{
	for (;;)
		PEER_CHECK(docknet_poll(net, 1000) >= 0);
}

static void test_refused(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;

	(void)state;
	pair_open(&pair, peer_idle);
	assert_int_equal(docknet_tcp_connect(pair.net, &address_a6, NULL, NULL, &c), 0);
	POLL_UNTIL(pair.net, docknet_tcp_status(c) != -EINPROGRESS);
	assert_int_equal(docknet_tcp_status(c), -ECONNREFUSED);
	docknet_tcp_close(c);
	pair_close(&pair);
}

/* A peer that is killed and whose address nobody answers for: keep-alive finds out. */
static int peer_accept_and_idle(struct docknet *net)
{
	accept_one(net, listen_on(net, 1000));
	return peer_idle(net);
}

static void test_killed_peer(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;

	(void)state;
	pair_open(&pair, peer_accept_and_idle);
	c = connect_to(pair.net, &address_a4);
	assert_int_equal(docknet_tcp_keepalive(c, 1, 1, 1), 0);
	kill(pair.peer, SIGKILL);
	POLL_UNTIL(pair.net, docknet_tcp_status(c) != 0);
	assert_int_equal(docknet_tcp_status(c), -ETIMEDOUT);
	docknet_tcp_close(c);
	pair_close(&pair);
}

/* ---- flow control ---- */

static int peer_slow_reader(struct docknet *net)
{
	struct docknet_listener *l = listen_on(net, 1000);
	struct docknet_tcp *c = accept_one(net, l);
	struct docknet_stats stats;

	/* Not reading closes the window: the sender must stop, and start again when it opens. */
	for (int i = 0; i < 50; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	docknet_stats(net, &stats);
	PEER_CHECK(stats.rx_bytes < 2u << 20);
	expect_pattern(net, c, 0, 8u << 20);
	expect_end(net, c);
	docknet_tcp_close(c);
	for (int i = 0; i < 20; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	return 0;
}

static void test_zero_window(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;
	struct docknet_stats stats;

	(void)state;
	pair_open(&pair, peer_slow_reader);
	c = connect_to(pair.net, &address_a4);
	send_pattern(pair.net, c, 0, 8u << 20);
	assert_int_equal(docknet_tcp_shutdown(c), 0);
	pair_peer_done(&pair);
	docknet_stats(pair.net, &stats);
	assert_int_equal(stats.tcp_retransmits, 0);
	docknet_tcp_close(c);
	pair_close(&pair);
}

/* ---- buffers ---- */

static int peer_echo_buffers(struct docknet *net)
{
	struct docknet_listener *l = listen_on(net, 1000);
	struct docknet_tcp *c = accept_one(net, l);
	struct docknet_buffer *held[200];
	size_t count = 0, bytes = 0;

	/* Hold many buffers at once, which must not stop the pipe; then send them back. */
	while (bytes < 900000) {
		struct docknet_buffer *b;
		int err;

		POLL_UNTIL(net, (err = docknet_tcp_recv_buffer(c, &b)) != -EAGAIN);
		PEER_CHECK(err == 0 && b && count < 200);
		bytes += b->length;
		held[count++] = b;
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t done = 0; done < held[i]->length;) {
			ssize_t n;

			POLL_UNTIL(net,
				   (n = docknet_tcp_send(c, held[i]->data + done, held[i]->length - done)) != -EAGAIN);
			PEER_CHECK(n > 0);
			done += (size_t)n;
		}
		docknet_buffer_release(held[i]);
	}
	expect_end(net, c);
	docknet_tcp_close(c);
	for (int i = 0; i < 20; i++)
		PEER_CHECK(docknet_poll(net, 10) >= 0);
	return 0;
}

static void test_zero_copy(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;
	uint64_t sent = 0;

	(void)state;
	pair_open(&pair, peer_echo_buffers);
	c = connect_to(pair.net, &address_a4);
	while (sent < 900000) {
		struct docknet_buffer *b;
		int err;

		POLL_UNTIL(pair.net, docknet_buffer_get(pair.net, 20000, &b) == 0);
		if (b->length > 900000 - sent)
			b->length = 900000 - sent;
		for (size_t i = 0; i < b->length; i++)
			b->data[i] = pattern(sent + i);
		sent += b->length;
		POLL_UNTIL(pair.net, (err = docknet_tcp_send_buffer(c, b)) != -EAGAIN);
		assert_int_equal(err, 0);
	}
	expect_pattern(pair.net, c, 0, 900000);
	assert_int_equal(docknet_tcp_shutdown(c), 0);
	pair_peer_done(&pair);
	docknet_tcp_close(c);
	pair_close(&pair);
}

/* ---- many ---- */

#define MANY 300

static void echo_recved(void *argument, struct docknet_tcp *c, struct docknet_buffer *b)
{
	(void)argument;
	if (!b) {
		docknet_tcp_close(c);
		return;
	}
	PEER_CHECK(docknet_tcp_send(c, b->data, b->length) == (ssize_t)b->length);
	docknet_buffer_release(b);
}

static void echo_accepted(void *argument, struct docknet_tcp *c)
{
	(void)argument;
	(void)c;
}

static int peer_echo_callbacks(struct docknet *net)
{
	const struct docknet_tcp_callbacks callbacks = { .accepted = echo_accepted, .tcp_recved = echo_recved };
	struct docknet_address any = { .port = 1000 };
	struct docknet_listener *l;

	PEER_CHECK(docknet_tcp_listen(net, &any, &callbacks, NULL, &l) == 0);
	return peer_idle(net);
}

static void test_many_connections(void **state)
{
	static struct docknet_tcp *c[MANY];
	PAIR({ 0 });

	(void)state;
	pair_open(&pair, peer_echo_callbacks);
	for (unsigned round = 0; round < 3; round++) { /* ports and memory come back */
		for (unsigned i = 0; i < MANY; i++)
			c[i] = connect_to(pair.net, i % 2 ? &address_a4 : &address_a6);
		for (unsigned i = 0; i < MANY; i++)
			send_pattern(pair.net, c[i], i * 1000u, 500);
		for (unsigned i = 0; i < MANY; i++)
			expect_pattern(pair.net, c[i], i * 1000u, 500);
		for (unsigned i = 0; i < MANY; i++) {
			assert_int_equal(docknet_tcp_shutdown(c[i]), 0);
			expect_end(pair.net, c[i]);
			docknet_tcp_close(c[i]);
		}
	}
	pair_close(&pair);
}

/* ---- the master's death ---- */

static void test_master_replaced(void **state)
{
	PAIR({ 0 });
	struct docknet_tcp *c;
	struct docknet_stats stats;

	(void)state;
	pair_open(&pair, peer_echo_callbacks);
	c = connect_to(pair.net, &address_a4);
	for (uint64_t i = 0; i < 3; i++) {
		send_pattern(pair.net, c, i * 9000, 9000);
		expect_pattern(pair.net, c, i * 9000, 9000);
		pair_kill_master(&pair);
		POLL_UNTIL(pair.net, !docknet_attached(pair.net));
		/* With nobody to carry it: kept, and delivered later. */
		send_pattern(pair.net, c, (i + 100) * 9000, 9000);
		for (int n = 0; n < 10; n++)
			assert_true(docknet_poll(pair.net, 10) >= 0);
		pair_start_master(&pair);
		expect_pattern(pair.net, c, (i + 100) * 9000, 9000);
	}
	docknet_stats(pair.net, &stats);
	assert_int_equal(stats.reattached, 3);
	docknet_tcp_close(c);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_transfer_ipv4, pair_teardown),
		cmocka_unit_test_teardown(test_transfer_ipv6, pair_teardown),
		cmocka_unit_test_teardown(test_transfer_mtu_1500, pair_teardown),
		cmocka_unit_test_teardown(test_transfer_with_faults, pair_teardown),
		cmocka_unit_test_teardown(test_transfer_sleeping, pair_teardown),
		cmocka_unit_test_teardown(test_half_close, pair_teardown),
		cmocka_unit_test_teardown(test_reset, pair_teardown),
		cmocka_unit_test_teardown(test_refused, pair_teardown),
		cmocka_unit_test_teardown(test_killed_peer, pair_teardown),
		cmocka_unit_test_teardown(test_zero_window, pair_teardown),
		cmocka_unit_test_teardown(test_zero_copy, pair_teardown),
		cmocka_unit_test_teardown(test_many_connections, pair_teardown),
		cmocka_unit_test_teardown(test_master_replaced, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
