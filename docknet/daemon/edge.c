// SPDX-License-Identifier: Apache-2.0
#include "edge.h"

#include "fragment.h"
#include "neighbor.h"

#include <errno.h>
#include <netinet/in.h>
#include <rte_random.h>

#define TCP_FLAGS   13u
#define TCP_FIN_PSH 0x09u
#define TCP_CWR	    0x80u

/* Where in a frame's segments reading has come to. */
struct reader {
	const struct dp_frame *frame;
	uint32_t segment, offset;
};

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(uint8_t *p, uint32_t value)
{
	put16(p, value >> 16);
	put16(p + 2, value & 0xffff);
}

/* Copies the next bytes, or with to NULL passes over them. The caller asks for no more than there are. */
static void read_bytes(struct reader *r, uint8_t *to, uint32_t length)
{
	while (length > 0) {
		const struct dp_segment *s = &r->frame->segment[r->segment];
		uint32_t n = RTE_MIN(length, s->length - r->offset);

		if (to) {
			memcpy(to, s->data + r->offset, n);
			to += n;
		}
		length -= n;
		r->offset += n;
		if (r->offset == s->length) {
			r->segment++;
			r->offset = 0;
		}
	}
}

/* Asks the NIC to fill in what it can, and fills in the rest. The packet lies in one piece at bytes. */
static void finish(struct nic *nic, struct rte_mbuf *m, uint8_t *bytes, const struct packet *p)
{
	bool tcp = p->protocol == IPPROTO_TCP && nic->fills_tcp, udp = p->protocol == IPPROTO_UDP && nic->fills_udp;

	if (p->l4_length == 0 || !(tcp || udp) || (p->version == 4 && !nic->fills_ipv4)) {
		packet_checksum_fill(bytes, p);
		return;
	}
	m->l2_len = ETHER_HEADER;
	m->l3_len = p->l3_length;
	m->ol_flags |= tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
	if (p->version == 4) {
		m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
		put16(bytes + 10, 0);
	} else {
		m->ol_flags |= RTE_MBUF_F_TX_IPV6;
	}
	/* The NIC wants the pseudo header's sum, not inverted, where the checksum goes. */
	put16(bytes + p->l3_length + checksum_offset(p->protocol),
	      (uint16_t)~checksum_finish(checksum_pseudo(p, p->length - p->l3_length)));
}

/* A buffer with room for the Ethernet header and length bytes; *bytes is where the packet goes. */
static struct rte_mbuf *new_frame(struct nic *nic, uint32_t length, uint8_t **bytes)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(nic->pool);
	char *start;

	if (!m)
		return NULL;
	start = rte_pktmbuf_append(m, (uint16_t)(ETHER_HEADER + length));
	if (!start) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	*bytes = (uint8_t *)start + ETHER_HEADER;
	return m;
}

/* The frame fits: one copy, and checksums unless the container has filled them in itself. */
static int whole(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, uint32_t head_length,
		 const struct packet *packet, void (*emit)(struct rte_mbuf *, void *), void *context)
{
	struct reader r = { .frame = frame };
	uint8_t *bytes;
	struct rte_mbuf *m = new_frame(nic, packet->length, &bytes);

	if (!m)
		return -ENOMEM;
	head_length = RTE_MIN(head_length, packet->length);
	memcpy(bytes, head, head_length);
	read_bytes(&r, NULL, head_length);
	read_bytes(&r, bytes + head_length, packet->length - head_length);
	if (frame->flags & DP_DESC_CSUM_ELIDED)
		finish(nic, m, bytes, packet);
	emit(m, context);
	return 1;
}

/* A datagram that is longer than the MTU leaves in fragments. Its checksum is over all of it, so it is put together first. */
static int fragments(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, uint32_t head_length,
		     const struct packet *packet, void (*emit)(struct rte_mbuf *, void *), void *context)
{
	static _Thread_local uint8_t datagram[DP_FRAME_MAX];
	struct reader r = { .frame = frame };
	uint32_t id = (uint32_t)rte_rand(), at = 0;
	int count = 0;

	head_length = RTE_MIN(head_length, packet->length);
	memcpy(datagram, head, head_length);
	read_bytes(&r, NULL, head_length);
	read_bytes(&r, datagram + head_length, packet->length - head_length);
	if (!fragment_allowed(datagram, packet, nic->mtu))
		return -EMSGSIZE;
	if (frame->flags & DP_DESC_CSUM_ELIDED)
		packet_checksum_fill(datagram, packet);
	while (at < packet->length - packet->l3_length) {
		uint8_t *bytes;
		struct rte_mbuf *m = new_frame(nic, fragment_length(packet, at, nic->mtu), &bytes);

		if (!m)
			return -ENOMEM; /* the rest is of no use to the receiver, which drops it after a while */
		at += fragment_write(datagram, packet, at, nic->mtu, id, bytes);
		emit(m, context);
		count++;
	}
	return count;
}

