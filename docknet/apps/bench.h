/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCKNET_BENCH_H
#define DOCKNET_BENCH_H

#include <signal.h>

#include "transport.h"

extern volatile sig_atomic_t bench_stop; /* set by SIGINT and SIGTERM */

int bench_serve(const struct transport *transport, const char *host, uint16_t port, size_t reply_bytes);

struct bench_options {
	const char *host;
	uint16_t port;
	size_t size;
	double seconds; /* of each measurement */
	unsigned connections;
	unsigned idle; /* connections that are open and say nothing */
	bool pingpong, stream, http;
};

struct bench_result {
	double oneway_p50_us, oneway_p99_us; /* RTT/2; < 0: not measured */
	double goodput_mbytes_s;
	double requests_s;
};

/* 0, or -errno. */
int bench_measure(const struct transport *transport, const struct bench_options *options, struct bench_result *result);

#endif
