/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses. One key for both families: an IPv4 address is ::ffff:a.b.c.d (RFC 4291, 2.5.5.2), so that one hash table and
 * one comparison serve both.
 */
#ifndef DOCKDAEMON_ADDRESS_H
#define DOCKDAEMON_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct ip_key {
	uint8_t b[16];
};

struct mac_address {
	uint8_t b[6];
};

_Static_assert(sizeof(struct ip_key) == 16, "rte_hash compares 16 bytes");

static inline struct ip_key ip_key4(const void *bytes)
{
	struct ip_key k = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff } };
	memcpy(k.b + 12, bytes, 4);
	return k;
}

static inline struct ip_key ip_key6(const void *bytes)
{
	struct ip_key k;
	memcpy(k.b, bytes, 16);
	return k;
}

static inline bool ip_key_equal(const struct ip_key *a, const struct ip_key *b)
{
	return memcmp(a->b, b->b, 16) == 0;
}

static inline bool ip_key_is4(const struct ip_key *k)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	return memcmp(k->b, mapped, 12) == 0;
}

/* The link-local address of the container with this address: fe80::/64 and the address's own lower half, because all
 * pipes have one MAC address, and what is usually derived from that would be everybody's. */
static inline struct ip_key ip_key_link_local(const struct ip_key *global6)
{
	struct ip_key k = { { 0xfe, 0x80 } };
	memcpy(k.b + 8, global6->b + 8, 8);
	return k;
}

#define IP_TEXT_SIZE 56 /* an IPv6 address, '/', a prefix length, NUL */

/* ip_parse reads "10.50.0.2/24" or "fd50::2/64", or with prefix_len NULL an address alone. Returns 0 or -EINVAL. */
int ip_parse(const char *text, struct ip_key *key, uint8_t *prefix_len);

/* ip_format writes an address, with "/prefix_len" unless that is negative. */
const char *ip_format(const struct ip_key *key, int prefix_len, char out[IP_TEXT_SIZE]);

/* ip_is_host says whether it is an address that a host can have: not unspecified, loopback, multicast or broadcast. */
bool ip_is_host(const struct ip_key *key);

int mac_parse(const char *text, struct mac_address *mac);
const char *mac_format(const struct mac_address *mac, char out[18]);

#endif