/* One TCP segment's header: that of the whole frame, at another place of the stream (RFC 9293). */
static void segment_header(uint8_t *header, struct packet *p, uint32_t index, uint32_t at, uint32_t payload, bool last)
{
	uint8_t *tcp = header + p->l3_length;

	p->length = p->l3_length + p->l4_length + payload;
	if (p->version == 4) {
		put16(header + 2, p->length);
		put16(header + 4, (((uint32_t)header[4] << 8 | header[5]) + index) & 0xffff);
	} else {
		put16(header + 4, p->length - p->l3_length);
	}
	put32(tcp + 4, get32(tcp + 4) + at);
	if (!last)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_FIN_PSH;
	if (index > 0)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR; /* once per window (RFC 3168, 6.1.2) */
}

static int segments(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, const struct packet *packet,
		    uint32_t segment_size, void (*emit)(struct rte_mbuf *, void *), void *context)
{
	uint32_t headers = packet->l3_length + packet->l4_length, total = packet->length - headers, at = 0;
	struct reader r = { .frame = frame };
	int count = 0;

	read_bytes(&r, NULL, headers);
	while (at < total) {
		uint32_t payload = RTE_MIN(segment_size, total - at);
		struct packet p = *packet;
		uint8_t *bytes;
		struct rte_mbuf *m = new_frame(nic, headers + payload, &bytes);

		if (!m)
			return -ENOMEM; /* TCP sends the rest again */
		memcpy(bytes, head, headers);
		segment_header(bytes, &p, (uint32_t)count, at, payload, at + payload == total);
		read_bytes(&r, bytes + headers, payload);
		finish(nic, m, bytes, &p);
		emit(m, context);
		at += payload;
		count++;
	}
	return count;
}

/* A NIC that segments gets the frame as a chain of buffers. */
static int chain(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, const struct packet *packet,
		 uint32_t segment_size, void (*emit)(struct rte_mbuf *, void *), void *context)
{
	uint32_t headers = packet->l3_length + packet->l4_length, left = packet->length - headers;
	struct reader r = { .frame = frame };
	uint8_t *bytes;
	struct rte_mbuf *first = new_frame(nic, headers, &bytes);

	if (!first)
		return -ENOMEM;
	memcpy(bytes, head, headers);
	read_bytes(&r, NULL, headers);
	while (left > 0) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(nic->pool);
		uint32_t n = m ? RTE_MIN(left, (uint32_t)rte_pktmbuf_tailroom(m)) : 0;

		if (!m || rte_pktmbuf_chain(first, m) < 0) {
			rte_pktmbuf_free(m);
			rte_pktmbuf_free(first);
			return -ENOMEM;
		}
		read_bytes(&r, (uint8_t *)rte_pktmbuf_mtod(m, uint8_t *), n);
		m->data_len = (uint16_t)n;
		first->pkt_len += n;
		left -= n;
	}
	first->l2_len = ETHER_HEADER;
	first->l3_len = packet->l3_length;
	first->l4_len = packet->l4_length;
	first->tso_segsz = (uint16_t)segment_size;
	first->ol_flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
	first->ol_flags |= packet->version == 4 ? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM : RTE_MBUF_F_TX_IPV6;
	if (packet->version == 4)
		put16(bytes + 10, 0);
	/* For segmentation the pseudo header's sum leaves out the length (rte_ethdev's rule for TSO). */
	put16(bytes + packet->l3_length + 16, (uint16_t)~checksum_finish(checksum_pseudo(packet, 0)));
	emit(first, context);
	return 1;
}

int edge_cut(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, uint32_t head_length,
	     const struct packet *packet, void (*emit)(struct rte_mbuf *, void *), void *context)
{
	uint32_t headers = packet->l3_length + packet->l4_length, size;

	if (packet->protocol != IPPROTO_TCP || packet->l4_length == 0 || headers > head_length ||
	    packet->length <= headers || (frame->gso_size == 0 && packet->length <= nic->mtu)) {
		if (packet->length > nic->mtu)
			return fragments(nic, frame, head, head_length, packet, emit, context);
		return whole(nic, frame, head, head_length, packet, emit, context);
	}
	size = nic->mtu - headers;
	if (frame->gso_size != 0 && frame->gso_size < size)
		size = frame->gso_size > EDGE_SEGMENT_MIN ? frame->gso_size : EDGE_SEGMENT_MIN;
	if (packet->length - headers <= size)
		return whole(nic, frame, head, head_length, packet, emit, context);
	if (nic->segments)
		return chain(nic, frame, head, packet, size, emit, context);
	return segments(nic, frame, head, packet, size, emit, context);
}

void edge_ether(struct rte_mbuf *frame, const struct mac_address *to, const struct mac_address *from, bool ipv4)
{
	uint8_t *ether = rte_pktmbuf_mtod(frame, uint8_t *);

	memcpy(ether, to->b, 6);
	memcpy(ether + 6, from->b, 6);
	put16(ether + 12, ipv4 ? ETHER_IPV4 : ETHER_IPV6);
}
