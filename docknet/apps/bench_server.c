/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_server.c - the other end of a measurement. What a stream wants its first byte says:
 *   'E' then data: sent back as it comes. 'S' then data: thrown away; at the end the count of bytes is sent, as 8 bytes.
 *   'G': HTTP: a reply for each request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct session {
	char kind; /* 0: not known yet */
	uint64_t received;
	unsigned matched; /* of the "\r\n\r\n" that ends a request */
	uint8_t *unsent;  /* what did not fit */
	size_t unsent_length, unsent_capacity;
};

static const struct transport *transport;
static char *reply;
static size_t reply_length;

static void end(struct stream *stream)
{
	struct session *s = stream->user;

	if (s)
		free(s->unsent);
	free(s);
	stream->user = NULL;
}

/* keep remembers data that there was no room for. */
static void keep(struct session *s, const uint8_t *data, size_t length)
{
	if (s->unsent_length + length > s->unsent_capacity) {
		size_t capacity = (s->unsent_length + length) * 2;
		uint8_t *larger = realloc(s->unsent, capacity);

		if (!larger)
			return; /* the client will miss it, and say so */
		s->unsent = larger;
		s->unsent_capacity = capacity;
	}
	memcpy(s->unsent + s->unsent_length, data, length);
	s->unsent_length += length;
}

static void answer(struct stream *stream, const void *data, size_t length)
{
	struct session *s = stream->user;
	ssize_t n = s->unsent_length == 0 ? transport->send(stream, data, length) : 0;

	if (n >= 0 && (size_t)n < length)
		keep(s, (const uint8_t *)data + n, length - (size_t)n);
}

static void on_opened(struct stream *stream)
{
	stream->user = calloc(1, sizeof(struct session));
}

static void http(struct stream *stream, const uint8_t *data, size_t length)
{
	struct session *s = stream->user;

	for (size_t i = 0; i < length; i++) {
		s->matched = data[i] == (uint8_t) "\r\n\r\n"[s->matched] ? s->matched + 1 : data[i] == '\r';
		if (s->matched == 4) {
			s->matched = 0;
			answer(stream, reply, reply_length);
		}
	}
}

static void on_data(struct stream *stream, const uint8_t *data, size_t length)
{
	struct session *s = stream->user;

	if (!s || length == 0)
		return;
	if (s->kind == 0) {
		s->kind = (char)data[0];
		if (s->kind != 'G') {
			data++;
			length--;
		}
	}
	s->received += length;
	if (length == 0)
		return;
	if (s->kind == 'E')
		answer(stream, data, length);
	else if (s->kind == 'G')
		http(stream, data, length);
}

static void on_writable(struct stream *stream)
{
	struct session *s = stream->user;
	ssize_t n;

	if (!s || s->unsent_length == 0)
		return;
	n = transport->send(stream, s->unsent, s->unsent_length);
	if (n > 0) {
		s->unsent_length -= (size_t)n;
		memmove(s->unsent, s->unsent + n, s->unsent_length);
	}
}

static void on_ended(struct stream *stream)
{
	struct session *s = stream->user;

	if (s && s->kind == 'S')
		transport->send(stream, &s->received, sizeof s->received);
	end(stream);
	transport->close(stream);
}

static void on_closed(struct stream *stream, int error)
{
	(void)error;
	end(stream);
}

static const struct stream_events events = {
	.opened = on_opened, .data = on_data, .writable = on_writable, .ended = on_ended, .closed = on_closed
};

int bench_serve(const struct transport *t, const char *host, uint16_t port, size_t reply_bytes)
{
	int err;

	transport = t;
	reply = malloc(reply_bytes + 256);
	if (!reply)
		return -ENOMEM;
	reply_length = (size_t)snprintf(
		reply, 256, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", reply_bytes);
	memset(reply + reply_length, 'x', reply_bytes);
	reply_length += reply_bytes;
	err = t->listen(host, port, &events);
	if (err)
		return err;
	printf("listening\n");
	fflush(stdout);
	while (!bench_stop && err >= 0)
		err = t->poll(200);
	free(reply);
	return err;
}
