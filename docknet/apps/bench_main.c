/* SPDX-License-Identifier: Apache-2.0 */
/* bench_main.c - docknet-bench: the same client and server over kernel sockets and over DockLib. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

volatile sig_atomic_t bench_stop;

static const char help[] =
	"docknet-bench measures TCP between two programs, over kernel sockets or over DockNet.\n"
	"\n"
	"usage: docknet-bench server [-t TRANSPORT] [-p PORT] [-s REPLY_BYTES] [-c CPU]\n"
	"       docknet-bench client [-t TRANSPORT] [-p PORT] [-s SIZE] [-d SECONDS] [-n CONNECTIONS]\n"
	"                            [-i IDLE] [-m MEASUREMENTS] [-c CPU] HOST\n"
	"\n"
	"  -t TRANSPORT     kernel or docknet (default: docknet if $DOCKNET_PIPE is set, else kernel)\n"
	"  -p PORT          (default 7777)\n"
	"  -s SIZE          bytes of a message; server: of an HTTP reply's body (default 64)\n"
	"  -d SECONDS       of each measurement (default 1)\n"
	"  -n CONNECTIONS   that are used at once (default 1)\n"
	"  -i IDLE          connections that are open besides (default 0)\n"
	"  -m MEASUREMENTS  of p (ping-pong), s (stream), h (HTTP) (default psh)\n"
	"  -c CPU           run on this CPU only\n"
	"\n"
	"The client prints one line of JSON; oneway_us is RTT/2; what was not measured is null.\n"
	"\n"
	"  docknet-bench server -p 7777 &\n"
	"  docknet-bench client -s 65536 -d 2 10.50.0.2\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 wrong usage\n";

static void on_signal(int number)
{
	(void)number;
	bench_stop = 1;
}

static int usage(const char *what)
{
	fprintf(stderr, "docknet-bench: %s (docknet-bench --help tells how)\n", what);
	return 2;
}

/* number parses a whole decimal number in [low, high]. */
static bool number(const char *text, double low, double high, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return *text && !*end && *out >= low && *out <= high;
}

static void print_number(const char *name, double value, const char *after)
{
	if (value < 0)
		printf("\"%s\":null%s", name, after);
	else
		printf("\"%s\":%.2f%s", name, value, after);
}

static void print_result(size_t size, const struct bench_result *r)
{
	printf("{\"size\":%zu,\"oneway_us\":{", size);
	print_number("p50", r->oneway_p50_us, ",");
	print_number("p99", r->oneway_p99_us, "},");
	print_number("goodput_mbytes_s", r->goodput_mbytes_s, ",");
	print_number("requests_s", r->requests_s, "}\n");
}

static int pin(double cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof set, &set) < 0 ? -errno : 0;
}

struct arguments {
	const char *transport, *measurements;
	double port, size, seconds, connections, idle, cpu;
};

static const char *parse(int argc, char **argv, struct arguments *a)
{
	static const struct option long_options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "t:p:s:d:n:i:m:c:h", long_options, NULL)) != -1) {
		switch (option) {
		case 't':
			a->transport = optarg;
			break;
		case 'm':
			a->measurements = optarg;
			if (!*optarg || strspn(optarg, "psh") != strlen(optarg))
				return "-m wants some of the letters p, s and h";
			break;
		case 'p':
			if (!number(optarg, 1, 65535, &a->port))
				return "-p wants a port, 1 to 65535";
			break;
		case 's':
			if (!number(optarg, 1, 64 << 20, &a->size))
				return "-s wants bytes, 1 to 67108864";
			break;
		case 'd':
			if (!number(optarg, 0.01, 3600, &a->seconds))
				return "-d wants seconds, 0.01 to 3600";
			break;
		case 'n':
			if (!number(optarg, 1, 100000, &a->connections))
				return "-n wants a number, 1 to 100000";
			break;
		case 'i':
			if (!number(optarg, 0, 100000, &a->idle))
				return "-i wants a number, 0 to 100000";
			break;
		case 'c':
			if (!number(optarg, 0, CPU_SETSIZE - 1, &a->cpu))
				return "-c wants the number of a CPU";
			break;
		case 'h':
			fputs(help, stdout);
			exit(0);
		default:
			return "unknown option";
		}
	}
	return NULL;
}

static int report(const char *what, const char *on, int err)
{
	fprintf(stderr, "docknet-bench: %s %s: %s\n", what, on, strerror(-err));
	return 1;
}

static int serve(const struct transport *t, const struct arguments *a)
{
	char where[64];
	int err = bench_serve(t, "", (uint16_t)a->port, (size_t)a->size);

	t->stop();
	snprintf(where, sizeof where, "port %u", (unsigned)a->port);
	return err < 0 ? report("serving on", where, err) : 0;
}

static int measure(const struct transport *t, const struct arguments *a, const char *host)
{
	struct bench_options o = { .host = host,
				   .port = (uint16_t)a->port,
				   .size = (size_t)a->size,
				   .seconds = a->seconds,
				   .connections = (unsigned)a->connections,
				   .idle = (unsigned)a->idle,
				   .pingpong = strchr(a->measurements, 'p') != NULL,
				   .stream = strchr(a->measurements, 's') != NULL,
				   .http = strchr(a->measurements, 'h') != NULL };
	struct bench_result result;
	int err = bench_measure(t, &o, &result);

	t->stop();
	if (err)
		return report("measuring against", host, err);
	print_result(o.size, &result);
	return 0;
}

int main(int argc, char **argv)
{
	const char *pipe = getenv("DOCKNET_PIPE");
	struct arguments a = { .transport = pipe && *pipe ? "docknet" : "kernel",
			       .measurements = "psh",
			       .port = 7777,
			       .size = 64,
			       .seconds = 1,
			       .connections = 1,
			       .cpu = -1 };
	struct sigaction action = { .sa_handler = on_signal };
	const struct transport *t;
	const char *wrong = parse(argc, argv, &a);
	const char *role = optind < argc ? argv[optind] : "";
	bool client = strcmp(role, "client") == 0;
	int err;

	if (wrong)
		return usage(wrong);
	if (!client && strcmp(role, "server") != 0)
		return usage("say server or client");
	if (argc - optind != (client ? 2 : 1))
		return usage(client ? "a client wants one host" : "a server wants no further arguments");
	t = transport_find(a.transport);
	if (!t)
		return usage("-t wants kernel or docknet");
	if (a.cpu >= 0 && (err = pin(a.cpu)))
		return report("running on", "that CPU", err);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	err = t->open();
	if (err)
		return report("attaching to", pipe && *pipe ? pipe : "the default pipe", err);
	return client ? measure(t, &a, argv[optind + 1]) : serve(t, &a);
}
