/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_packets.c - the container's stack under packets that the fuzzer makes: 2 bytes of length, then the packet, and so
 * on. There are a listener and a UDP port, and the addresses are put right, or nothing would get past IP.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_master.h"
#include "net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct docknet *net;
static struct dp_pipe master;

static void *run_master(void *argument)
{
	fake_master_run(argument, 0);
	return NULL;
}

static void recved(void *argument, struct docknet_tcp *c, struct docknet_buffer *b)
{
	(void)argument;
	if (!b) {
		docknet_tcp_close(c);
		return;
	}
	(void)docknet_tcp_send(c, b->data, b->length);
	docknet_buffer_release(b);
}

static void accepted(void *argument, struct docknet_tcp *c)
{
	(void)argument;
	(void)c;
}

static void datagram(void *argument, struct docknet_udp *s, const struct docknet_address *from,
		     struct docknet_buffer *b)
{
	(void)argument;
	(void)docknet_udp_send(s, from, b->data, b->length);
	docknet_buffer_release(b);
}

static void start(void)
{
	static const struct docknet_tcp_callbacks callbacks = { .accepted = accepted, .tcp_recved = recved };
	static struct fake_master m;
	char base[] = "/tmp/docknet-fuzz.XXXXXX", path[100];
	struct docknet_address any = { .port = 80 };
	struct docknet_listener *l;
	struct docknet_udp *u;
	pthread_t thread;
	int err;

	if (!mkdtemp(base))
		abort();
	fake_master_init(&m, DP_WAIT_SLEEP);
	err = fake_master_add(&m, base, "a", "10.0.0.1,fd00::1");
	if (err || pthread_create(&thread, NULL, run_master, &m))
		abort();
	snprintf(path, sizeof path, "%s/a", base);
	err = docknet_attach(&(struct docknet_options){ .pipe = path }, &net);
	if (err)
		abort();
	/* From here on the fuzzer is the master. */
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
	err = dp_pipe_map(net->region, DP_MASTER, NULL, &master);
	if (err || docknet_tcp_listen(net, &any, &callbacks, NULL, &l) ||
	    docknet_udp_bind(net, &any, datagram, NULL, &u))
		abort();
	unlink(m.pipes[0].directory);
	snprintf(path, sizeof path, "%s/a/attach", base);
	unlink(path);
	rmdir(m.pipes[0].directory);
	rmdir(base);
}

/* put_right makes a packet's version, destination and ports such that somebody is there. */
static void put_right(uint8_t *p, uint32_t length)
{
	static const uint8_t own6[16] = { 0xfd, [15] = 1 };

	if (length >= 24 && p[0] >> 4 != 6) {
		p[0] = (uint8_t)(0x40 | (p[0] & 15));
		memcpy(p + 16, "\x0a\0\0\1", 4);
		p[2] = (uint8_t)(length >> 8);
		p[3] = (uint8_t)length;
		if (p[12] & 1)
			p[0] = 0x45, p[22] = 0, p[23] = 80;
	} else if (length >= 44) {
		memcpy(p + 24, own6, 16);
		p[4] = (uint8_t)((length - 40) >> 8);
		p[5] = (uint8_t)(length - 40);
		if (p[8] & 1)
			p[42] = 0, p[43] = 80;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_frame f;

	if (!net)
		start();
	while (size > 2) {
		uint32_t length = ((uint32_t)data[0] << 8 | data[1]) % 2048, offset;

		data += 2;
		size -= 2;
		if (length > size)
			length = (uint32_t)size;
		if (length == 0 || dp_buffer_take(&master, length, &offset) || !dp_frame_room(&master))
			break;
		memcpy(master.base + offset, data, length);
		put_right(master.base + offset, length);
		dp_frame_submit(&master, offset, length, 0);
		data += length;
		size -= length;
		(void)docknet_poll(net, 0);
		while (dp_frame_peek(&master, &f) == 1)
			dp_frame_release(&master, &f);
	}
	(void)docknet_poll(net, 0);
	return 0;
}
