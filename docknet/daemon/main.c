// SPDX-License-Identifier: Apache-2.0
/*
 * dockdaemon: the start and the end. In between, this thread runs the control loop (loop.h), and the masters move frames
 * (master.h).
 */
#include "attachment.h"
#include "control.h"
#include "directory.h"
#include "eal.h"
#include "log.h"
#include "privileges.h"

#include <errno.h>
#include <rte_eal.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define REASON_SIZE 512

static struct daemon_state daemon_state;

/* Tells whoever started us. */
static void report(const struct options *o, const char *text)
{
	if (o->ready_fd < 0)
		return;
	dprintf(o->ready_fd, "%s\n", text);
	close(o->ready_fd);
}

static void signal_ready(struct source *source, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
		log_line("signal %u: ending; the pipes stay in the state file", info.ssi_signo);
		daemon_state.loop.stop = true;
	}
}

/* A master has found too much garbage in a pipe. */
static void condemned_ready(struct source *source, uint32_t events)
{
	struct registry *r = &daemon_state.registry;
	uint64_t n;

	(void)events;
	(void)!read(source->fd, &n, sizeof(n));
	for (uint32_t i = 0; i < r->count; i++) {
		struct pipe *pipe = r->pipe[i];

		if (!atomic_load(&pipe->condemned))
			continue;
		/* One line in a thousand: a hostile container can have this as often as it attaches. */
		if (counter_read(&pipe->stats.detaches) % 1000 == 0)
			log_line("pipe %s: process %d wrote garbage into its rings: detached", pipe->config.name,
				 (int)pipe->peer_pid);
		attachment_end(r, pipe);
	}
}

static int block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	/* Before any thread is made: all inherit it, and signals come by the file alone. */
	return sigprocmask(SIG_BLOCK, set, NULL) < 0 ? -errno : 0;
}

/* All that needs privileges. */
static int start_privileged(const struct options *o, bool *hugepages, char *reason)
{
	int r = directory_take(o->directory, o->user, reason, REASON_SIZE);

	if (r == 0)
		r = nic_check(&o->nic, reason, REASON_SIZE);
	if (r == 0)
		r = eal_start(o, hugepages, reason, REASON_SIZE);
	if (r == 0)
		r = nic_open(&daemon_state.nic, &o->nic, o->masters, o->memory_mib, reason, REASON_SIZE);
	if (r < 0)
		return r;
	r = privileges_drop(o->user);
	if (r < 0)
		snprintf(reason, REASON_SIZE, "becoming user %u without capabilities: %s%s", o->user, strerror(-r),
			 r == -EINVAL ? ": this user namespace does not have it: use --user 0" : "");
	return r;
}

static int start_unprivileged(const struct options *o, bool hugepages, struct control **control, char *reason)
{
	struct daemon_state *d = &daemon_state;
	int r = loop_init(&d->loop);

	d->options = o;
	if (r == 0)
		r = masters_start(&d->masters, o, &d->nic);
	if (r < 0) {
		snprintf(reason, REASON_SIZE, "starting %u masters: %s", o->masters,
			 r == -EINVAL ? "a CPU of --cpus is none that this process may use" : strerror(-r));
		return r;
	}
	d->registry = (struct registry){ .directory = o->directory,
					 .loop = &d->loop,
					 .masters = &d->masters,
					 .nic = &d->nic,
					 .hugepages = hugepages };
	r = registry_init(&d->registry);
	if (r == 0)
		r = registry_restore(&d->registry);
	if (r == 0)
		r = control_open(d, o->directory, control);
	if (r < 0)
		snprintf(reason, REASON_SIZE, "offering pipes and the control socket in %s: %s", o->directory,
			 strerror(-r));
	return r;
}

static void finish(struct control *control, const struct options *o, bool forget)
{
	struct daemon_state *d = &daemon_state;

	control_close(control);
	if (d->masters.count > 0) {
		masters_stop(&d->masters);
		registry_close(&d->registry, forget);
		masters_close(&d->masters);
		loop_close(&d->loop);
	}
	nic_close(&d->nic);
	rte_eal_cleanup();
	if (forget)
		directory_leave(o->directory);
}

int main(int argc, char **argv)
{
	struct source signals = { .ready = signal_ready }, condemned = { .ready = condemned_ready };
	struct control *control = NULL;
	char reason[REASON_SIZE] = "";
	bool hugepages = false;
	struct options options;
	sigset_t set;
	int r = options_parse(argc, argv, &options);

	if (r != 0)
		return r > 0 ? 0 : 2;
	r = block_signals(&set);
	if (r == 0)
		r = start_privileged(&options, &hugepages, reason);
	if (r == 0)
		r = start_unprivileged(&options, hugepages, &control, reason);
	if (r == 0) {
		signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		condemned.fd = daemon_state.masters.condemned_fd;
		r = signals.fd < 0 ? -errno : loop_add(&daemon_state.loop, &signals, EPOLLIN);
		if (r == 0)
			r = loop_add(&daemon_state.loop, &condemned, EPOLLIN);
	}
	if (r < 0) {
		if (!reason[0])
			snprintf(reason, sizeof(reason), "starting: %s", strerror(-r));
		fprintf(stderr, "dockdaemon: %s\n", reason);
		report(&options, reason);
		finish(control, &options, false);
		return 1;
	}
	log_line("ready in %s: %u masters, NIC %s, %s", options.directory, options.masters,
		 daemon_state.nic.present ? daemon_state.nic.name : "none", hugepages ? "hugepages" : "ordinary pages");
	report(&options, "ready");
	loop_run(&daemon_state.loop);
	finish(control, &options, daemon_state.forget);
	return 0;
}
