// SPDX-License-Identifier: Apache-2.0
#include "neighbor.h"

#include "packet.h"

#include <netinet/in.h>

#define ARP_LENGTH     28u
#define ARP_OP_REQUEST 1
#define ARP_OP_REPLY   2

#define IPV6_LENGTH	 40u
#define ND_LENGTH	 24u /* solicitation or advertisement without options */
#define ND_SOLICITATION	 135
#define ND_ADVERTISEMENT 136
#define ND_OPTION_SOURCE 1
#define ND_OPTION_TARGET 2
#define ND_HOPS		 255 /* not forwarded by any router, so from this link */

static const struct mac_address broadcast = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };
static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static bool mac_unicast(const uint8_t *mac)
{
	static const uint8_t none[6];

	return !(mac[0] & 1) && memcmp(mac, none, 6) != 0;
}

static enum neighbor_kind parse_arp(const uint8_t *arp, size_t length, struct neighbor_message *m)
{
	static const uint8_t ethernet_ipv4[6] = { 0, 1, 0x08, 0x00, 6, 4 };
	static const uint8_t no_address[4];
	uint32_t op;

	if (length < ARP_LENGTH || memcmp(arp, ethernet_ipv4, 6) || !mac_unicast(arp + 8))
		return NEIGHBOR_NONE;
	op = be16(arp + 6);
	memcpy(m->mac.b, arp + 8, 6);
	m->subject = ip_key4(arp + 14);
	m->has_subject = memcmp(arp + 14, no_address, 4) != 0; /* an ARP probe (RFC 5227) has none */
	m->target = ip_key4(arp + 24);
	if (op == ARP_OP_REQUEST)
		return NEIGHBOR_REQUEST;
	return op == ARP_OP_REPLY && m->has_subject ? NEIGHBOR_REPLY : NEIGHBOR_NONE;
}

/* The link-layer address option of the given type; NULL: there is none, or the options are broken (*ok false). */
static const uint8_t *find_option(const uint8_t *options, size_t length, uint8_t type, bool *ok)
{
	const uint8_t *found = NULL;

	*ok = true;
	while (length > 0) {
		size_t size;

		/* An option of length 0 would never end (RFC 4861, 4.6). */
		if (length < 8 || options[1] == 0 || (size = options[1] * 8u) > length) {
			*ok = false;
			return NULL;
		}
		if (options[0] == type && size == 8 && !found)
			found = options + 2;
		options += size;
		length -= size;
	}
	return found;
}

static enum neighbor_kind parse_nd(const uint8_t *frame, const uint8_t *ip, size_t length, struct neighbor_message *m)
{
	static const struct ip_key unspecified;
	const uint8_t *nd = ip + IPV6_LENGTH, *mac;
	struct packet p;
	bool ok;

	if (packet_parse(ip, length < PACKET_HEAD_MAX ? (uint32_t)length : PACKET_HEAD_MAX, (uint32_t)length, &p) < 0 ||
	    p.version != 6 || p.protocol != IPPROTO_ICMPV6 || p.length < IPV6_LENGTH + ND_LENGTH)
		return NEIGHBOR_NONE;
	if ((nd[0] != ND_SOLICITATION && nd[0] != ND_ADVERTISEMENT) || nd[1] != 0 || ip[7] != ND_HOPS ||
	    nd[8] == 0xff || !packet_checksum_ok(ip, &p))
		return NEIGHBOR_NONE;
	mac = find_option(nd + ND_LENGTH, p.length - IPV6_LENGTH - ND_LENGTH,
			  nd[0] == ND_SOLICITATION ? ND_OPTION_SOURCE : ND_OPTION_TARGET, &ok);
	if (!ok || (mac && !mac_unicast(mac)))
		return NEIGHBOR_NONE;
	m->target = ip_key6(nd + 8);
	if (nd[0] == ND_ADVERTISEMENT) {
		/* Without the option it may come as an answer to a unicast request: then the frame's sender says it. */
		m->subject = m->target;
		m->has_subject = true;
		memcpy(m->mac.b, mac ? mac : frame + 6, 6);
		return mac_unicast(m->mac.b) ? NEIGHBOR_REPLY : NEIGHBOR_NONE;
	}
	m->duplicate_detection = ip_key_equal(&p.source, &unspecified);
	if (m->duplicate_detection && mac)
		return NEIGHBOR_NONE;
	m->subject = p.source;
	m->has_subject = mac != NULL;
	memcpy(m->mac.b, mac ? mac : frame + 6, 6);
	return mac_unicast(m->mac.b) ? NEIGHBOR_REQUEST : NEIGHBOR_NONE;
}

