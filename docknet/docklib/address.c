/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - addresses as text, as docknet.h has them, and as lwIP has them. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "net.h"

int docknet_address_parse(const char *text, uint16_t port, struct docknet_address *address)
{
	struct docknet_address a = { .port = port };

	if (*text == 0)
		a.family = 0;
	else if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.family = 4;
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.family = 6;
	else
		return -EINVAL;
	*address = a;
	return 0;
}

void docknet_address_format(const struct docknet_address *address, char text[DOCKNET_ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "*";

	if (address->family != 0)
		inet_ntop(address->family == 6 ? AF_INET6 : AF_INET, address->bytes, host, sizeof host);
	snprintf(text, DOCKNET_ADDRESS_TEXT, address->family == 6 ? "[%s]:%u" : "%s:%u", host, address->port);
}

void address_to_lwip(const struct docknet_address *from, ip_addr_t *to)
{
	if (from->family == 0) {
		*to = *IP_ANY_TYPE;
	} else if (from->family == 4) {
		u32_t word;

		memcpy(&word, from->bytes, sizeof word);
		ip_addr_set_ip4_u32(to, word);
	} else {
		u32_t words[4];

		memcpy(words, from->bytes, sizeof words);
		IP_ADDR6(to, words[0], words[1], words[2], words[3]);
	}
}

void address_from_lwip(const ip_addr_t *from, uint16_t port, struct docknet_address *to)
{
	struct docknet_address a = { .port = port };

	if (IP_IS_V6_VAL(*from)) {
		a.family = 6;
		memcpy(a.bytes, ip_2_ip6(from)->addr, 16);
	} else if (IP_IS_V4_VAL(*from)) {
		u32_t word = ip4_addr_get_u32(ip_2_ip4(from));

		a.family = 4;
		memcpy(a.bytes, &word, sizeof word);
	}
	*to = a;
}

bool address_is_own(const struct docknet *net, const struct docknet_address *address)
{
	for (unsigned i = 0; i < DP_ADDRESSES_MAX; i++) {
		const struct dp_address *own = &net->welcome.address[i];

		if (own->family != 0 && own->family == address->family &&
		    memcmp(own->bytes, address->bytes, own->family == 4 ? 4 : 16) == 0)
			return true;
	}
	return false;
}

const char *docknet_name(const struct docknet *net)
{
	return net->welcome.name;
}

int docknet_address(const struct docknet *net, unsigned i, struct docknet_address *address)
{
	const struct dp_address *own;

	if (i >= DP_ADDRESSES_MAX || net->welcome.address[i].family == 0)
		return -ENOENT;
	own = &net->welcome.address[i];
	*address = (struct docknet_address){ .family = own->family };
	memcpy(address->bytes, own->bytes, sizeof own->bytes);
	return 0;
}

int errno_of(err_t err)
{
	switch (err) {
	case ERR_OK:
		return 0;
	case ERR_MEM:
	case ERR_BUF:
		return -ENOBUFS;
	case ERR_TIMEOUT:
		return -ETIMEDOUT;
	case ERR_RTE:
		return -ENETUNREACH;
	case ERR_USE:
		return -EADDRINUSE;
	case ERR_ALREADY:
		return -EALREADY;
	case ERR_ISCONN:
		return -EISCONN;
	case ERR_CONN:
		return -ENOTCONN;
	case ERR_RST:
		return -ECONNRESET;
	default:
		return -EINVAL;
	}
}
