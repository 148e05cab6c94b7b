/* SPDX-License-Identifier: Apache-2.0 */
/* What the master needs to know of an IP packet: where from, where to, and what its checksums cover. */
#ifndef DOCKDAEMON_PACKET_H
#define DOCKDAEMON_PACKET_H

#include "address.h"

/* Enough of a packet's head for every decision: an IPv6 or IPv4 header of full length and a TCP header of full length. */
#define PACKET_HEAD_MAX 128u

struct packet {
	struct ip_key source, destination;
	uint32_t length;    /* of the IP packet; a frame from an Ethernet may have padding behind */
	uint16_t l3_length; /* of the IP header: the transport header begins here */
	uint16_t
		l4_length; /* of the transport header, 0 if it is not TCP, UDP, ICMP or ICMPv6, or is not in the head */
	uint8_t version;   /* 4 or 6 */
	uint8_t protocol;  /* IPPROTO_*; of an IPv6 packet its header's "next header": extensions stay unknown */
	bool fragment;	   /* a part of a datagram: its transport checksum cannot be computed */
};

/*
 * packet_parse reads the head (head_length bytes, up to PACKET_HEAD_MAX) of a frame of frame_length bytes. Returns 0, or
 * -EBADMSG if it is no IP packet, or one whose lengths contradict each other.
 */
int packet_parse(const uint8_t *head, uint32_t head_length, uint32_t frame_length, struct packet *packet);

/* The Internet checksum's running sum (RFC 1071) over bytes, continued from sum; odd tells that an odd number of bytes
 * was summed before, and is updated. */
uint32_t checksum_add(uint32_t sum, const void *bytes, size_t length, bool *odd);
uint16_t checksum_finish(uint32_t sum);

/* The sum over the pseudo header for l4_total bytes of transport header and payload. */
uint32_t checksum_pseudo(const struct packet *packet, uint32_t l4_total);

/* Where in the transport header its checksum is; -1: the protocol has none that we know. */
int checksum_offset(uint8_t protocol);

/* Fill in all checksums of a packet that lies in one piece. */
void packet_checksum_fill(uint8_t *bytes, const struct packet *packet);

/* Whether all checksums of a packet that lies in one piece are right. Fragments' transport checksums are not looked at. */
bool packet_checksum_ok(const uint8_t *bytes, const struct packet *packet);

#endif
