// SPDX-License-Identifier: Apache-2.0
#include "pipe_config.h"

#include <errno.h>
#include <stdio.h>

#define FAIL(...)                                                                                                      \
	do {                                                                                                           \
		snprintf(error, CONFIG_ERROR_SIZE, __VA_ARGS__);                                                       \
		return -EINVAL;                                                                                        \
	} while (0)

bool pipe_name_valid(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t len = strlen(name);

	return len > 0 && len <= PIPE_NAME_MAX && strspn(name, allowed) == len && strchr("-_.", name[0]) == NULL;
}

/* A string of JSON may hold NUL bytes; what C sees must be all of it. */
static const char *whole_string(json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static int read_address(struct pipe_config *config, const char *text, char *error)
{
	struct pipe_address a = { .present = true };
	struct pipe_address *slot;

	if (ip_parse(text, &a.ip, &a.prefix_len) < 0)
		FAIL("address \"%.64s\": want an address and a prefix length, such as 10.50.0.2/24 or fd50::2/64",
		     text);
	if (!ip_is_host(&a.ip))
		FAIL("address \"%s\" cannot be a container's", text);
	slot = &config->address[ip_key_is4(&a.ip) ? FAMILY_IPV4 : FAMILY_IPV6];
	if (slot->present)
		FAIL("address \"%s\": a pipe has one IPv4 and one IPv6 address at most", text);
	*slot = a;
	return 0;
}

static int read_gateway(struct pipe_config *config, const char *text, char *error)
{
	struct pipe_address *a;
	struct ip_key gateway;

	if (ip_parse(text, &gateway, NULL) < 0 || !ip_is_host(&gateway))
		FAIL("gateway \"%.64s\": want an address, such as 10.50.0.1 or fd50::1", text);
	a = &config->address[ip_key_is4(&gateway) ? FAMILY_IPV4 : FAMILY_IPV6];
	if (!a->present)
		FAIL("gateway \"%s\": the pipe has no address of this family", text);
	if (a->has_gateway)
		FAIL("gateway \"%s\": there is one already", text);
	a->has_gateway = true;
	a->gateway = gateway;
	return 0;
}

/* read_list calls read for each string of an array; an absent array is an empty one. */
static int read_list(struct pipe_config *config, json_t *array, const char *member,
		     int (*read)(struct pipe_config *, const char *, char *), char *error)
{
	size_t i;
	json_t *value;

	if (!array)
		return 0;
	if (!json_is_array(array))
		FAIL("\"%s\": want an array of strings", member);
	json_array_foreach(array, i, value)
	{
		const char *text = whole_string(value);
		int r;

		if (!text)
			FAIL("\"%s\": want an array of strings", member);
		r = read(config, text, error);
		if (r < 0)
			return r;
	}
	return 0;
}

int pipe_config_from_json(json_t *object, struct pipe_config *out, char error[CONFIG_ERROR_SIZE])
{
	struct pipe_config config = { .name = "" };
	const char *name, *member;
	json_t *value;
	int r;

	if (!json_is_object(object))
		FAIL("want an object with \"name\" and \"addresses\"");
	json_object_foreach(object, member, value)
	{
		if (strcmp(member, "name") && strcmp(member, "addresses") && strcmp(member, "gateways"))
			FAIL("unknown member \"%.64s\"", member);
	}
	name = whole_string(json_object_get(object, "name"));
	if (!name || !pipe_name_valid(name))
		FAIL("\"name\": want 1 to %d letters, digits, '-', '_', '.', beginning with a letter or digit",
		     PIPE_NAME_MAX);
	memcpy(config.name, name, strlen(name) + 1);

	r = read_list(&config, json_object_get(object, "addresses"), "addresses", read_address, error);
	if (r == 0)
		r = read_list(&config, json_object_get(object, "gateways"), "gateways", read_gateway, error);
	if (r < 0)
		return r;
	if (!config.address[FAMILY_IPV4].present && !config.address[FAMILY_IPV6].present)
		FAIL("\"addresses\": a pipe needs an address");
	*out = config;
	return 0;
}

json_t *pipe_config_to_json(const struct pipe_config *config)
{
	json_t *object = json_object(), *addresses = json_array(), *gateways = json_array();
	char text[IP_TEXT_SIZE];
	int failed = 0;

	for (int f = 0; f < FAMILIES; f++) {
		const struct pipe_address *a = &config->address[f];

		if (!a->present)
			continue;
		failed |= json_array_append_new(addresses, json_string(ip_format(&a->ip, a->prefix_len, text)));
		if (a->has_gateway)
			failed |= json_array_append_new(gateways, json_string(ip_format(&a->gateway, -1, text)));
	}
	failed |= json_object_set_new(object, "name", json_string(config->name));
	failed |= json_object_set_new(object, "addresses", addresses); /* takes it even when it fails */
	failed |= json_object_set_new(object, "gateways", gateways);
	if (failed) {
		json_decref(object);
		return NULL;
	}
	return object;
}
