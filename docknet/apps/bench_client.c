/* SPDX-License-Identifier: Apache-2.0 */
/* bench_client.c - measures: messages back and forth, messages one way, HTTP requests on kept-alive connections. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define SAMPLES_MAX 2000000u
#define PATIENCE_NS 5000000000ull /* without progress for this long a measurement has failed */

static const char request[] = "GET / HTTP/1.1\r\nHost: bench\r\n\r\n";

enum kind { PINGPONG, STREAM, HTTP };

/* One measurement. */
struct run {
	const struct transport *transport;
	const struct bench_options *options;
	enum kind kind;
	uint8_t *message;
	uint64_t begin_ns, end_ns, progress_ns;
	uint64_t done;	/* messages that came back, or replies */
	uint64_t total; /* bytes that the server got */
	float *rtt_us;
	size_t samples;
	unsigned open, wanted, finished;
	int error;
};

struct client {
	struct run *run;
	struct stream *stream;
	size_t sent, received; /* of the message under way */
	uint64_t sent_ns;
	bool ending, opener_sent;
	/* HTTP reply: 0 while in the header */
	size_t body_left;
	unsigned matched;
	char head[256];
	size_t head_length;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(struct run *r, int error)
{
	if (r->error == 0)
		r->error = error;
}

/* push sends what is left of the message; true: all of it is on its way. */
static bool push(struct client *c)
{
	struct run *r = c->run;

	while (c->sent < r->options->size) {
		ssize_t n = r->transport->send(c->stream, r->message + c->sent, r->options->size - c->sent);

		if (n < 0)
			fail(r, (int)n);
		if (n <= 0)
			return false;
		c->sent += (size_t)n;
	}
	return true;
}

static void send_message(struct client *c)
{
	c->sent = 0;
	c->received = 0;
	c->sent_ns = now_ns();
	(void)push(c);
}

static void send_stream(struct client *c)
{
	struct run *r = c->run;

	for (unsigned n = 0; !c->ending; n++) {
		/* The clock is not looked at for each message: it costs as much as sending one. */
		if (n % 64 == 0 && now_ns() >= r->end_ns) {
			c->ending = true;
			r->transport->shutdown(c->stream);
			return;
		}
		if (c->sent == r->options->size)
			c->sent = 0;
		if (!push(c))
			return;
	}
}

static void send_request(struct client *c)
{
	if (c->run->transport->send(c->stream, request, sizeof request - 1) != (ssize_t)sizeof request - 1)
		fail(c->run, -EAGAIN);
}

static void begin(struct client *c)
{
	struct run *r = c->run;

	switch (r->kind) {
	case PINGPONG:
		send_message(c);
		break;
	case STREAM:
		send_stream(c);
		break;
	case HTTP:
		send_request(c);
		break;
	}
}

static void on_opened(struct stream *stream)
{
	struct client *c = stream->user;

	c->run->open++;
	if (c->run->kind != HTTP)
		c->run->transport->send(stream, c->run->kind == PINGPONG ? "E" : "S", 1);
}

static void on_pong(struct client *c, size_t length)
{
	struct run *r = c->run;

	c->received += length;
	if (c->received < r->options->size)
		return;

	uint64_t now = now_ns();

	r->done++;
	r->progress_ns = now;
	if (r->samples < SAMPLES_MAX)
		r->rtt_us[r->samples++] = (float)(now - c->sent_ns) / 1000.0f;
	if (now < r->end_ns)
		send_message(c);
	else
		r->finished++;
}

static void on_total(struct client *c, const uint8_t *data, size_t length)
{
	struct run *r = c->run;

	while (length > 0 && c->head_length < sizeof(uint64_t)) {
		c->head[c->head_length++] = (char)*data++;
		length--;
	}
	if (c->head_length == sizeof(uint64_t)) {
		uint64_t bytes;

		memcpy(&bytes, c->head, sizeof bytes);
		r->total += bytes;
		r->progress_ns = now_ns();
		r->finished++;
	}
}

/* http_head takes one byte of a reply's header. */
static void http_head(struct client *c, char byte)
{
	if (c->head_length < sizeof c->head - 1)
		c->head[c->head_length++] = byte;
	c->matched = byte == "\r\n\r\n"[c->matched] ? c->matched + 1 : byte == '\r';
	if (c->matched < 4)
		return;
	c->head[c->head_length] = 0;

	const char *field = strstr(c->head, "Content-Length: ");

	if (!field || strncmp(c->head, "HTTP/1.1 200", 12) != 0) {
		fail(c->run, -EPROTO);
		return;
	}
	c->body_left = (size_t)strtoull(field + 16, NULL, 10);
	c->head_length = 0;
	c->matched = 5; /* in the body */
}

static void http_done(struct client *c)
{
	struct run *r = c->run;
	uint64_t now = now_ns();

	c->matched = 0;
	r->done++;
	r->progress_ns = now;
	if (now < r->end_ns)
		send_request(c);
	else
		r->finished++;
}

static void on_http(struct client *c, const uint8_t *data, size_t length)
{
	while (length > 0) {
		size_t n = 1;

		if (c->matched < 5) {
			http_head(c, (char)*data);
		} else {
			n = length < c->body_left ? length : c->body_left;
			c->body_left -= n;
		}
		data += n;
		length -= n;
		if (c->matched == 5 && c->body_left == 0)
			http_done(c);
	}
}

static void on_data(struct stream *stream, const uint8_t *data, size_t length)
{
	struct client *c = stream->user;

	switch (c->run->kind) {
	case PINGPONG:
		on_pong(c, length);
		break;
	case STREAM:
		on_total(c, data, length);
		break;
	case HTTP:
		on_http(c, data, length);
		break;
	}
}

static void on_writable(struct stream *stream)
{
	struct client *c = stream->user;

	if (c->run->begin_ns == 0)
		return;
	if (c->run->kind == PINGPONG)
		(void)push(c);
	else if (c->run->kind == STREAM)
		send_stream(c);
}

static void on_closed(struct stream *stream, int error)
{
	struct client *c = stream->user;

	fail(c->run, error);
	c->stream = NULL;
}

static const struct stream_events events = {
	.opened = on_opened, .data = on_data, .writable = on_writable, .closed = on_closed
};

static bool stuck(struct run *r)
{
	uint64_t now = now_ns();

	if (now > r->progress_ns + PATIENCE_NS && now > r->end_ns + PATIENCE_NS)
		fail(r, -ETIMEDOUT);
	return r->error != 0 || bench_stop;
}

static void poll_until(struct run *r, const unsigned *counter, unsigned value)
{
	for (unsigned n = 0; *counter < value && r->error == 0; n++) {
		int err = r->transport->poll(100);

		if (err < 0)
			fail(r, err);
		if (n % 1024 == 0 && stuck(r))
			break;
	}
}

static void measure(struct run *r, struct client *clients)
{
	const struct bench_options *o = r->options;

	r->wanted = o->connections + o->idle;
	r->progress_ns = r->end_ns = now_ns();
	for (unsigned i = 0; i < r->wanted && r->error == 0; i++) {
		int err;

		clients[i].run = r;
		err = r->transport->connect(o->host, o->port, &events, &clients[i], &clients[i].stream);
		if (err)
			fail(r, err);
		if (i % 64 == 63)
			poll_until(r, &r->open, i + 1);
	}
	poll_until(r, &r->open, r->wanted);
	if (r->error)
		return;
	r->begin_ns = r->progress_ns = now_ns();
	r->end_ns = r->begin_ns + (uint64_t)(o->seconds * 1e9);
	/* The idle ones came first: whoever looks for a connection from the newest on has to pass them. */
	for (unsigned i = 0; i < o->connections; i++)
		begin(&clients[i]);
	poll_until(r, &r->finished, o->connections);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double quantile_oneway_us(const struct run *r, double q)
{
	return r->samples == 0 ? -1 : (double)r->rtt_us[(size_t)((double)(r->samples - 1) * q)] / 2;
}

static int run_one(struct run *r, struct bench_result *result)
{
	unsigned n = r->options->connections + r->options->idle;
	struct client *clients = calloc(n, sizeof *clients);
	double seconds;

	r->message = calloc(1, r->options->size);
	r->rtt_us = r->kind == PINGPONG ? malloc(SAMPLES_MAX * sizeof *r->rtt_us) : NULL;
	if (!clients || !r->message || (r->kind == PINGPONG && !r->rtt_us)) {
		fail(r, -ENOMEM);
	} else {
		measure(r, clients);
	}
	seconds = (double)(r->progress_ns - r->begin_ns) / 1e9;
	if (r->error == 0 && r->kind == PINGPONG) {
		qsort(r->rtt_us, r->samples, sizeof *r->rtt_us, compare);
		result->oneway_p50_us = quantile_oneway_us(r, 0.5);
		result->oneway_p99_us = quantile_oneway_us(r, 0.99);
	} else if (r->error == 0 && r->kind == STREAM) {
		result->goodput_mbytes_s = (double)r->total / seconds / 1e6;
	} else if (r->error == 0) {
		result->requests_s = (double)r->done / seconds;
	}
	for (unsigned i = 0; clients && i < n; i++) {
		if (clients[i].stream)
			r->transport->close(clients[i].stream);
	}
	(void)r->transport->poll(0);
	free(clients);
	free(r->message);
	free(r->rtt_us);
	return r->error;
}

int bench_measure(const struct transport *transport, const struct bench_options *options, struct bench_result *result)
{
	const bool chosen[] = { options->pingpong, options->stream, options->http };

	*result = (struct bench_result){ -1, -1, -1, -1 };
	for (int kind = PINGPONG; kind <= HTTP; kind++) {
		struct run r = { .transport = transport, .options = options, .kind = (enum kind)kind };
		int err = chosen[kind] ? run_one(&r, result) : 0;

		if (err)
			return err;
		if (bench_stop)
			return -EINTR;
	}
	return 0;
}
