// SPDX-License-Identifier: Apache-2.0
#include "fragment.h"

#include <netinet/in.h>
#include <string.h>

#define IPV4_MORE	    0x2000u
#define IPV4_DONT	    0x40u /* in the flags' first byte */
#define IPV6_FRAGMENT_BYTES 8u

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static uint32_t headers(const struct packet *p)
{
	return p->l3_length + (p->version == 6 ? IPV6_FRAGMENT_BYTES : 0);
}

/* Bytes behind the headers of the fragment at an offset: all but the last have a multiple of 8. */
static uint32_t payload(const struct packet *p, uint32_t at, uint32_t mtu)
{
	uint32_t left = p->length - p->l3_length - at, most = mtu - headers(p);

	return left <= most ? left : most & ~7u;
}

bool fragment_allowed(const uint8_t *bytes, const struct packet *p, uint32_t mtu)
{
	if (p->fragment || mtu < FRAGMENT_MTU_MIN)
		return false;
	if (p->version == 4)
		return (bytes[6] & IPV4_DONT) == 0;
	return p->l4_length > 0;
}

uint32_t fragment_length(const struct packet *p, uint32_t at, uint32_t mtu)
{
	return headers(p) + payload(p, at, mtu);
}

uint32_t fragment_write(const uint8_t *bytes, const struct packet *p, uint32_t at, uint32_t mtu, uint32_t id,
			uint8_t *out)
{
	uint32_t length = payload(p, at, mtu);
	bool more = at + length < p->length - p->l3_length, odd = false;

	memcpy(out, bytes, p->l3_length);
	memcpy(out + headers(p), bytes + p->l3_length + at, length);
	if (p->version == 4) {
		/* Options that are not for all fragments stay in them, too: containers have none. */
		put16(out + 2, p->l3_length + length);
		put16(out + 6, at / 8 | (more ? IPV4_MORE : 0));
		put16(out + 10, 0);
		put16(out + 10, checksum_finish(checksum_add(0, out, p->l3_length, &odd)));
	} else {
		uint8_t *fragment = out + p->l3_length;

		put16(out + 4, IPV6_FRAGMENT_BYTES + length);
		out[6] = IPPROTO_FRAGMENT;
		fragment[0] = p->protocol;
		fragment[1] = 0;
		put16(fragment + 2, at | (more ? 1 : 0));
		put16(fragment + 4, id >> 16);
		put16(fragment + 6, id & 0xffff);
	}
	return length;
}
