/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.c - docknet-echo: the smallest server. TCP comes back as it came, without a copy by this program; UDP, too.
 *
 *   DOCKNET_PIPE=/run/docknet/pipe docknet-echo 7
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docknet.h"

static volatile sig_atomic_t stop;

/* Received buffers that could not be sent back yet, in order. */
struct waiting {
	struct docknet_buffer *buffer;
	size_t done;
	struct waiting *next;
};

struct client {
	struct waiting *first, **last;
	bool ended;
};

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void free_client(struct client *c)
{
	while (c->first) {
		struct waiting *w = c->first;

		c->first = w->next;
		docknet_buffer_release(w->buffer);
		free(w);
	}
	free(c);
}

static void on_accepted(void *argument, struct docknet_tcp *connection);
static void on_recved(void *argument, struct docknet_tcp *connection, struct docknet_buffer *buffer);
static void on_sent(void *argument, struct docknet_tcp *connection, size_t bytes);
static void on_failed(void *argument, struct docknet_tcp *connection, int error);

static const struct docknet_tcp_callbacks callbacks = {
	.accepted = on_accepted, .tcp_recved = on_recved, .sent = on_sent, .failed = on_failed
};

static void on_accepted(void *argument, struct docknet_tcp *connection)
{
	struct client *c = calloc(1, sizeof *c);

	(void)argument;
	if (!c) {
		docknet_tcp_abort(connection);
		return;
	}
	c->last = &c->first;
	docknet_tcp_set(connection, &callbacks, c);
}

/* A buffer is released when all of it has been sent: a client that doesn't read is slowed down by its own window. */
static void send_waiting(struct client *c, struct docknet_tcp *connection)
{
	while (c->first) {
		struct waiting *w = c->first;
		ssize_t n = docknet_tcp_send(connection, w->buffer->data + w->done, w->buffer->length - w->done);

		if (n < 0)
			return;
		w->done += (size_t)n;
		if (w->done < w->buffer->length)
			return;
		c->first = w->next;
		if (!c->first)
			c->last = &c->first;
		docknet_buffer_release(w->buffer);
		free(w);
	}
	if (c->ended) {
		docknet_tcp_close(connection);
		free_client(c);
	}
}

static void on_recved(void *argument, struct docknet_tcp *connection, struct docknet_buffer *buffer)
{
	struct client *c = argument;
	struct waiting *w;

	if (!buffer) {
		c->ended = true;
		send_waiting(c, connection);
		return;
	}
	w = malloc(sizeof *w);
	if (!w) {
		docknet_buffer_release(buffer);
		docknet_tcp_abort(connection);
		free_client(c);
		return;
	}
	*w = (struct waiting){ .buffer = buffer };
	*c->last = w;
	c->last = &w->next;
	send_waiting(c, connection);
}

static void on_sent(void *argument, struct docknet_tcp *connection, size_t bytes)
{
	struct client *c = argument;

	(void)bytes;
	if (c->first)
		send_waiting(c, connection);
}

static void on_failed(void *argument, struct docknet_tcp *connection, int error)
{
	(void)connection;
	(void)error;
	free_client(argument);
}

static void on_datagram(void *argument, struct docknet_udp *socket, const struct docknet_address *from,
			struct docknet_buffer *buffer)
{
	(void)argument;
	(void)docknet_udp_send(socket, from, buffer->data, buffer->length); /* UDP: no room is no promise */
	docknet_buffer_release(buffer);
}

static int report(const char *what, int err)
{
	fprintf(stderr, "docknet-echo: %s: %s%s%s\n", what, strerror(-err), *docknet_refusal() ? ": " : "",
		docknet_refusal());
	return 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct docknet_address any = { 0 };
	struct docknet_listener *listener;
	struct docknet_udp *socket;
	struct docknet *net;
	int err;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		puts("usage: docknet-echo [PORT]\n\nEchoes TCP and UDP on PORT (default 7) of the pipe that "
		     "$DOCKNET_PIPE names.");
		return 0;
	}
	if (argc > 2 || (argc == 2 && (atoi(argv[1]) < 1 || atoi(argv[1]) > 65535))) {
		fprintf(stderr, "docknet-echo: want one port, 1 to 65535 (docknet-echo --help tells how)\n");
		return 2;
	}
	any.port = (uint16_t)(argc == 2 ? atoi(argv[1]) : 7);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	err = docknet_attach(&(struct docknet_options){ 0 }, &net);
	if (err)
		return report("attaching to the pipe", err);
	err = docknet_tcp_listen(net, &any, &callbacks, NULL, &listener);
	if (!err)
		err = docknet_udp_bind(net, &any, on_datagram, NULL, &socket);
	if (err) {
		docknet_detach(net);
		return report("listening", err);
	}
	printf("listening\n");
	fflush(stdout);
	while (!stop && err >= 0)
		err = docknet_poll(net, 200);
	docknet_detach(net);
	return err < 0 ? report("polling", err) : 0;
}
