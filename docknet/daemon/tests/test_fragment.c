// SPDX-License-Identifier: Apache-2.0
/* Fragments: what a receiver puts together is what was cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../fragment.h"

#include <netinet/in.h>
#include <string.h>

#define DATAGRAM 4001u /* bytes of UDP header and payload: no multiple of 8 */

static uint8_t packet4[20 + DATAGRAM] = {
	0x45, 0, (20 + DATAGRAM) >> 8, (20 + DATAGRAM) & 0xff, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 10, 50, 0, 2, 10, 50,
	0,    1
};
static uint8_t packet6[40 + DATAGRAM] = { 0x60, 0,  0,	  0,	    DATAGRAM >> 8, DATAGRAM & 0xff,
					  17,	64, 0xfd, [23] = 2, 0xfd,	   [39] = 1 };

static void parse(uint8_t *bytes, uint32_t header, struct packet *p)
{
	for (uint32_t i = 0; i < DATAGRAM; i++)
		bytes[header + i] = (uint8_t)(i * 7 + i / 251);
	bytes[header + 4] = DATAGRAM >> 8;
	bytes[header + 5] = DATAGRAM & 0xff;
	assert_int_equal(packet_parse(bytes, PACKET_HEAD_MAX, header + DATAGRAM, p), 0);
	assert_int_equal(p->l3_length, header);
}

/* Cuts the packet and puts it together again, as RFC 791 and RFC 8200 say. */
static void cut(const uint8_t *bytes, const struct packet *p, uint32_t mtu)
{
	static uint8_t whole[DATAGRAM], fragment[65535];
	uint32_t at = 0, count = 0, header = p->version == 4 ? 20 : 48;
	bool more = true;

	memset(whole, 0, sizeof(whole));
	while (at < DATAGRAM) {
		uint32_t length = fragment_length(p, at, mtu), offset;
		uint32_t next = fragment_write(bytes, p, at, mtu, 0xabcd1234, fragment);

		assert_true(length <= mtu && length == header + next && next > 0);
		assert_true(more);
		if (p->version == 4) {
			struct packet parsed;

			assert_int_equal(packet_parse(fragment, PACKET_HEAD_MAX, length, &parsed), 0);
			assert_true(parsed.fragment);
			assert_true(packet_checksum_ok(fragment, &parsed));
			assert_int_equal(parsed.length, length);
			assert_memory_equal(fragment + 4, "\x12\x34", 2);
			offset = (uint32_t)((fragment[6] & 0x1f) << 8 | fragment[7]) * 8;
			more = fragment[6] & 0x20;
		} else {
			assert_int_equal(fragment[6], IPPROTO_FRAGMENT);
			assert_int_equal(fragment[4] << 8 | fragment[5], length - 40);
			assert_int_equal(fragment[40], 17);
			assert_memory_equal(fragment + 44, "\xab\xcd\x12\x34", 4);
			offset = (uint32_t)(fragment[42] << 8 | (fragment[43] & ~7));
			more = fragment[43] & 1;
		}
		assert_int_equal(offset, at);
		assert_true(offset + next <= DATAGRAM);
		memcpy(whole + offset, fragment + header, next);
		at += next;
		count++;
	}
	assert_false(more);
	assert_memory_equal(whole, bytes + p->l3_length, DATAGRAM);
	assert_true(count >= DATAGRAM / mtu);
}

static void test_cut(void **state)
{
	static const uint32_t mtus[] = { 576, 577, 583, 1280, 1500, 3400 };
	struct packet p4, p6;

	(void)state;
	parse(packet4, 20, &p4);
	parse(packet6, 40, &p6);
	for (unsigned int i = 0; i < sizeof(mtus) / sizeof(*mtus); i++) {
		assert_true(fragment_allowed(packet4, &p4, mtus[i]));
		assert_true(fragment_allowed(packet6, &p6, mtus[i]));
		cut(packet4, &p4, mtus[i]);
		cut(packet6, &p6, mtus[i]);
	}
}

static void test_not_allowed(void **state)
{
	struct packet p;

	(void)state;
	parse(packet4, 20, &p);
	assert_false(fragment_allowed(packet4, &p, 100));
	packet4[6] = 0x40;
	assert_false(fragment_allowed(packet4, &p, 1500));
	packet4[6] = 0x20;
	assert_int_equal(packet_parse(packet4, PACKET_HEAD_MAX, sizeof(packet4), &p), 0);
	assert_false(fragment_allowed(packet4, &p, 1500));
	packet4[6] = 0;
	packet6[6] = 0; /* hop-by-hop options */
	assert_int_equal(packet_parse(packet6, PACKET_HEAD_MAX, sizeof(packet6), &p), 0);
	assert_false(fragment_allowed(packet6, &p, 1500));
	packet6[6] = 17;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_not_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
