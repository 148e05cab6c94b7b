/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - survive SIGBUS from a region.
 *
 * Seals keep a file's size, but its holder can still punch holes into it, and a hole in hugepages faults when no page
 * is free. The attacker is a container that wants to take the master, and so everybody's network, down with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "pipe.h"

#define REGIONS_MAX 4096

/* A guarded range. The handler reads it at any time: begin is set last and cleared first. */
struct region {
	_Atomic uintptr_t begin;
	_Atomic uintptr_t end;
	atomic_bool broken;
};

static struct region regions[REGIONS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous;

static struct region *find(uintptr_t address)
{
	for (unsigned i = 0; i < REGIONS_MAX; i++) {
		uintptr_t begin = atomic_load(&regions[i].begin);

		if (begin != 0 && begin <= address && address < atomic_load(&regions[i].end))
			return &regions[i];
	}
	return NULL;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	struct region *r = find((uintptr_t)info->si_addr);

	if (r) {
		uintptr_t begin = atomic_load(&r->begin), length = atomic_load(&r->end) - begin;

		/* The whole region becomes private zeros: hugepages cannot be replaced in part. mmap is a bare system
		 * call, so it may be called here. */
		if (mmap((void *)begin, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) != MAP_FAILED) {
			atomic_store(&r->broken, true);
			return;
		}
	}
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(number, info, context);
	} else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
		previous.sa_handler(number);
	} else {
		/* The instruction faults again, and the process dies of it as it would have without us. */
		signal(number, SIG_DFL);
	}
}

/* install makes the handler ours, also when somebody has replaced it since (DPDK and test frameworks do). */
static int install(void)
{
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER };
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now) < 0)
		return -errno;
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus)
		return 0;
	previous = now;
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

int dp_fault_guard(const struct dp_pipe *pipe)
{
	int err;

	pthread_mutex_lock(&lock);
	err = install();
	for (unsigned i = 0; i < REGIONS_MAX && !err; i++) {
		if (atomic_load(&regions[i].begin) != 0)
			continue;
		atomic_store(&regions[i].broken, false);
		atomic_store(&regions[i].end, (uintptr_t)pipe->base + pipe->size);
		atomic_store(&regions[i].begin, (uintptr_t)pipe->base);
		pthread_mutex_unlock(&lock);
		return 0;
	}
	pthread_mutex_unlock(&lock);
	return err ? err : -ENOSPC;
}

void dp_fault_unguard(const struct dp_pipe *pipe)
{
	struct region *r;

	pthread_mutex_lock(&lock);
	r = pipe->base ? find((uintptr_t)pipe->base) : NULL;
	if (r)
		atomic_store(&r->begin, 0);
	pthread_mutex_unlock(&lock);
}

bool dp_fault_seen(const struct dp_pipe *pipe)
{
	struct region *r = pipe->base ? find((uintptr_t)pipe->base) : NULL;

	return r && atomic_load(&r->broken);
}
