/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator says about a pipe: its name, its addresses, who may use it. As JSON in requests and in the state file. */
#ifndef DOCKDAEMON_PIPE_CONFIG_H
#define DOCKDAEMON_PIPE_CONFIG_H

#include "address.h"

#include <jansson.h>

#define PIPE_NAME_MAX 63

/* An interface address, or none: present is false. Index 0 is IPv4, 1 IPv6 everywhere. */
struct pipe_address {
	bool present;
	uint8_t prefix_len;
	bool has_gateway;
	struct ip_key ip;
	struct ip_key gateway;
};

enum { FAMILY_IPV4, FAMILY_IPV6, FAMILIES };

struct pipe_config {
	char name[PIPE_NAME_MAX + 1];
	struct pipe_address address[FAMILIES];
};

#define CONFIG_ERROR_SIZE 256

/*
 * pipe_config_from_json reads {"name":"web","addresses":["10.50.0.2/24","fd50::2/64"],"gateways":["10.50.0.1"]}.
 * Returns 0, or -EINVAL with what is wrong in error. An unknown member is an error, too: it is a typing mistake, and the
 * pipe would not be what its owner asked for.
 */
int pipe_config_from_json(json_t *object, struct pipe_config *config, char error[CONFIG_ERROR_SIZE]);

/* pipe_config_to_json returns a new object, or NULL without memory. */
json_t *pipe_config_to_json(const struct pipe_config *config);

/* pipe_name_valid: letters, digits, '-', '_', '.', beginning with a letter or digit. It becomes a directory's name. */
bool pipe_name_valid(const char *name);

#endif
