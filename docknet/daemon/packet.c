// SPDX-License-Identifier: Apache-2.0
#include "packet.h"

#include <errno.h>
#include <netinet/in.h>

#define IPV4_HEADER 20u
#define IPV6_HEADER 40u
#define TCP_HEADER  20u

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* The transport header's length, 0 where it is none that we work on. */
static uint16_t transport_length(const uint8_t *l4, uint32_t available, uint8_t protocol)
{
	uint32_t length = 0;

	switch (protocol) {
	case IPPROTO_TCP:
		if (available < TCP_HEADER)
			return 0;
		length = (l4[12] >> 4) * 4u;
		if (length < TCP_HEADER)
			return 0;
		break;
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		length = 8;
		break;
	}
	return length <= available ? (uint16_t)length : 0;
}

static int parse4(const uint8_t *head, uint32_t head_length, uint32_t frame_length, struct packet *p)
{
	uint32_t header, offset;

	if (head_length < IPV4_HEADER)
		return -EBADMSG;
	header = (head[0] & 0xf) * 4u;
	p->length = be16(head + 2);
	if (header < IPV4_HEADER || header > head_length || p->length < header || p->length > frame_length)
		return -EBADMSG;
	offset = be16(head + 6);
	p->fragment = (offset & 0x3fff) != 0; /* more fragments, or not the first */
	p->l3_length = (uint16_t)header;
	p->protocol = head[9];
	p->source = ip_key4(head + 12);
	p->destination = ip_key4(head + 16);
	return 0;
}

static int parse6(const uint8_t *head, uint32_t head_length, uint32_t frame_length, struct packet *p)
{
	if (head_length < IPV6_HEADER)
		return -EBADMSG;
	p->length = IPV6_HEADER + be16(head + 4);
	if (p->length > frame_length)
		return -EBADMSG;
	p->l3_length = IPV6_HEADER;
	p->protocol = head[6];
	p->fragment = p->protocol == IPPROTO_FRAGMENT;
	p->source = ip_key6(head + 8);
	p->destination = ip_key6(head + 24);
	/* ::ffff:0:0/96 never is on a wire (RFC 4291): as a key it would pass for an IPv4 address. */
	if (ip_key_is4(&p->source) || ip_key_is4(&p->destination))
		return -EBADMSG;
	return 0;
}

int packet_parse(const uint8_t *head, uint32_t head_length, uint32_t frame_length, struct packet *packet)
{
	struct packet p = { .version = 0 };
	int r = -EBADMSG;

	if (head_length < 1)
		return -EBADMSG;
	p.version = head[0] >> 4;
	if (p.version == 4)
		r = parse4(head, head_length, frame_length, &p);
	else if (p.version == 6)
		r = parse6(head, head_length, frame_length, &p);
	if (r < 0)
		return r;
	if (!p.fragment) {
		uint32_t end = p.length < head_length ? p.length : head_length;
		p.l4_length = transport_length(head + p.l3_length, end - p.l3_length, p.protocol);
	}
	*packet = p;
	return 0;
}

uint32_t checksum_add(uint32_t sum, const void *bytes, size_t length, bool *odd)
{
	const uint8_t *p = bytes;
	uint64_t wide = 0;

	if (*odd && length > 0) {
		wide += *p++;
		length--;
		*odd = false;
	}
	/* Eight bytes at a time, in the machine's order: the sum's order of bytes does not depend on it (RFC 1071, 2.B). */
	uint64_t native = 0;
	for (; length >= 8; length -= 8, p += 8) {
		uint64_t word;

		memcpy(&word, p, 8);
		native += word;
		native += native < word; /* end-around carry */
	}
	native = (native >> 32) + (native & 0xffffffff);
	native = (native >> 32) + (native & 0xffffffff);
	native = (native >> 16) + (native & 0xffff);
	native = (native >> 16) + (native & 0xffff);
	wide += ntohs((uint16_t)native);
	for (; length >= 2; length -= 2, p += 2)
		wide += be16(p);
	if (length) {
		wide += (uint32_t)*p << 8;
		*odd = true;
	}
	wide += sum;
	while (wide >> 16)
		wide = (wide >> 16) + (wide & 0xffff);
	return (uint32_t)wide;
}

uint16_t checksum_finish(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

uint32_t checksum_pseudo(const struct packet *packet, uint32_t l4_total)
{
	bool odd = false;
	size_t skip = packet->version == 4 ? 12 : 0; /* the mapped prefix is no part of the address */
	uint32_t sum;

	if (packet->version == 4 && packet->protocol == IPPROTO_ICMP)
		return 0;
	sum = checksum_add(0, packet->source.b + skip, 16 - skip, &odd);
	sum = checksum_add(sum, packet->destination.b + skip, 16 - skip, &odd);
	return sum + (l4_total >> 16) + (l4_total & 0xffff) + packet->protocol;
}

int checksum_offset(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return 16;
	case IPPROTO_UDP:
		return 6;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return 2;
	}
	return -1;
}

static uint16_t transport_sum(const uint8_t *bytes, const struct packet *p)
{
	uint32_t total = p->length - p->l3_length;
	bool odd = false;

	return checksum_finish(checksum_add(checksum_pseudo(p, total), bytes + p->l3_length, total, &odd));
}

void packet_checksum_fill(uint8_t *bytes, const struct packet *packet)
{
	uint8_t *field;
	uint16_t sum;
	bool odd = false;

	if (packet->version == 4) {
		put16(bytes + 10, 0);
		put16(bytes + 10, checksum_finish(checksum_add(0, bytes, packet->l3_length, &odd)));
	}
	if (packet->l4_length == 0)
		return;
	field = bytes + packet->l3_length + checksum_offset(packet->protocol);
	put16(field, 0);
	sum = transport_sum(bytes, packet);
	/* In UDP 0 means "no checksum", so its 0 is written as the other representation of zero. */
	put16(field, sum == 0 && packet->protocol == IPPROTO_UDP ? 0xffff : sum);
}

bool packet_checksum_ok(const uint8_t *bytes, const struct packet *packet)
{
	bool odd = false;

	if (packet->version == 4 && checksum_finish(checksum_add(0, bytes, packet->l3_length, &odd)) != 0)
		return false;
	if (packet->l4_length == 0)
		return true;
	if (packet->version == 4 && packet->protocol == IPPROTO_UDP && be16(bytes + packet->l3_length + 6) == 0)
		return true; /* sent without one, which IPv4 allows */
	return transport_sum(bytes, packet) == 0;
}
