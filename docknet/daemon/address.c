// SPDX-License-Identifier: Apache-2.0
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Parses decimal digits alone: strtol would take signs and spaces. */
static int parse_prefix(const char *text, unsigned int max, uint8_t *prefix_len)
{
	unsigned int value = 0;

	if (*text == '\0' || strlen(text) > 3)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		value = value * 10 + (unsigned int)(*text - '0');
	}
	if (value > max)
		return -EINVAL;
	*prefix_len = (uint8_t)value;
	return 0;
}

int ip_parse(const char *text, struct ip_key *key, uint8_t *prefix_len)
{
	char address[IP_TEXT_SIZE];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned char bytes[16];
	struct ip_key parsed;
	unsigned int max;

	if (len >= sizeof(address) || (slash != NULL) != (prefix_len != NULL))
		return -EINVAL;
	memcpy(address, text, len);
	address[len] = '\0';
	if (inet_pton(AF_INET, address, bytes) == 1) {
		parsed = ip_key4(bytes);
		max = 32;
	} else if (inet_pton(AF_INET6, address, bytes) == 1) {
		parsed = ip_key6(bytes);
		max = 128;
		if (ip_key_is4(&parsed)) /* the key would be taken for the IPv4 address */
			return -EINVAL;
	} else {
		return -EINVAL;
	}
	if (prefix_len && parse_prefix(slash + 1, max, prefix_len) < 0)
		return -EINVAL;
	*key = parsed;
	return 0;
}

const char *ip_format(const struct ip_key *key, int prefix_len, char out[IP_TEXT_SIZE])
{
	bool v4 = ip_key_is4(key);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? key->b + 12 : key->b, out, IP_TEXT_SIZE);
	if (prefix_len >= 0) {
		size_t len = strlen(out);
		snprintf(out + len, IP_TEXT_SIZE - len, "/%d", prefix_len);
	}
	return out;
}

bool ip_is_host(const struct ip_key *key)
{
	static const struct ip_key unspecified, loopback6 = { { [15] = 1 } };

	if (ip_key_is4(key)) {
		uint8_t first = key->b[12];
		return first != 0 && first != 127 && first < 224;
	}
	return key->b[0] != 0xff && !ip_key_equal(key, &unspecified) && !ip_key_equal(key, &loopback6);
}

int mac_parse(const char *text, struct mac_address *mac)
{
	unsigned int b[6];
	char end;

	if (strlen(text) != 17 ||
	    sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &end) != 6)
		return -EINVAL;
	for (int i = 0; i < 6; i++)
		mac->b[i] = (uint8_t)b[i];
	return 0;
}

const char *mac_format(const struct mac_address *mac, char out[18])
{
	snprintf(out, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac->b[0], mac->b[1], mac->b[2], mac->b[3], mac->b[4],
		 mac->b[5]);
	return out;
}
