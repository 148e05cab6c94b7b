// SPDX-License-Identifier: Apache-2.0
/*
 * A container without a TCP/IP stack: attaches to a pipe and exchanges raw packets through the daemon. For tests of the
 * daemon alone, and for faults that a decent library cannot make.
 *
 *   peer DIRECTORY echo                       answer everything, until killed
 *   peer DIRECTORY ping DESTINATION COUNT SIZE   exchange packets, print one-way latencies, check contents
 *   peer DIRECTORY blast DESTINATION COUNT SIZE  send without waiting for anything, then end
 *   peer DIRECTORY spoof DESTINATION SOURCE COUNT
 *   peer DIRECTORY garbage SEED ROUNDS        write random bytes everywhere in the region, and attach again
 *   peer DIRECTORY hold                       attach, print "attached", wait to be killed
 *   peer DIRECTORY half                       attach, leave a frame without its end in the ring, wait to be killed
 *   peer DIRECTORY cycle COUNT                attach, send a bit, vanish; again and again
 */
#include "../../dockpipe/attach.h"
#include "../../dockpipe/pipe.h"
#include "../../dockpipe/wait.h"
#include "../packet.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define UDP_HEADERS 28u

static struct dp_pipe dp;
static struct dp_welcome welcome;
static struct dp_waiter waiter;
static int connection = -1;
static uint32_t sent[DP_CLASSES];

static void attach(const char *directory)
{
	int region, bell, r = dp_attach_connect(directory, -1, 5000, &welcome, &connection, &region, &bell);

	if (r < 0)
		errx(1, "attaching to %s: %s %s", directory, strerror(-r), welcome.reason);
	r = dp_pipe_map(region, DP_CONTAINER, NULL, &dp);
	if (r < 0)
		errx(1, "mapping the region: %s", strerror(-r));
	close(region);
	dp.bell_fd = bell;
	for (unsigned int c = 0; c < DP_CLASSES; c++) {
		uint32_t n = dp_ring_reserve(&dp.fill[c], dp.geometry.rx_class[c].count);

		for (uint32_t i = 0; i < n; i++)
			atomic_store(&dp.fill_entry[c][dp_ring_at(&dp.fill[c], i)], i);
		dp_ring_submit(&dp.fill[c], n);
	}
}

static void detach(void)
{
	close(dp.bell_fd);
	dp_pipe_unmap(&dp);
	close(connection);
}

/* Waits until there is something to receive, or with space until there is room to send. */
static void wait_for(bool space)
{
	char byte;

	if (!dp_waiter_idle(&waiter, dp_peer_cpu(&dp)))
		return;
	dp_sleep_prepare(&dp, space ? DP_WANT_SPACE | DP_WANT_FRAMES : DP_WANT_FRAMES);
	if (dp_ring_peek(&dp.rx, 1) == 0 && !(space && dp_ring_reserve(&dp.tx, 1) > 0))
		dp_sleep(&dp, 1000000000u);
	dp_sleep_cancel(&dp);
	if (dp_ring_peek(&dp.rx, 1) == 0 && recv(connection, &byte, 1, MSG_DONTWAIT) == 0)
		errx(3, "the daemon has closed the connection");
}

static void send_packet(const void *packet, uint32_t length)
{
	struct dp_desc desc = { .length = (uint16_t)length, .flags = DP_DESC_CSUM_ELIDED };
	unsigned int c = 0;

	while (dp.geometry.tx_class[c].size < length)
		c++;
	/* The buffer is free again when as many frames as the class has buffers have been released after it. */
	while (dp_ring_reserve(&dp.tx, 1) == 0 || dp_ring_in_use(&dp.tx) >= dp.geometry.tx_class[c].count)
		wait_for(true);
	dp_waiter_busy(&waiter);
	desc.offset = (uint32_t)(dp.layout.tx_class[c] +
				 (uint64_t)(sent[c]++ % dp.geometry.tx_class[c].count) * dp.geometry.tx_class[c].size);
	memcpy(dp.base + desc.offset, packet, length);
	dp_slot_write(&dp.tx_slot[dp_ring_at(&dp.tx, 0)], &desc);
	dp_ring_submit(&dp.tx, 1);
	dp_publish_cpu(&dp);
	(void)dp_wake(&dp, DP_WANT_FRAMES);
}

