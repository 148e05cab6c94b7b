// SPDX-License-Identifier: Apache-2.0
#include "rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *name;
	enum rpc_method method;
} methods[] = {
	{ "daemon.info", RPC_DAEMON_INFO }, { "daemon.shutdown", RPC_DAEMON_SHUTDOWN }, { "pipe.add", RPC_PIPE_ADD },
	{ "pipe.list", RPC_PIPE_LIST },	    { "pipe.remove", RPC_PIPE_REMOVE },		{ "stats", RPC_STATS },
};

int rpc_fail(struct rpc_error *error, int code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	/*
	 * A message may quote what was sent, which need be no UTF-8, or be cut in the middle of a character: there would be no
	 * JSON string of it, and so no answer.
	 */
	for (char *c = error->message; *c; c++) {
		if (*c < ' ' || *c > '~')
			*c = '?';
	}
	return -1;
}

static int parse_params(json_t *params, struct rpc_request *request, struct rpc_error *error)
{
	char why[CONFIG_ERROR_SIZE];
	const char *name;
	json_t *forget;

	switch (request->method) {
	case RPC_PIPE_ADD:
		if (pipe_config_from_json(params, &request->add, why) < 0)
			return rpc_fail(error, RPC_INVALID_PARAMS, "%s", why);
		return 0;
	case RPC_PIPE_REMOVE:
		name = json_string_value(json_object_get(params, "name"));
		if (!name || strlen(name) > PIPE_NAME_MAX)
			return rpc_fail(error, RPC_INVALID_PARAMS, "\"name\": want the name of a pipe");
		snprintf(request->remove, sizeof(request->remove), "%s", name);
		return 0;
	case RPC_DAEMON_SHUTDOWN:
		forget = json_object_get(params, "forget");
		if (forget && !json_is_boolean(forget))
			return rpc_fail(error, RPC_INVALID_PARAMS, "\"forget\": want true or false");
		request->forget = json_is_true(forget);
		return 0;
	case RPC_DAEMON_INFO:
	case RPC_PIPE_LIST:
	case RPC_STATS:
		return 0;
	}
	return rpc_fail(error, RPC_METHOD_NOT_FOUND, "unknown method");
}

static int parse_request(json_t *root, struct rpc_request *request, struct rpc_error *error)
{
	const char *version, *method;
	json_t *id;

	if (!json_is_object(root))
		return rpc_fail(error, RPC_INVALID_REQUEST, "want one JSON-RPC 2.0 request object per line");
	id = json_object_get(root, "id");
	if (json_is_string(id) || json_is_integer(id) || json_is_null(id))
		request->id = json_incref(id);
	else if (id)
		return rpc_fail(error, RPC_INVALID_REQUEST, "\"id\": want a string or an integer");
	version = json_string_value(json_object_get(root, "jsonrpc"));
	if (!version || strcmp(version, "2.0"))
		return rpc_fail(error, RPC_INVALID_REQUEST, "\"jsonrpc\": want \"2.0\"");
	method = json_string_value(json_object_get(root, "method"));
	if (!method)
		return rpc_fail(error, RPC_INVALID_REQUEST, "\"method\": want a string");
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (strcmp(method, methods[i].name) == 0) {
			request->method = methods[i].method;
			return parse_params(json_object_get(root, "params"), request, error);
		}
	}
	return rpc_fail(error, RPC_METHOD_NOT_FOUND, "unknown method \"%.64s\"", method);
}

int rpc_parse(const char *line, size_t len, struct rpc_request *request, struct rpc_error *error)
{
	json_error_t why;
	json_t *root;
	int r;

	memset(request, 0, sizeof(*request));
	memset(error, 0, sizeof(*error));
	/* jansson bounds the depth of nesting itself, at 2048. */
	root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	if (!root) {
		request->id = json_null();
		return rpc_fail(error, RPC_PARSE_ERROR, "not JSON: %s", why.text);
	}
	r = parse_request(root, request, error);
	/* An error without an id could not be told from a notification's silence: answer with null, as the standard asks. */
	if (r < 0 && !request->id && error->code == RPC_INVALID_REQUEST)
		request->id = json_null();
	json_decref(root);
	return r;
}

void rpc_request_release(struct rpc_request *request)
{
	json_decref(request->id);
	request->id = NULL;
}

char *rpc_answer(const json_t *id, json_t *result, const struct rpc_error *error)
{
	json_t *answer;
	char *text, *line = NULL;
	size_t len;

	if (error && error->code)
		answer = json_pack("{s:s, s:O, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error", "code", error->code,
				   "message", error->message);
	else
		answer = json_pack("{s:s, s:O, s:O}", "jsonrpc", "2.0", "id", id, "result", result);
	json_decref(result);
	if (!answer)
		return NULL;
	text = json_dumps(answer, JSON_COMPACT);
	json_decref(answer);
	if (!text)
		return NULL;
	len = strlen(text);
	line = realloc(text, len + 2);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}
