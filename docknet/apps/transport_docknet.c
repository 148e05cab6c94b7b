/* SPDX-License-Identifier: Apache-2.0 */
/* transport_docknet.c - streams over DockLib. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docknet.h"
#include "transport.h"

struct docknet_stream {
	struct stream stream;
	struct docknet_tcp *connection;
	bool short_send;
};

static struct docknet *net;

static int docknet_open(void)
{
	int err = docknet_attach(&(struct docknet_options){ 0 }, &net);

	if (err && *docknet_refusal())
		fprintf(stderr, "docknet: the master refused: %s\n", docknet_refusal());
	return err;
}

static void on_connected(void *argument, struct docknet_tcp *connection)
{
	struct docknet_stream *s = argument;

	(void)connection;
	if (s->stream.events->opened)
		s->stream.events->opened(&s->stream);
}

static void on_recved(void *argument, struct docknet_tcp *connection, struct docknet_buffer *buffer)
{
	struct docknet_stream *s = argument;

	(void)connection;
	if (buffer) {
		s->stream.events->data(&s->stream, buffer->data, buffer->length);
		docknet_buffer_release(buffer);
	} else if (s->stream.events->ended) {
		s->stream.events->ended(&s->stream);
	}
}

static void on_sent(void *argument, struct docknet_tcp *connection, size_t bytes)
{
	struct docknet_stream *s = argument;

	(void)connection;
	(void)bytes;
	if (!s->short_send)
		return;
	s->short_send = false;
	if (s->stream.events->writable)
		s->stream.events->writable(&s->stream);
}

static void on_failed(void *argument, struct docknet_tcp *connection, int error)
{
	struct docknet_stream *s = argument;

	(void)connection;
	if (s->stream.events->closed)
		s->stream.events->closed(&s->stream, error);
	free(s);
}

static const struct docknet_tcp_callbacks callbacks = {
	.connected = on_connected,
	.tcp_recved = on_recved,
	.sent = on_sent,
	.failed = on_failed,
};

static void on_accepted(void *argument, struct docknet_tcp *connection)
{
	struct docknet_stream *s = calloc(1, sizeof *s);

	if (!s) {
		docknet_tcp_abort(connection);
		return;
	}
	s->stream.events = argument;
	s->connection = connection;
	docknet_tcp_set(connection, &callbacks, s);
	if (s->stream.events->opened)
		s->stream.events->opened(&s->stream);
}

static int docknet_listen(const char *host, uint16_t port, const struct stream_events *events)
{
	static const struct docknet_tcp_callbacks accepting = { .accepted = on_accepted };
	struct docknet_listener *listener;
	struct docknet_address address;
	int err = docknet_address_parse(host, port, &address);

	return err ? err : docknet_tcp_listen(net, &address, &accepting, (void *)events, &listener);
}

static int docknet_connect(const char *host, uint16_t port, const struct stream_events *events, void *user,
			   struct stream **out)
{
	struct docknet_address address;
	struct docknet_stream *s;
	int err = docknet_address_parse(host, port, &address);

	if (err)
		return err;
	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->stream.events = events;
	s->stream.user = user;
	err = docknet_tcp_connect(net, &address, &callbacks, s, &s->connection);
	if (err) {
		free(s);
		return err;
	}
	*out = &s->stream;
	return 0;
}

static ssize_t docknet_send(struct stream *stream, const void *data, size_t length)
{
	struct docknet_stream *s = (struct docknet_stream *)stream;
	ssize_t n = docknet_tcp_send(s->connection, data, length);

	if (n == -EAGAIN)
		n = 0;
	if (n >= 0 && (size_t)n < length)
		s->short_send = true;
	return n;
}

static int docknet_shutdown(struct stream *stream)
{
	return docknet_tcp_shutdown(((struct docknet_stream *)stream)->connection);
}

static void docknet_close(struct stream *stream)
{
	struct docknet_stream *s = (struct docknet_stream *)stream;

	docknet_tcp_set(s->connection, NULL, NULL);
	docknet_tcp_close(s->connection);
	free(s);
}

static int docknet_transport_poll(int timeout_ms)
{
	int n = docknet_poll(net, timeout_ms);

	return n < 0 ? n : 0;
}

static void docknet_stop(void)
{
	struct docknet_stats s;

	if (getenv("DOCKNET_STATS")) {
		docknet_stats(net, &s);
		fprintf(stderr,
			"docknet: rx %llu frames %llu bytes, tx %llu frames %llu bytes, blocked %llu, copied %llu, "
			"retransmitted %llu, polls %llu, spins %llu, yields %llu, sleeps %llu, wakes %llu\n",
			(unsigned long long)s.rx_frames, (unsigned long long)s.rx_bytes,
			(unsigned long long)s.tx_frames, (unsigned long long)s.tx_bytes,
			(unsigned long long)s.tx_blocked, (unsigned long long)s.rx_copied,
			(unsigned long long)s.tcp_retransmits, (unsigned long long)s.polls, (unsigned long long)s.spins,
			(unsigned long long)s.yields, (unsigned long long)s.sleeps, (unsigned long long)s.wakes);
	}
	docknet_detach(net);
}

const struct transport docknet_transport = {
	.name = "docknet",
	.open = docknet_open,
	.listen = docknet_listen,
	.connect = docknet_connect,
	.send = docknet_send,
	.shutdown = docknet_shutdown,
	.close = docknet_close,
	.poll = docknet_transport_poll,
	.stop = docknet_stop,
};
