/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control language: JSON-RPC 2.0, one request per line. Reading and writing of lines only, no effects: the part that is
 * fuzzed.
 *
 *   daemon.info      {}                    version, pid, NIC, masters
 *   pipe.add         see pipe_config.h     makes a pipe
 *   pipe.remove      {"name":"web"}        detaches and forgets it
 *   pipe.list        {}
 *   stats            {}                    counters of pipes, masters and the NIC
 *   daemon.shutdown  {"forget":true}       ends the daemon; forget: its pipes are not offered again at the next start
 */
#ifndef DOCKDAEMON_RPC_H
#define DOCKDAEMON_RPC_H

#include "pipe_config.h"

/* The longest line that is read: a request is a few hundred bytes. */
#define RPC_LINE_MAX 16384

enum rpc_method {
	RPC_DAEMON_INFO,
	RPC_PIPE_ADD,
	RPC_PIPE_REMOVE,
	RPC_PIPE_LIST,
	RPC_STATS,
	RPC_DAEMON_SHUTDOWN,
};

/* JSON-RPC's own codes, and ours from -32000 down. */
enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_NAME_IN_USE = -32000,
	RPC_ADDRESS_IN_USE = -32001,
	RPC_NOT_FOUND = -32002,
	RPC_FAILED = -32003, /* no memory, no permission: the message says */
};

struct rpc_error {
	int code; /* 0: none */
	char message[CONFIG_ERROR_SIZE + 64];
};

struct rpc_request {
	json_t *id; /* a new reference; NULL in a notification, which gets no answer */
	enum rpc_method method;
	union {
		struct pipe_config add;
		char remove[PIPE_NAME_MAX + 1];
		bool forget;
	};
};

/*
 * rpc_parse reads one line without its newline. Returns 0, or -1 with error filled in; request->id is valid either way and
 * is released by rpc_request_release.
 */
int rpc_parse(const char *line, size_t len, struct rpc_request *request, struct rpc_error *error);

void rpc_request_release(struct rpc_request *request);

/* rpc_answer returns the answer's line with its newline, to be freed, or NULL without memory. It takes result, which may be
 * NULL where error says why. */
char *rpc_answer(const json_t *id, json_t *result, const struct rpc_error *error);

/* rpc_fail fills in an error; always -1. */
int rpc_fail(struct rpc_error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
