// SPDX-License-Identifier: Apache-2.0
#include "attachment.h"

#include "log.h"

#include "../dockpipe/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections of one pipe that have not said hello: more are one container's fault, and only that one is refused. */
#define SILENT_MAX 8u

/* A connection to a pipe's socket. */
struct attachment {
	struct source source;
	struct attachment_listener *listener;
	struct attachment *next;
};

struct attachment_listener {
	struct source source;
	struct registry *registry;
	struct pipe *pipe;
	struct attachment *connections;
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static int socket_path(const struct attachment_listener *l, struct sockaddr_un *address)
{
	int n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/" DP_ATTACH_SOCKET, l->directory);

	address->sun_family = AF_UNIX;
	return n < 0 || (size_t)n >= sizeof(address->sun_path) ? -ENAMETOOLONG : 0;
}

static void close_connection(struct attachment *a)
{
	struct attachment **p = &a->listener->connections;

	while (*p != a)
		p = &(*p)->next;
	*p = a->next;
	loop_remove(a->listener->registry->loop, &a->source);
	close(a->source.fd);
	free(a);
}

/* Takes the region away from the masters, and everything with it. */
static void detach(struct registry *r, struct pipe *pipe)
{
	struct dp_pipe *region = atomic_exchange_explicit(&pipe->region, NULL, memory_order_acq_rel);

	masters_synchronize(r->masters);
	if (region) {
		counter_add(&pipe->stats.bad_descs, region->bad_descs);
		dp_pipe_unmap(region);
		free(region);
	}
	if (pipe->bell >= 0)
		close(pipe->bell);
	pipe->bell = -1;
	pipe->attached = NULL;
	pipe->blocked_since_ns = 0;
	atomic_store(&pipe->condemned, false);
}

void attachment_end(struct registry *r, struct pipe *pipe)
{
	struct attachment *a = pipe->attached;

	if (!a)
		return;
	detach(r, pipe);
	counter_add(&pipe->stats.detaches, 1);
	close_connection(a);
}

/* Maps a region and makes it ready for a master. region_fd >= 0 is the container's own, from before a restart. On success
 * *region_fd is the region's file in any case. */
static int open_region(struct registry *r, struct pipe *pipe, int *region_fd, struct dp_pipe **out)
{
	struct dp_pipe *region = calloc(1, sizeof(*region));
	int fd = *region_fd, err = region ? 0 : -ENOMEM;

	if (err == 0 && fd < 0) {
		err = r->hugepages ? dp_region_create(pipe->config.name, &r->geometry, true, &fd) : -ENOMEM;
		if (err < 0 && region)
			err = dp_region_create(pipe->config.name, &r->geometry, false, &fd);
	}
	if (err == 0) {
		err = dp_pipe_map(fd, DP_MASTER, &r->geometry, region);
		if (err == 0 && (err = dp_fault_guard(region)) < 0)
			dp_pipe_unmap(region);
		if (err < 0 && fd != *region_fd)
			close(fd);
	}
	if (err < 0) {
		free(region);
		return err;
	}
	*region_fd = fd;
	*out = region;
	return 0;
}

static void describe_address(struct dp_address *out, const struct ip_key *ip, uint8_t prefix_len)
{
	bool v4 = ip_key_is4(ip);

	out->family = v4 ? 4 : 6;
	out->prefix_length = prefix_len;
	memcpy(out->bytes, v4 ? ip->b + 12 : ip->b, v4 ? 4 : 16);
}

static void describe(const struct pipe *pipe, const struct dp_pipe *region, struct dp_welcome *w)
{
	struct dp_address *gateways[FAMILIES] = { &w->gateway4, &w->gateway6 };
	unsigned int n = 0;

	memset(w, 0, sizeof(*w));
	w->size = region->size;
	w->epoch = atomic_load_explicit(&region->header->epoch, memory_order_relaxed);
	w->mtu = DP_FRAME_MAX;
	snprintf(w->name, sizeof(w->name), "%.*s", (int)sizeof(w->name) - 1, pipe->config.name);
	for (int f = 0; f < FAMILIES; f++) {
		const struct pipe_address *a = &pipe->config.address[f];

		if (!a->present)
			continue;
		describe_address(&w->address[n++], &a->ip, a->prefix_len);
		if (a->has_gateway)
			describe_address(gateways[f], &a->gateway, 0);
	}
}

/* Gives the container its pipe. Returns 0, or -errno with the reason. */
static int attach(struct attachment *a, int resumed_fd, const char **reason)
{
	struct registry *r = a->listener->registry;
	struct pipe *pipe = a->listener->pipe;
	struct dp_pipe *region = NULL;
	struct dp_welcome welcome;
	int fd = resumed_fd, err;

	*reason = "the daemon has no memory for the pipe";
	pipe->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = pipe->bell < 0 ? -errno : masters_watch(r->masters, pipe);
	if (err == 0) {
		err = open_region(r, pipe, &fd, &region);
		if (err < 0 && resumed_fd >= 0) {
			*reason = "the region cannot be resumed: it is not as this daemon makes them; attach anew";
			err = -ESTALE;
		}
	}
	if (err == 0) {
		region->bell_fd = a->source.fd;
		describe(pipe, region, &welcome);
		err = dp_attach_send_welcome(a->source.fd, &welcome, fd, pipe->bell);
	}
	if (fd >= 0 && fd != resumed_fd)
		close(fd); /* the mapping and the container keep it */
	if (err < 0) {
		if (region) {
			dp_pipe_unmap(region);
			free(region);
		}
		if (pipe->bell >= 0)
			close(pipe->bell);
		pipe->bell = -1;
		return err;
	}
	pipe->attached = a;
	pipe->epoch = welcome.epoch;
	counter_add(&pipe->stats.attaches, 1);
	atomic_store_explicit(&pipe->region, region, memory_order_release);
	masters_kick(r->masters);
	return 0;
}

static bool connection_dead(const struct attachment *a)
{
	char byte;

	return recv(a->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A connection says hello. It is closed unless it gets the pipe. */
static void greet(struct attachment *a)
{
	struct registry *r = a->listener->registry;
	struct pipe *pipe = a->listener->pipe;
	const char *reason = "";
	struct dp_hello hello;
	int region_fd = -1, err = dp_attach_receive_hello(a->source.fd, &hello, &region_fd);

	if (err == -EAGAIN)
		return;
	if (err == -EPROTONOSUPPORT) {
		char text[96];

		snprintf(text, sizeof(text), "this daemon speaks version %u of the layout, the library another one",
			 DP_VERSION);
		(void)dp_attach_refuse(a->source.fd, err, text);
	} else if (err == 0) {
		struct ucred peer = { 0 };
		socklen_t size = sizeof(peer);

		/* The container before may be dead, and the news of it be behind this hello in the queue. */
		if (pipe->attached && connection_dead(pipe->attached))
			attachment_end(r, pipe);
		if (pipe->attached) {
			err = -EBUSY;
			reason = "another process has attached to this pipe";
		} else {
			err = attach(a, region_fd, &reason);
		}
		if (err < 0)
			(void)dp_attach_refuse(a->source.fd, err, reason);
		else if (getsockopt(a->source.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
			pipe->peer_pid = peer.pid;
		if (region_fd >= 0)
			close(region_fd);
	}
	if (err < 0)
		close_connection(a);
}

static void connection_ready(struct source *source, uint32_t events)
{
	struct attachment *a = CONTAINER_OF(source, struct attachment, source);

	(void)events;
	/* Who is attached sends nothing: this is the end of the connection, or of our patience. */
	if (a->listener->pipe->attached == a)
		attachment_end(a->listener->registry, a->listener->pipe);
	else
		greet(a);
}

static void listener_ready(struct source *source, uint32_t events)
{
	struct attachment_listener *l = CONTAINER_OF(source, struct attachment_listener, source);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct attachment *a, *oldest = NULL;
	unsigned int silent = 0;

	(void)events;
	if (fd < 0)
		return;
	for (a = l->connections; a; a = a->next) {
		if (a != l->pipe->attached) {
			silent++;
			oldest = a; /* new ones are put in front */
		}
	}
	if (silent >= SILENT_MAX)
		close_connection(oldest);
	a = calloc(1, sizeof(*a));
	if (!a) {
		close(fd);
		return;
	}
	*a = (struct attachment){ .source = { fd, connection_ready }, .listener = l, .next = l->connections };
	l->connections = a;
	if (loop_add(l->registry->loop, &a->source, EPOLLIN) < 0)
		close_connection(a);
}

static int make_directory(const struct registry *r, struct attachment_listener *l)
{
	int n = snprintf(l->directory, sizeof(l->directory), "%s/pipes/%s", r->directory, l->pipe->config.name);

	if (n < 0 || (size_t)n >= sizeof(l->directory) - sizeof("/" DP_ATTACH_SOCKET))
		return -ENAMETOOLONG;
	/* Its group may enter: the pipe's own, which whoever has the right to gives it (tare net add). */
	if (mkdir(l->directory, 0710) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int listen_at(struct attachment_listener *l)
{
	struct sockaddr_un address = { 0 };
	int err = socket_path(l, &address);

	if (err < 0)
		return err;
	l->source.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->source.fd < 0)
		return -errno;
	(void)unlink(address.sun_path);
	/* The directory says who may come: the socket itself is open to all who can reach it. */
	if (bind(l->source.fd, (struct sockaddr *)&address, sizeof(address)) < 0 || chmod(address.sun_path, 0666) < 0 ||
	    listen(l->source.fd, 16) < 0)
		return -errno;
	return loop_add(l->registry->loop, &l->source, EPOLLIN);
}

int attachment_offer(struct registry *r, struct pipe *pipe)
{
	struct attachment_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	*l = (struct attachment_listener){ .source = { -1, listener_ready }, .registry = r, .pipe = pipe };
	pipe->listener = l;
	err = make_directory(r, l);
	if (err == 0)
		err = listen_at(l);
	if (err < 0)
		attachment_withdraw(r, pipe, true);
	return err;
}

void attachment_withdraw(struct registry *r, struct pipe *pipe, bool forget)
{
	struct attachment_listener *l = pipe->listener;
	struct sockaddr_un address = { 0 };

	if (!l)
		return;
	attachment_end(r, pipe);
	while (l->connections)
		close_connection(l->connections);
	loop_remove(r->loop, &l->source);
	if (l->source.fd >= 0)
		close(l->source.fd);
	if (forget && l->directory[0] && socket_path(l, &address) == 0) {
		(void)unlink(address.sun_path);
		(void)rmdir(l->directory);
	}
	free(l);
	pipe->listener = NULL;
}
