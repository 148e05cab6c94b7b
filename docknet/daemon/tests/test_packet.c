// SPDX-License-Identifier: Apache-2.0
/* Packets: what is taken for one, and checksums, against literal bytes and a plain reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../packet.h"

#include <errno.h>
#include <stdlib.h>

/* 10.0.0.1 -> 10.0.0.2, UDP 7 -> 7, "abcd"; checksums by hand. */
static const uint8_t udp4[32] = { 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0x66, 0xca, 10,  0,   0,	 1,
				  10,	0, 0, 2,  0, 7, 0, 7, 0,  12, 0x26, 0xff, 'a', 'b', 'c', 'd' };
/* fd00::1 -> fd00::2, ICMPv6 echo request, id 1, seq 1. */
static const uint8_t icmp6[48] = { 0x60, 0, 0, 0, 0, 8, 58, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0,	 0, 0, 0, 0, 0, 0, 1,
				   0xfd, 0, 0, 0, 0, 0, 0,  0,	0,    0, 0, 0, 0, 0, 0, 2, 0x80, 0, 0, 0, 0, 1, 0, 1 };

/* RFC 1071, word by word. */
static uint16_t plain_sum(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

static void test_fields(void **state)
{
	struct packet p;

	(void)state;
	assert_int_equal(packet_parse(udp4, sizeof(udp4), sizeof(udp4), &p), 0);
	assert_int_equal(p.version, 4);
	assert_int_equal(p.protocol, 17);
	assert_int_equal(p.l3_length, 20);
	assert_int_equal(p.l4_length, 8);
	assert_int_equal(p.length, 32);
	assert_false(p.fragment);
	assert_memory_equal(p.source.b + 12, udp4 + 12, 4);
	assert_memory_equal(p.destination.b + 12, udp4 + 16, 4);
	assert_int_equal(packet_parse(icmp6, sizeof(icmp6), sizeof(icmp6), &p), 0);
	assert_int_equal(p.version, 6);
	assert_int_equal(p.length, 48);
	assert_memory_equal(p.source.b, icmp6 + 8, 16);
}

/* Each case spoils one byte of a good packet. */
static void test_refused(void **state)
{
	static const struct {
		const char *why;
		bool v6;
		size_t at;
		uint8_t value;
		uint32_t frame;
	} cases[] = {
		{ "version 5", false, 0, 0x55, 32 },
		{ "header of 16 bytes", false, 0, 0x44, 32 },
		{ "header beyond the frame", false, 0, 0x4f, 32 },
		{ "longer than the frame", false, 3, 33, 32 },
		{ "shorter than its header", false, 3, 19, 32 },
		{ "version 0", false, 0, 0x05, 32 },
		{ "payload beyond the frame", true, 5, 9, 48 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[48];
		struct packet p;

		memcpy(bytes, cases[i].v6 ? icmp6 : udp4, cases[i].v6 ? 48 : 32);
		bytes[cases[i].at] = cases[i].value;
		if (packet_parse(bytes, cases[i].frame, cases[i].frame, &p) != -EBADMSG)
			fail_msg("%s: taken", cases[i].why);
	}
	for (uint32_t length = 0; length < 20; length++) {
		struct packet p;
		assert_int_equal(packet_parse(udp4, length, length, &p), -EBADMSG);
	}
}

static void test_mapped_address_in_ipv6_is_refused(void **state)
{
	uint8_t bytes[48];
	struct packet p;

	(void)state;
	memcpy(bytes, icmp6, 48);
	memset(bytes + 8, 0, 10);
	memset(bytes + 18, 0xff, 2); /* ::ffff:0:1, which as a key would be 0.0.0.1 */
	assert_int_equal(packet_parse(bytes, 48, 48, &p), -EBADMSG);
}

static void test_fragment_has_no_transport(void **state)
{
	uint8_t bytes[32];
	struct packet p;

	(void)state;
	memcpy(bytes, udp4, 32);
	bytes[6] = 0x20; /* more fragments */
	assert_int_equal(packet_parse(bytes, 32, 32, &p), 0);
	assert_true(p.fragment);
	assert_int_equal(p.l4_length, 0);
}

static void test_checksums_of_known_packets(void **state)
{
	uint8_t bytes[48];
	struct packet p;

	(void)state;
	memcpy(bytes, udp4, 32);
	bytes[10] = bytes[11] = bytes[26] = bytes[27] = 0;
	assert_int_equal(packet_parse(bytes, 32, 32, &p), 0);
	packet_checksum_fill(bytes, &p);
	assert_int_equal(plain_sum(bytes, 20), 0);
	assert_memory_equal(bytes, udp4, 32);
	assert_true(packet_checksum_ok(bytes, &p));
	for (int i = 12; i < 32; i++) { /* a flipped bit anywhere that a checksum covers is seen */
		bytes[i] ^= 1;
		assert_false(packet_checksum_ok(bytes, &p));
		bytes[i] ^= 1;
	}
	memcpy(bytes, icmp6, 48);
	assert_int_equal(packet_parse(bytes, 48, 48, &p), 0);
	packet_checksum_fill(bytes, &p);
	assert_true(packet_checksum_ok(bytes, &p));
	bytes[47] ^= 1;
	assert_false(packet_checksum_ok(bytes, &p));
}

static void test_udp_without_checksum(void **state)
{
	uint8_t bytes[32];
	struct packet p;

	(void)state;
	memcpy(bytes, udp4, 32);
	bytes[26] = bytes[27] = 0;
	assert_int_equal(packet_parse(bytes, 32, 32, &p), 0);
	assert_true(packet_checksum_ok(bytes, &p));
}

/* The wide sum agrees with the plain one at all lengths, alignments and cuts. */
static void test_sum_against_reference(void **state)
{
	uint8_t bytes[200];

	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		size_t length = (size_t)random() % 190, start = (size_t)random() % 8, cut;
		bool odd = false;
		uint32_t sum;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = round % 3 ? (uint8_t)random() : 0xff;
		cut = length ? (size_t)random() % length : 0;
		sum = checksum_add(0, bytes + start, cut, &odd);
		sum = checksum_add(sum, bytes + start + cut, length - cut, &odd);
		/* 0 and 0xffff are one number in ones' complement; both sums end on the same one for non-zero data. */
		assert_int_equal(checksum_finish(sum), plain_sum(bytes + start, length));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mapped_address_in_ipv6_is_refused),
		cmocka_unit_test(test_fragment_has_no_transport),
		cmocka_unit_test(test_checksums_of_known_packets),
		cmocka_unit_test(test_udp_without_checksum),
		cmocka_unit_test(test_sum_against_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
