// SPDX-License-Identifier: Apache-2.0
#include "eal.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static unsigned long free_hugepages(void)
{
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	unsigned long n = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%lu", &n) != 1)
		n = 0;
	fclose(file);
	return n;
}

/* All CPUs that we may run on, as one floating logical core: DPDK would pin us to the first otherwise. */
static int floating_core(char *text, size_t size)
{
	cpu_set_t set;
	size_t used = (size_t)snprintf(text, size, "0@(");

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return -errno;
	for (int cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++)
		if (CPU_ISSET(cpu, &set))
			used += (size_t)snprintf(text + used, size - used, "%s%d", text[used - 1] == '(' ? "" : ",",
						 cpu);
	if (used + 1 >= size)
		return -E2BIG;
	memcpy(text + used, ")", 2);
	return 0;
}

/* What DPDK makes below RUNTIME_DIRECTORY, and has no use for without shared files. */
static void remove_empty(const char *directory)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/dpdk/rte", directory);
	(void)rmdir(path);
	snprintf(path, sizeof(path), "%s/dpdk", directory);
	(void)rmdir(path);
}

int eal_start(const struct options *o, bool *hugepages, char *reason, size_t reason_size)
{
	const char *arguments[ARGUMENTS_MAX];
	char memory[16], cores[4096];
	bool nic = o->nic.kind != NIC_NONE;
	int n = 0, r = floating_core(cores, sizeof(cores));

	if (r < 0) {
		snprintf(reason, reason_size, "reading the CPU affinity: %s", strerror(-r));
		return r;
	}
	*hugepages = free_hugepages() * 2 >= o->memory_mib;
	snprintf(memory, sizeof(memory), "%u", nic ? o->memory_mib : 16);
	arguments[n++] = "dockdaemon";
	if (*hugepages) {
		arguments[n++] = "--in-memory"; /* anonymous hugepages: no hugetlbfs has to be mounted */
	} else {
		arguments[n++] = "--no-huge";
		arguments[n++] = "--no-shconf"; /* --in-memory is refused beside --no-huge */
	}
	arguments[n++] = "-m";
	arguments[n++] = memory;
	arguments[n++] = "--lcores";
	arguments[n++] = cores;
	arguments[n++] = "--no-telemetry"; /* its socket would be a second way in, without our permissions */
	if (o->nic.kind == NIC_PCI) {
		arguments[n++] = "-a";
		arguments[n++] = o->nic.name;
	} else {
		arguments[n++] = "--no-pci";
		arguments[n++] = "--iova-mode=va"; /* no DMA: buffers may cross pages */
	}
	arguments[n++] = "--log-level=5"; /* warnings and errors */
	arguments[n] = NULL;
	setenv("RUNTIME_DIRECTORY", o->directory, 1); /* DPDK would leave an empty directory in /run */
	r = rte_eal_init(n, (char **)(uintptr_t)arguments);
	remove_empty(o->directory);
	if (r < 0) {
		snprintf(reason, reason_size, "starting DPDK with %s MiB of %s: %s (see the lines above)", memory,
			 *hugepages ? "hugepages" : "memory", rte_strerror(rte_errno));
		return rte_errno ? -rte_errno : -EINVAL;
	}
	return 0;
}
