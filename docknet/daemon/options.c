// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
	"usage: dockdaemon --dir DIRECTORY [OPTION...]\n"
	"\n"
	"Moves packets between the shared memory of containers, and between them and a NIC. 'tare net' starts and "
	"commands it.\n"
	"\n"
	"  --dir DIRECTORY    where its control socket, its state and the pipes' sockets are\n"
	"  --nic NIC          none (default), af_xdp:INTERFACE, af_packet:INTERFACE, tap:NAME, pci:ADDRESS;\n"
	"                     behind it ,mtu=BYTES and ,queues=N\n"
	"  --masters N        threads that move packets (1)\n"
	"  --cpus LIST        CPU of each master, such as 2,3; anywhere if not given\n"
	"  --wait MODE        adaptive (default), busy, sleep\n"
	"  --user UID         whom to become after the start; 0 stays root, without capabilities (0)\n"
	"  --memory MIB       for packet buffers at the NIC (64)\n"
	"  --ready-fd FD      write one line to FD when started: \"ready\", or why not\n"
	"\n"
	"Exit codes: 0 ended by request, 1 failed, 2 wrong arguments.\n";

static bool number(const char *text, unsigned long max, unsigned long *value)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && *value <= max;
}

/* Reads ",mtu=1500,queues=4"; text is cut up. */
static int nic_suffix(char *text, struct nic_options *nic, const char **reason)
{
	char *rest = text, *part;

	while ((part = strsep(&rest, ",")) != NULL) {
		unsigned long value;

		if (strncmp(part, "mtu=", 4) == 0 && number(part + 4, 16000, &value) && value >= 576) {
			nic->mtu = (unsigned int)value;
		} else if (strncmp(part, "queues=", 7) == 0 && number(part + 7, NIC_QUEUES_MAX, &value) && value > 0) {
			nic->queues = (unsigned int)value;
		} else {
			*reason = "after the name come mtu=576..16000 and queues=1..64, with commas between";
			return -EINVAL;
		}
	}
	return 0;
}

int nic_options_parse(const char *text, struct nic_options *out, const char **reason)
{
	static const struct {
		const char *prefix;
		enum nic_kind kind;
		size_t name_max; /* Linux: IFNAMSIZ - 1 */
	} kinds[] = {
		{ "af_xdp:", NIC_AF_XDP, 15 },
		{ "af_packet:", NIC_AF_PACKET, 15 },
		{ "tap:", NIC_TAP, 15 },
		{ "pci:", NIC_PCI, 31 },
	};
	struct nic_options nic = { .kind = NIC_NONE };

	*reason = "use none, af_xdp:INTERFACE, af_packet:INTERFACE, tap:NAME or pci:ADDRESS";
	if (strcmp(text, "none") == 0) {
		*out = nic;
		return 0;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char copy[128], *name, *suffix;
		size_t prefix = strlen(kinds[i].prefix);

		if (strncmp(text, kinds[i].prefix, prefix) != 0)
			continue;
		if (snprintf(copy, sizeof(copy), "%s", text + prefix) >= (int)sizeof(copy))
			return -EINVAL;
		suffix = copy;
		name = strsep(&suffix, ",");
		/* The name goes into a list of DPDK's arguments, which commas separate. */
		if (*name == '\0' || strlen(name) > kinds[i].name_max || strpbrk(name, "/= \t\n[]\"")) {
			*reason = "this is no name of a device";
			return -EINVAL;
		}
		nic.kind = kinds[i].kind;
		memcpy(nic.name, name, strlen(name) + 1);
		if (suffix && nic_suffix(suffix, &nic, reason) < 0)
			return -EINVAL;
		*out = nic;
		return 0;
	}
	return -EINVAL;
}

static int parse_cpus(const char *text, struct options *o)
{
	char copy[128], *rest = copy, *part;
	unsigned int n = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	while ((part = strsep(&rest, ",")) != NULL) {
		unsigned long value;

		if (n == MASTERS_MAX || !number(part, 1023, &value))
			return -EINVAL;
		o->cpu[n++] = (int)value;
	}
	return 0;
}

static int wrong(const char *option, const char *value, const char *reason)
{
	fprintf(stderr, "dockdaemon: --%s %s: %s\n", option, value, reason);
	return -1;
}

static int parse_one(int c, const char *value, struct options *o)
{
	const char *reason;
	unsigned long n;

	switch (c) {
	case 'd':
		o->directory = value;
		return 0;
	case 'n':
		return nic_options_parse(value, &o->nic, &reason) < 0 ? wrong("nic", value, reason) : 0;
	case 'm':
		if (!number(value, MASTERS_MAX, &n) || n == 0)
			return wrong("masters", value, "use 1 to 16");
		o->masters = (unsigned int)n;
		return 0;
	case 'c':
		return parse_cpus(value, o) < 0 ? wrong("cpus", value, "use numbers with commas, such as 2,3") : 0;
	case 'w':
		return dp_wait_mode_parse(value, &o->wait) < 0 ? wrong("wait", value, "use adaptive, busy or sleep")
							       : 0;
	case 'u':
		if (!number(value, 0xfffffffeul, &n))
			return wrong("user", value, "use a number");
		o->user = (uid_t)n;
		return 0;
	case 'M':
		if (!number(value, 65536, &n) || n < 16)
			return wrong("memory", value, "use 16 to 65536");
		o->memory_mib = (unsigned int)n;
		return 0;
	case 'r':
		if (!number(value, 1023, &n))
			return wrong("ready-fd", value, "use the number of an open file");
		o->ready_fd = (int)n;
		return 0;
	}
	return -1; /* getopt has said what is wrong */
}

int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "dir", required_argument, NULL, 'd' },     { "nic", required_argument, NULL, 'n' },
		{ "masters", required_argument, NULL, 'm' }, { "cpus", required_argument, NULL, 'c' },
		{ "wait", required_argument, NULL, 'w' },    { "user", required_argument, NULL, 'u' },
		{ "memory", required_argument, NULL, 'M' },  { "ready-fd", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },	     { 0 },
	};
	int c;

	*o = (struct options){ .masters = 1, .wait = DP_WAIT_ADAPTIVE, .ready_fd = -1, .memory_mib = 64 };
	for (unsigned int i = 0; i < MASTERS_MAX; i++)
		o->cpu[i] = -1;
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (parse_one(c, optarg, o) < 0)
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "dockdaemon: unknown argument %s\n", argv[optind]);
		return -1;
	}
	if (!o->directory) {
		fprintf(stderr, "dockdaemon: --dir is needed: where shall its sockets be?\n");
		return -1;
	}
	return 0;
}
