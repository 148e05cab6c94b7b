// SPDX-License-Identifier: Apache-2.0
/* ARP and neighbour discovery, against literal frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../neighbor.h"

static const struct mac_address own = { { 2, 0, 0, 0, 0, 1 } };

/* Who has 10.0.0.2? Tell 10.0.0.9 at 02:00:00:00:00:99. */
static const uint8_t arp_request[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0,  0x99, 8, 6,
					 0,    1,    8,	   0,	 6,    4,    0, 1, 2, 0, 0,  0,	   0, 0x99,
					 10,   0,    0,	   9,	 0,    0,    0, 0, 0, 0, 10, 0,	   0, 2 };
/* 10.0.0.2 is at 02:00:00:00:00:01, to the one who asked. */
static const uint8_t arp_reply[42] = { 2, 0, 0, 0, 0, 0x99, 2, 0,  0, 0, 0, 1, 8, 6, 0, 1, 8,	 0,  6, 4, 0,
				       2, 2, 0, 0, 0, 0,    1, 10, 0, 0, 2, 2, 0, 0, 0, 0, 0x99, 10, 0, 0, 9 };

static struct ip_key address(const char *text)
{
	struct ip_key key;

	assert_int_equal(ip_parse(text, &key, NULL), 0);
	return key;
}

static void test_arp_request_is_answered(void **state)
{
	struct neighbor_message m;
	uint8_t out[NEIGHBOR_FRAME];
	struct ip_key target = address("10.0.0.2"), subject = address("10.0.0.9");

	(void)state;
	assert_int_equal(neighbor_parse(arp_request, sizeof(arp_request), &m), NEIGHBOR_REQUEST);
	assert_true(ip_key_equal(&m.target, &target));
	assert_true(m.has_subject && ip_key_equal(&m.subject, &subject));
	assert_int_equal(neighbor_answer(&m, &own, out), sizeof(arp_reply));
	assert_memory_equal(out, arp_reply, sizeof(arp_reply));
}

static void test_arp_reply_is_read(void **state)
{
	struct neighbor_message m;
	struct ip_key subject = address("10.0.0.2");

	(void)state;
	assert_int_equal(neighbor_parse(arp_reply, sizeof(arp_reply), &m), NEIGHBOR_REPLY);
	assert_true(ip_key_equal(&m.subject, &subject));
	assert_memory_equal(m.mac.b, own.b, 6);
}

static void test_arp_probe_tells_nothing(void **state)
{
	uint8_t frame[42];
	struct neighbor_message m;

	(void)state;
	memcpy(frame, arp_request, 42);
	memset(frame + 28, 0, 4); /* sender 0.0.0.0 (RFC 5227) */
	assert_int_equal(neighbor_parse(frame, 42, &m), NEIGHBOR_REQUEST);
	assert_false(m.has_subject);
}

static void test_arp_refused(void **state)
{
	static const struct {
		const char *why;
		size_t at;
		uint8_t value;
	} cases[] = {
		{ "hardware type", 15, 6 }, { "protocol", 17, 1 },	   { "hardware length", 18, 8 },
		{ "operation", 21, 3 },	    { "multicast sender", 22, 1 }, { "ether type", 13, 7 },
	};
	struct neighbor_message m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t frame[42];

		memcpy(frame, arp_request, 42);
		frame[cases[i].at] = cases[i].value;
		if (neighbor_parse(frame, 42, &m) != NEIGHBOR_NONE)
			fail_msg("%s: taken", cases[i].why);
	}
	for (size_t length = 0; length < 42; length++)
		assert_int_equal(neighbor_parse(arp_request, length, &m), NEIGHBOR_NONE);
}

/* What we ask is what we would answer, and the answer is what we understand: both ways, both families. */
static void test_round_trip(void **state)
{
	static const char *const pairs[][2] = { { "10.0.0.2", "10.0.0.9" }, { "fd00::1:2:3", "fd00::9" } };
	static const struct mac_address peer = { { 2, 0, 0, 0, 0, 0x77 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ip_key target = address(pairs[i][0]), sender = address(pairs[i][1]);
		uint8_t ask[NEIGHBOR_FRAME], answer[NEIGHBOR_FRAME];
		size_t asked = neighbor_ask(&target, &sender, &own, ask), answered;
		struct neighbor_message m;

		assert_int_equal(neighbor_parse(ask, asked, &m), NEIGHBOR_REQUEST);
		assert_true(ip_key_equal(&m.target, &target));
		assert_true(m.has_subject && ip_key_equal(&m.subject, &sender));
		assert_memory_equal(m.mac.b, own.b, 6);
		answered = neighbor_answer(&m, &peer, answer);
		assert_memory_equal(answer, own.b, 6);
		assert_int_equal(neighbor_parse(answer, answered, &m), NEIGHBOR_REPLY);
		assert_true(ip_key_equal(&m.subject, &target));
		assert_memory_equal(m.mac.b, peer.b, 6);
	}
}

static void test_solicitation_on_the_wire(void **state)
{
	struct ip_key target = address("fd00::1:2:3"), sender = address("fd00::9");
	uint8_t ask[NEIGHBOR_FRAME];

	(void)state;
	assert_int_equal(neighbor_ask(&target, &sender, &own, ask), 86);
	/* 33:33:ff and the address's last 24 bits; ff02::1:ff02:3; hop limit 255. */
	assert_memory_equal(ask, ((uint8_t[]){ 0x33, 0x33, 0xff, 2, 0, 3 }), 6);
	assert_memory_equal(ask + 38, ((uint8_t[]){ 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 3 }), 16);
	assert_int_equal(ask[21], 255);
	assert_int_equal(ask[54], 135);
}

static void test_nd_refused(void **state)
{
	struct ip_key target = address("fd00::2"), sender = address("fd00::9");
	uint8_t good[NEIGHBOR_FRAME], frame[NEIGHBOR_FRAME];
	size_t length = neighbor_ask(&target, &sender, &own, good);
	struct neighbor_message m;

	(void)state;
	/* Any other byte from the IPv6 header's length on: wrong checksum, hop limit, type or code. */
	for (size_t at = 18; at < length; at++) {
		memcpy(frame, good, length);
		frame[at] ^= 0x10;
		if (neighbor_parse(frame, length, &m) != NEIGHBOR_NONE)
			fail_msg("byte %zu changed: taken", at);
	}
	for (size_t cut = 0; cut < length; cut++)
		assert_int_equal(neighbor_parse(good, cut, &m), NEIGHBOR_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arp_request_is_answered),
		cmocka_unit_test(test_arp_reply_is_read),
		cmocka_unit_test(test_arp_probe_tells_nothing),
		cmocka_unit_test(test_arp_refused),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_solicitation_on_the_wire),
		cmocka_unit_test(test_nd_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
