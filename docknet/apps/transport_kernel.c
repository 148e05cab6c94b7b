/* SPDX-License-Identifier: Apache-2.0 */
/* transport_kernel.c - streams over the kernel's TCP: non-blocking sockets and epoll. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport.h"

#define READ_BYTES (256u * 1024)

struct socket_stream {
	struct stream stream;
	int fd;
	bool listening, connecting, short_send, dead;
	struct socket_stream *next_dead;
};

static int epoll_fd = -1;
static uint8_t read_buffer[READ_BYTES];
static struct socket_stream *dead; /* freed when no event of this round can name them any more */

static int kernel_open(void)
{
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return epoll_fd < 0 ? -errno : 0;
}

static int parse(const char *host, uint16_t port, struct sockaddr_storage *address, socklen_t *length)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof *address);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*length = sizeof *v4;
		return 0;
	}
	if (*host && inet_pton(AF_INET6, host, &v6->sin6_addr) != 1)
		return -EINVAL;
	v6->sin6_family = AF_INET6; /* "": any address of either version */
	v6->sin6_port = htons(port);
	*length = sizeof *v6;
	return 0;
}

static struct socket_stream *add(int fd, const struct stream_events *events, void *user, uint32_t wanted)
{
	struct socket_stream *s = calloc(1, sizeof *s);
	struct epoll_event e = { .events = wanted, .data.ptr = s };

	if (!s)
		return NULL;
	s->fd = fd;
	s->stream.events = events;
	s->stream.user = user;
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e);
	return s;
}

static void want(struct socket_stream *s, uint32_t wanted)
{
	struct epoll_event e = { .events = wanted, .data.ptr = s };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->fd, &e);
}

static int kernel_listen(const char *host, uint16_t port, const struct stream_events *events)
{
	const int on = 1;
	struct sockaddr_storage address;
	struct socket_stream *s;
	socklen_t length;
	int fd, err = parse(host, port, &address, &length);

	if (err)
		return err;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 1024) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	s = add(fd, events, NULL, EPOLLIN);
	if (!s)
		return -ENOMEM;
	s->listening = true;
	return 0;
}

static void no_delay(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static int kernel_connect(const char *host, uint16_t port, const struct stream_events *events, void *user,
			  struct stream **out)
{
	struct sockaddr_storage address;
	struct socket_stream *s;
	socklen_t length;
	int fd, err = parse(host, port, &address, &length);

	if (err)
		return err;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	no_delay(fd);
	if (connect(fd, (struct sockaddr *)&address, length) < 0 && errno != EINPROGRESS) {
		err = -errno;
		close(fd);
		return err;
	}
	s = add(fd, events, user, EPOLLOUT);
	if (!s)
		return -ENOMEM;
	s->connecting = true;
	*out = &s->stream;
	return 0;
}

static ssize_t kernel_send(struct stream *stream, const void *data, size_t length)
{
	struct socket_stream *s = (struct socket_stream *)stream;
	ssize_t n = send(s->fd, data, length, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return -errno;
	if (n < 0)
		n = 0;
	if ((size_t)n < length && !s->short_send) {
		s->short_send = true;
		want(s, EPOLLIN | EPOLLOUT);
	}
	return n;
}

static int kernel_shutdown(struct stream *stream)
{
	return shutdown(((struct socket_stream *)stream)->fd, SHUT_WR) < 0 ? -errno : 0;
}

static void kernel_close(struct stream *stream)
{
	struct socket_stream *s = (struct socket_stream *)stream;

	if (s->dead)
		return;
	close(s->fd);
	s->dead = true;
	s->next_dead = dead;
	dead = s;
}

static void fail(struct socket_stream *s, int error)
{
	if (s->stream.events->closed)
		s->stream.events->closed(&s->stream, error);
	kernel_close(&s->stream);
}

static void accept_all(struct socket_stream *l)
{
	for (;;) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct socket_stream *s;

		if (fd < 0)
			return;
		no_delay(fd);
		s = add(fd, l->stream.events, NULL, EPOLLIN);
		if (!s)
			close(fd);
		else if (s->stream.events->opened)
			s->stream.events->opened(&s->stream);
	}
}

static void finish_connect(struct socket_stream *s)
{
	int error = 0;
	socklen_t length = sizeof error;

	getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		fail(s, -error);
		return;
	}
	s->connecting = false;
	want(s, EPOLLIN);
	if (s->stream.events->opened)
		s->stream.events->opened(&s->stream);
}

static void readable(struct socket_stream *s)
{
	ssize_t n = recv(s->fd, read_buffer, sizeof read_buffer, 0);

	if (n > 0) {
		s->stream.events->data(&s->stream, read_buffer, (size_t)n);
	} else if (n == 0) {
		want(s, s->short_send ? EPOLLOUT : 0); /* or the end would be told again and again */
		if (s->stream.events->ended)
			s->stream.events->ended(&s->stream);
	} else if (errno != EAGAIN) {
		fail(s, -errno);
	}
}

static void handle(struct socket_stream *s, uint32_t events)
{
	if (s->dead)
		return;
	if (s->listening) {
		accept_all(s);
		return;
	}
	if (s->connecting) {
		finish_connect(s);
		return;
	}
	if (events & EPOLLIN)
		readable(s);
	else if (events & (EPOLLERR | EPOLLHUP))
		fail(s, -ECONNRESET);
	if (!s->dead && (events & EPOLLOUT)) {
		s->short_send = false;
		want(s, EPOLLIN);
		if (s->stream.events->writable)
			s->stream.events->writable(&s->stream);
	}
}

static int kernel_poll(int timeout_ms)
{
	struct epoll_event events[64];
	int n = epoll_wait(epoll_fd, events, 64, timeout_ms);

	for (int i = 0; i < n; i++)
		handle(events[i].data.ptr, events[i].events);
	while (dead) {
		struct socket_stream *s = dead;

		dead = s->next_dead;
		free(s);
	}
	return n < 0 && errno != EINTR ? -errno : 0;
}

static void kernel_stop(void)
{
	close(epoll_fd);
}

const struct transport kernel_transport = {
	.name = "kernel",
	.open = kernel_open,
	.listen = kernel_listen,
	.connect = kernel_connect,
	.send = kernel_send,
	.shutdown = kernel_shutdown,
	.close = kernel_close,
	.poll = kernel_poll,
	.stop = kernel_stop,
};