/* Copies the next packet out and gives its buffer back; returns its length. */
static uint32_t receive_packet(uint8_t *packet)
{
	struct dp_desc desc;

	while (dp_ring_peek(&dp.rx, 1) == 0)
		wait_for(false);
	dp_waiter_busy(&waiter);
	desc = dp_slot_read(&dp.rx_slot[dp_ring_at(&dp.rx, 0)]);
	memcpy(packet, dp.base + desc.offset, desc.length);
	dp_ring_release(&dp.rx, 1);
	for (unsigned int c = 0; c < DP_CLASSES; c++) {
		uint64_t begin = dp.layout.rx_class[c];
		const struct dp_class *class = &dp.geometry.rx_class[c];

		if (desc.offset < begin || desc.offset >= begin + (uint64_t) class->size * class->count)
			continue;
		(void)dp_ring_reserve(&dp.fill[c], 1);
		atomic_store(&dp.fill_entry[c][dp_ring_at(&dp.fill[c], 0)],
			     (uint32_t)((desc.offset - begin) / class->size));
		dp_ring_submit(&dp.fill[c], 1);
	}
	dp_publish_cpu(&dp);
	(void)dp_wake(&dp, DP_WANT_SPACE);
	return desc.length;
}

static const uint8_t *own_address(void)
{
	for (int i = 0; i < (int)DP_ADDRESSES_MAX; i++)
		if (welcome.address[i].family == 4)
			return welcome.address[i].bytes;
	errx(1, "the pipe has no IPv4 address");
}

static void make_packet(uint8_t *packet, uint32_t length, const void *source, const char *destination)
{
	memset(packet, 0, UDP_HEADERS);
	packet[0] = 0x45;
	packet[2] = (uint8_t)(length >> 8);
	packet[3] = (uint8_t)length;
	packet[8] = 64;
	packet[9] = 17;
	memcpy(packet + 12, source, 4);
	if (inet_pton(AF_INET, destination, packet + 16) != 1)
		errx(2, "%s is no IPv4 address", destination);
	packet[21] = packet[23] = 7;
	packet[24] = (uint8_t)((length - 20) >> 8);
	packet[25] = (uint8_t)(length - 20);
}

static void fill(uint8_t *packet, uint32_t length, uint32_t round)
{
	for (uint32_t i = UDP_HEADERS; i < length; i++)
		packet[i] = (uint8_t)(i * 31 + round * 7);
}

static void echo(void)
{
	static uint8_t packet[DP_BUFFER_MAX];

	for (;;) {
		uint32_t length = receive_packet(packet);
		uint8_t source[4];

		memcpy(source, packet + 12, 4);
		memcpy(packet + 12, packet + 16, 4);
		memcpy(packet + 16, source, 4);
		send_packet(packet, length);
	}
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void ping(const char *destination, uint32_t count, uint32_t size)
{
	static uint8_t packet[DP_BUFFER_MAX], answer[DP_BUFFER_MAX];
	uint64_t *ns = calloc(count, sizeof(*ns));

	make_packet(packet, size, own_address(), destination);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t start;

		fill(packet, size, i);
		start = dp_now_ns();
		send_packet(packet, size);
		if (receive_packet(answer) != size ||
		    memcmp(packet + UDP_HEADERS, answer + UDP_HEADERS, size - UDP_HEADERS))
			errx(1, "answer %u differs from what was sent", i);
		ns[i] = dp_now_ns() - start;
	}
	qsort(ns, count, sizeof(*ns), ascending);
	printf("count %u size %u oneway_us p50 %.2f p99 %.2f\n", count, size, (double)ns[count / 2] / 2000,
	       (double)ns[(uint64_t)count * 99 / 100] / 2000);
	free(ns);
}

static void blast(const char *destination, const void *source, uint32_t count, uint32_t size)
{
	static uint8_t packet[DP_BUFFER_MAX];
	uint64_t start = dp_now_ns();

	make_packet(packet, size, source, destination);
	for (uint32_t i = 0; i < count; i++)
		send_packet(packet, size);
	while (dp_ring_in_use(&dp.tx) > 0)
		wait_for(true);
	printf("count %u size %u mbytes_s %.0f\n", count, size,
	       (double)count * size / ((double)(dp_now_ns() - start) / 1e3));
}

