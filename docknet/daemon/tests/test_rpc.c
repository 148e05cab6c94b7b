// SPDX-License-Identifier: Apache-2.0
/* The control language. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../rpc.h"

#include <stdlib.h>

static void test_add(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pipe.add\",\"params\":{\"name\":\"web\","
				   "\"addresses\":[\"10.50.0.2/24\",\"fd50::2/64\"],\"gateways\":[\"10.50.0.1\"]}}";
	struct rpc_request r;
	struct rpc_error e;
	char text[IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(rpc_parse(line, strlen(line), &r, &e), 0);
	assert_int_equal(r.method, RPC_PIPE_ADD);
	assert_string_equal(r.add.name, "web");
	assert_string_equal(ip_format(&r.add.address[FAMILY_IPV4].ip, r.add.address[FAMILY_IPV4].prefix_len, text),
			    "10.50.0.2/24");
	assert_string_equal(ip_format(&r.add.address[FAMILY_IPV6].ip, r.add.address[FAMILY_IPV6].prefix_len, text),
			    "fd50::2/64");
	assert_true(r.add.address[FAMILY_IPV4].has_gateway);
	assert_false(r.add.address[FAMILY_IPV6].has_gateway);
	rpc_request_release(&r);
}

static void test_refused(void **state)
{
	static const struct {
		const char *line;
		int code;
		const char *message; /* a part of it */
	} cases[] = {
		{ "", RPC_PARSE_ERROR, "not JSON" },
		{ "{", RPC_PARSE_ERROR, "not JSON" },
		{ "[]", RPC_INVALID_REQUEST, "one JSON-RPC 2.0 request" },
		{ "{\"id\":1,\"method\":\"stats\"}", RPC_INVALID_REQUEST, "\"jsonrpc\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"stats\"}", RPC_INVALID_REQUEST, "\"id\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1}", RPC_INVALID_REQUEST, "\"method\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no\"}", RPC_METHOD_NOT_FOUND, "\"no\"" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pipe.add\"}", RPC_INVALID_PARAMS, "want an object" },
#define ADD(params, message)                                                                                           \
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pipe.add\",\"params\":" params "}", RPC_INVALID_PARAMS, message }
		ADD("{\"name\":\"../x\",\"addresses\":[\"10.0.0.1/8\"]}", "\"name\""),
		ADD("{\"name\":\"a\\u0000b\",\"addresses\":[\"10.0.0.1/8\"]}", "not JSON"),
		ADD("{\"name\":\"a\"}", "needs an address"),
		ADD("{\"name\":\"a\",\"addresses\":\"10.0.0.1/8\"}", "array of strings"),
		ADD("{\"name\":\"a\",\"addresses\":[\"10.0.0.1\"]}", "prefix length"),
		ADD("{\"name\":\"a\",\"addresses\":[\"10.0.0.1/33\"]}", "prefix length"),
		ADD("{\"name\":\"a\",\"addresses\":[\"127.0.0.1/8\"]}", "cannot be"),
		ADD("{\"name\":\"a\",\"addresses\":[\"ff02::1/64\"]}", "cannot be"),
		ADD("{\"name\":\"a\",\"addresses\":[\"::ffff:10.0.0.1/120\"]}", "prefix length"),
		ADD("{\"name\":\"a\",\"addresses\":[\"10.0.0.1/8\",\"10.0.0.2/8\"]}", "at most"),
		ADD("{\"name\":\"a\",\"addresses\":[\"10.0.0.1/8\"],\"gateways\":[\"fd00::1\"]}",
		    "no address of this family"),
		ADD("{\"name\":\"a\",\"addresses\":[\"10.0.0.1/8\"],\"typo\":1}", "unknown member"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rpc_request r;
		struct rpc_error e;
		int expected = strstr(cases[i].line, "u0000") ? RPC_PARSE_ERROR : cases[i].code;

		assert_int_equal(rpc_parse(cases[i].line, strlen(cases[i].line), &r, &e), -1);
		if (e.code != expected || !strstr(e.message, cases[i].message))
			fail_msg("%s: %d %s", cases[i].line, e.code, e.message);
		assert_non_null(r.id); /* every one of them gets an answer */
		rpc_request_release(&r);
	}
}

static void test_answer(void **state)
{
	json_t *id = json_integer(3);
	struct rpc_error e;
	char *line;

	(void)state;
	line = rpc_answer(id, json_true(), NULL);
	assert_string_equal(line, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":true}\n");
	free(line);
	(void)rpc_fail(&e, RPC_NOT_FOUND, "there is no pipe %s", "x");
	line = rpc_answer(id, NULL, &e);
	assert_string_equal(
		line,
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32002,\"message\":\"there is no pipe x\"}}\n");
	free(line);
	json_decref(id);
}

static void test_notification_has_no_id(void **state)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"method\":\"stats\"}";
	struct rpc_request r;
	struct rpc_error e;

	(void)state;
	assert_int_equal(rpc_parse(line, strlen(line), &r, &e), 0);
	assert_null(r.id);
}

/* What the state file keeps is what was asked for. */
static void test_config_round_trip(void **state)
{
	json_t *before = json_loads("{\"name\":\"web-1\",\"addresses\":[\"10.50.0.2/24\",\"fd50::2/64\"],"
				    "\"gateways\":[\"10.50.0.1\",\"fd50::1\"]}",
				    0, NULL),
	       *after;
	char error[CONFIG_ERROR_SIZE];
	struct pipe_config config;

	(void)state;
	assert_int_equal(pipe_config_from_json(before, &config, error), 0);
	after = pipe_config_to_json(&config);
	assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_notification_has_no_id),
		cmocka_unit_test(test_config_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
