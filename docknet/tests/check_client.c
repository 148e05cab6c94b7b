/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_client.c - docknet-check: a DockLib client that looks at every byte, for tests with other TCP stacks.
 *
 *   docknet-check echo ADDRESS PORT BYTES   send a pattern to an echo server, compare what comes back, half-close in between
 *   docknet-check get ADDRESS PORT PATH     write what an HTTP/1.0 server answers to standard output
 *   docknet-check refused ADDRESS PORT      succeed if the connection is refused
 *
 * exit codes: 0 done, 1 failed, 2 wrong usage
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "docknet.h"

static struct docknet *net;

static int fail(const char *what, int err)
{
	fprintf(stderr, "docknet-check: %s: %s %s\n", what, strerror(-err), docknet_refusal());
	return 1;
}

/* The pattern's byte at an offset: its period is no power of two, so a segment at a wrong place shows. */
static uint8_t pattern(uint64_t offset)
{
	return (uint8_t)((offset * 2654435761u >> 13) ^ (offset % 251));
}

static int connect_to(const char *host, const char *port, struct docknet_tcp **c)
{
	struct docknet_address remote;
	int err = docknet_address_parse(host, (uint16_t)atoi(port), &remote);

	if (!err)
		err = docknet_tcp_connect(net, &remote, NULL, NULL, c);
	while (!err && (err = docknet_tcp_status(*c)) == -EINPROGRESS) {
		err = docknet_poll(net, 1000);
		err = err < 0 ? err : 0;
	}
	return err;
}

/* send_some sends of the pattern what there is room for, and ends the sending side behind its last byte. */
static int send_some(struct docknet_tcp *c, uint64_t total, uint64_t *sent)
{
	static uint8_t data[50000];

	while (*sent < total) {
		size_t length = total - *sent < sizeof data ? (size_t)(total - *sent) : sizeof data;
		size_t room = docknet_tcp_room(c);
		ssize_t n;

		if (length > room)
			length = room;
		for (size_t i = 0; i < length; i++)
			data[i] = pattern(*sent + i);
		n = length ? docknet_tcp_send(c, data, length) : -EAGAIN;
		if (n <= 0)
			return n == -EAGAIN ? 0 : (int)n;
		*sent += (uint64_t)n;
		if (*sent == total)
			return docknet_tcp_shutdown(c);
	}
	return 0;
}

static int echo(struct docknet_tcp *c, uint64_t total)
{
	static uint8_t data[50000];
	uint64_t sent = 0, received = 0;

	for (;;) {
		int err = send_some(c, total, &sent);
		ssize_t n = err ? err : docknet_tcp_recv(c, data, sizeof data);

		if (n == -EAGAIN) {
			err = docknet_poll(net, 1000);
			if (err < 0)
				return fail("polling", err);
			continue;
		}
		if (n < 0)
			return fail("the connection ended", (int)n);
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (data[i] != pattern(received + (uint64_t)i)) {
				fprintf(stderr, "docknet-check: byte %llu is wrong\n",
					(unsigned long long)received + (unsigned long long)i);
				return 1;
			}
		}
		received += (uint64_t)n;
	}
	printf("sent %llu received %llu\n", (unsigned long long)sent, (unsigned long long)received);
	return received != total;
}

static int get(struct docknet_tcp *c, const char *path)
{
	static char data[50000];
	int length = snprintf(data, sizeof data, "GET %s HTTP/1.0\r\n\r\n", path);
	ssize_t n = docknet_tcp_send(c, data, (size_t)length);

	while (n > 0 || n == -EAGAIN) {
		if (n == -EAGAIN && (n = docknet_poll(net, 1000)) < 0)
			return fail("polling", (int)n);
		n = docknet_tcp_recv(c, data, sizeof data);
		if (n > 0)
			fwrite(data, 1, (size_t)n, stdout);
	}
	return n < 0 ? fail("the connection ended", (int)n) : 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc >= 4 ? argv[1] : "";
	bool refused = strcmp(mode, "refused") == 0 && argc == 4;
	struct docknet_tcp *c;
	int err, code = 1;

	if (!refused && !((strcmp(mode, "echo") == 0 || strcmp(mode, "get") == 0) && argc == 5)) {
		fprintf(stderr, "usage: docknet-check echo ADDRESS PORT BYTES | get ADDRESS PORT PATH | refused "
				"ADDRESS PORT\n");
		return 2;
	}
	err = docknet_attach(&(struct docknet_options){ 0 }, &net);
	if (err)
		return fail("attaching to the pipe", err);
	err = connect_to(argv[2], argv[3], &c);
	if (refused && err == -ECONNREFUSED)
		code = 0;
	else if (err)
		code = fail("connecting", err);
	else if (!refused)
		code = *mode == 'e' ? echo(c, strtoull(argv[4], NULL, 10)) : get(c, argv[4]);
	if (!err)
		docknet_tcp_close(c);
	/* What is still to be acknowledged. */
	for (int i = 0; i < 10 && docknet_poll(net, 10) >= 0; i++)
		;
	docknet_detach(net);
	return code;
}