enum neighbor_kind neighbor_parse(const uint8_t *frame, size_t length, struct neighbor_message *message)
{
	struct neighbor_message m = { .kind = NEIGHBOR_NONE };

	if (length >= ETHER_HEADER) {
		uint32_t type = be16(frame + 12);
		const uint8_t *body = frame + ETHER_HEADER;

		if (type == ETHER_ARP)
			m.kind = parse_arp(body, length - ETHER_HEADER, &m);
		else if (type == ETHER_IPV6)
			m.kind = parse_nd(frame, body, length - ETHER_HEADER, &m);
	}
	*message = m;
	return m.kind;
}

static void write_ether(uint8_t *out, const struct mac_address *to, const struct mac_address *from, uint16_t type)
{
	memcpy(out, to->b, 6);
	memcpy(out + 6, from->b, 6);
	out[12] = (uint8_t)(type >> 8);
	out[13] = (uint8_t)type;
}

static size_t write_arp(uint8_t *out, uint8_t op, const struct mac_address *own, const struct ip_key *sender,
			const struct mac_address *to, const struct ip_key *target)
{
	static const uint8_t ethernet_ipv4[7] = { 0, 1, 0x08, 0x00, 6, 4, 0 };
	uint8_t *arp = out + ETHER_HEADER;

	write_ether(out, to, own, ETHER_ARP);
	memcpy(arp, ethernet_ipv4, 7);
	arp[7] = op;
	memcpy(arp + 8, own->b, 6);
	memcpy(arp + 14, sender->b + 12, 4);
	if (op == ARP_OP_REQUEST)
		memset(arp + 18, 0, 6); /* what is asked for */
	else
		memcpy(arp + 18, to->b, 6);
	memcpy(arp + 24, target->b + 12, 4);
	return ETHER_HEADER + ARP_LENGTH;
}

/* Writes a solicitation or an advertisement with its one option. */
static size_t write_nd(uint8_t *out, uint8_t type, const struct mac_address *own, const uint8_t *source,
		       const struct mac_address *to, const uint8_t *destination, const struct ip_key *target,
		       uint8_t flags)
{
	uint8_t *ip = out + ETHER_HEADER, *nd = ip + IPV6_LENGTH;
	struct packet p;

	write_ether(out, to, own, ETHER_IPV6);
	memset(ip, 0, IPV6_LENGTH + ND_LENGTH);
	ip[0] = 0x60;
	ip[5] = ND_LENGTH + 8;
	ip[6] = IPPROTO_ICMPV6;
	ip[7] = ND_HOPS;
	memcpy(ip + 8, source, 16);
	memcpy(ip + 24, destination, 16);
	nd[0] = type;
	nd[4] = flags;
	memcpy(nd + 8, target->b, 16);
	nd[24] = type == ND_SOLICITATION ? ND_OPTION_SOURCE : ND_OPTION_TARGET;
	nd[25] = 1;
	memcpy(nd + 26, own->b, 6);
	(void)packet_parse(ip, IPV6_LENGTH + ND_LENGTH + 8, IPV6_LENGTH + ND_LENGTH + 8, &p);
	packet_checksum_fill(ip, &p);
	return ETHER_HEADER + IPV6_LENGTH + ND_LENGTH + 8;
}

size_t neighbor_answer(const struct neighbor_message *request, const struct mac_address *own,
		       uint8_t out[NEIGHBOR_FRAME])
{
	static const uint8_t solicited_override = 0x60, override = 0x20;

	if (ip_key_is4(&request->target)) {
		return write_arp(out, ARP_OP_REPLY, own, &request->target, &request->mac, &request->subject);
	} else if (request->duplicate_detection) {
		struct mac_address all = { { 0x33, 0x33, 0, 0, 0, 1 } };
		return write_nd(out, ND_ADVERTISEMENT, own, request->target.b, &all, all_nodes, &request->target,
				override);
	}
	return write_nd(out, ND_ADVERTISEMENT, own, request->target.b, &request->mac, request->subject.b,
			&request->target, solicited_override);
}

size_t neighbor_ask(const struct ip_key *target, const struct ip_key *sender, const struct mac_address *own,
		    uint8_t out[NEIGHBOR_FRAME])
{
	uint8_t group[16] = { 0xff, 0x02, [11] = 1, [12] = 0xff }; /* the solicited-node address (RFC 4291, 2.7.1) */
	struct mac_address to = { { 0x33, 0x33, 0xff, target->b[13], target->b[14], target->b[15] } };

	if (ip_key_is4(target))
		return write_arp(out, ARP_OP_REQUEST, own, sender, &broadcast, target);
	memcpy(group + 13, target->b + 13, 3);
	return write_nd(out, ND_SOLICITATION, own, sender->b, &to, group, target, 0);
}