/* Random words over everything that is shared, with rings that look full in between. */
static void garbage(const char *directory, unsigned int seed, uint32_t rounds)
{
	srandom(seed);
	for (uint32_t i = 0; i < rounds; i++) {
		struct dp_control *control;
		char byte;

		attach(directory);
		control = (struct dp_control *)(dp.base + dp.layout.control);
		for (int n = 0; n < 2000; n++) {
			uint64_t slots = (uint64_t)dp.geometry.tx_entries * sizeof(struct dp_slot);
			uint64_t at = (dp.layout.tx_slots + (uint64_t)random() % slots) & ~7ull;

			*(_Atomic uint32_t *)(dp.base + at) = (uint32_t)random() * 2;
			if (random() % 64 == 0)
				atomic_store(&control->tx.producer, dp.tx.own += (uint32_t)random() % 16);
			if (random() % 256 == 0)
				*(_Atomic uint32_t *)((uint8_t *)control + ((uint32_t)random() % sizeof(*control) &
									    ~3u)) = (uint32_t)random();
			if (random() % 64 == 0)
				*(_Atomic uint32_t *)(dp.base + ((uint64_t)random() % dp.layout.rx_begin & ~3ull)) =
					(uint32_t)random();
		}
		(void)!write(dp.bell_fd, &(uint64_t){ 1 }, 8);
		if (random() % 4 == 0) /* after a pause the daemon may have had enough: then the connection is closed */
			usleep(2000);
		if (random() % 8 == 0)
			(void)send(connection, &byte, 1, MSG_NOSIGNAL);
		detach();
	}
}

/* Dies with a region in use: the child is killed where it stands. */
static void cycle(const char *directory, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pid_t pid = fork();
		int status;

		if (pid < 0)
			err(1, "fork");
		if (pid == 0) {
			uint8_t packet[64];

			attach(directory);
			make_packet(packet, sizeof(packet), own_address(), "10.255.255.254");
			send_packet(packet, sizeof(packet));
			raise(SIGKILL);
		}
		if (waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
			errx(1, "cycle %u: the attachment failed", i);
	}
	printf("cycles %u\n", count);
}

int main(int argc, char **argv)
{
	const char *directory = argc > 2 ? argv[1] : NULL, *mode = argc > 2 ? argv[2] : "";
	uint8_t source[4];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(mode, "garbage") == 0 && argc == 5) {
		garbage(directory, (unsigned int)atoi(argv[3]), (uint32_t)atoi(argv[4]));
		return 0;
	} else if (strcmp(mode, "cycle") == 0 && argc == 4) {
		cycle(directory, (uint32_t)atoi(argv[3]));
		return 0;
	}
	if (!directory)
		errx(2, "usage: peer DIRECTORY MODE ...: see the head of the source");
	attach(directory);
	if (strcmp(mode, "echo") == 0 && argc == 3) {
		echo();
	} else if (strcmp(mode, "ping") == 0 && argc == 6) {
		ping(argv[3], (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
	} else if (strcmp(mode, "blast") == 0 && argc == 6) {
		blast(argv[3], own_address(), (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5]));
	} else if (strcmp(mode, "spoof") == 0 && argc == 6 && inet_pton(AF_INET, argv[4], source) == 1) {
		blast(argv[3], source, (uint32_t)atoi(argv[5]), 100);
	} else if (strcmp(mode, "hold") == 0 || strcmp(mode, "half") == 0) {
		if (strcmp(mode, "half") == 0) {
			struct dp_desc desc = { .offset = (uint32_t)dp.layout.tx_begin,
						.length = 40,
						.flags = DP_DESC_MORE };

			dp_slot_write(&dp.tx_slot[dp_ring_at(&dp.tx, 0)], &desc);
			dp_ring_submit(&dp.tx, 1);
			(void)dp_wake(&dp, DP_WANT_FRAMES);
		}
		puts("attached");
		pause();
	} else {
		errx(2, "unknown mode %s, or arguments missing: see the head of the source", mode);
	}
	return 0;
}
