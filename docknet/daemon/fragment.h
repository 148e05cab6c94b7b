/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a datagram into fragments: IPv4's (RFC 791) and IPv6's (RFC 8200, 4.5). */
#ifndef DOCKDAEMON_FRAGMENT_H
#define DOCKDAEMON_FRAGMENT_H

#include "packet.h"

/* The smallest MTU that IPv4 (RFC 791) and IPv6 (RFC 8200) know are larger: it bounds how many fragments there can be. */
#define FRAGMENT_MTU_MIN 576u

/* Whether the packet, which lies in one piece at bytes, may be cut: an IPv4 packet that does not forbid it, or an IPv6
 * packet of TCP, UDP or ICMPv6 without extension headers; not a fragment itself. */
bool fragment_allowed(const uint8_t *bytes, const struct packet *packet, uint32_t mtu);

/* The length of the fragment, headers and all, that begins at offset at (a multiple of 8) of what follows the IP header. */
uint32_t fragment_length(const struct packet *packet, uint32_t at, uint32_t mtu);

/* Write that fragment to out. Returns where the next one begins, counted from this one. id: the same for all of a packet;
 * IPv4 has its own in the header. */
uint32_t fragment_write(const uint8_t *bytes, const struct packet *packet, uint32_t at, uint32_t mtu, uint32_t id,
			uint8_t *out);

#endif
