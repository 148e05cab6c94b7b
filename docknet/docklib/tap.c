/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tap.c - packets into a pcapng file (IETF draft "PCAP Next Generation Capture File Format"): a section header, an
 * interface of bare IP packets, and a block for each packet with its direction. Checksums are elided inside the host, so
 * Wireshark shows them as wrong if it is told to check them.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"
#include "net.h"

#define BUFFER_BYTES	 (256u * 1024)
#define LINKTYPE_RAW	 101u
#define OPTION_END	 0u
#define OPTION_NAME	 2u /* if_name */
#define OPTION_TSRES	 9u /* if_tsresol */
#define OPTION_FLAGS	 2u /* epb_flags: 1 inbound, 2 outbound */
#define BLOCK_SECTION	 0x0a0d0d0au
#define BLOCK_IDB	 1u
#define BLOCK_PACKET	 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du

struct tap {
	int fd;
	size_t used;
	uint64_t lost;
	uint8_t bytes[BUFFER_BYTES];
};

static void flush(struct tap *tap)
{
	size_t done = 0;

	while (done < tap->used) {
		ssize_t n = write(tap->fd, tap->bytes + done, tap->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* Half a block would make all that follow unreadable. */
			tap->lost++;
			close(tap->fd);
			tap->fd = -1;
			break;
		}
		done += (size_t)n;
	}
	tap->used = 0;
}

static void put(struct tap *tap, const void *data, size_t length)
{
	memcpy(tap->bytes + tap->used, data, length);
	tap->used += length;
}

static void put32(struct tap *tap, uint32_t word)
{
	put(tap, &word, sizeof word);
}

static void put_padding(struct tap *tap, size_t length)
{
	static const uint8_t zeros[4];

	put(tap, zeros, (4 - length % 4) % 4);
}

static void put_option(struct tap *tap, uint32_t code, const void *value, size_t length)
{
	put32(tap, code | (uint32_t)length << 16);
	put(tap, value, length);
	put_padding(tap, length);
}

static uint32_t padded(size_t length)
{
	return (uint32_t)((length + 3) & ~(size_t)3);
}

static void put_headers(struct tap *tap, const char *interface)
{
	const uint8_t nanoseconds = 9;
	size_t name = strlen(interface);
	uint32_t idb = 20 + 4 + padded(name) + 8 + 4;

	put32(tap, BLOCK_SECTION);
	put32(tap, 28);
	put32(tap, BYTE_ORDER_MAGIC);
	put32(tap, 1);		/* version 1.0 */
	put32(tap, UINT32_MAX); /* section length unknown */
	put32(tap, UINT32_MAX);
	put32(tap, 28);

	put32(tap, BLOCK_IDB);
	put32(tap, idb);
	put32(tap, LINKTYPE_RAW);
	put32(tap, 0); /* no limit on a packet's length */
	put_option(tap, OPTION_NAME, interface, name);
	put_option(tap, OPTION_TSRES, &nanoseconds, 1);
	put32(tap, OPTION_END);
	put32(tap, idb);
}

int tap_open(const char *path, const char *interface, struct tap **out)
{
	struct tap *tap = docknet_heap_get(sizeof *tap);
	int err;

	if (!tap)
		return -ENOMEM;
	tap->used = 0;
	tap->lost = 0;
	tap->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (tap->fd < 0) {
		err = -errno;
		docknet_heap_put(tap);
		return err;
	}
	put_headers(tap, interface);
	*out = tap;
	return 0;
}

void tap_close(struct tap *tap)
{
	if (!tap)
		return;
	if (tap->fd >= 0) {
		flush(tap);
		if (tap->fd >= 0)
			close(tap->fd);
	}
	docknet_heap_put(tap);
}

void tap_packet(struct tap *tap, const struct pbuf *p, bool outbound)
{
	const uint32_t flags = outbound ? 2 : 1;
	const uint32_t length = 32 + padded(p->tot_len) + 8 + 4;
	struct timespec t;
	uint64_t ns;

	if (tap->fd >= 0 && tap->used + length > BUFFER_BYTES)
		flush(tap);
	if (tap->fd < 0) {
		tap->lost++;
		return;
	}
	clock_gettime(CLOCK_REALTIME, &t);
	ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	put32(tap, BLOCK_PACKET);
	put32(tap, length);
	put32(tap, 0); /* the interface */
	put32(tap, (uint32_t)(ns >> 32));
	put32(tap, (uint32_t)ns);
	put32(tap, p->tot_len);
	put32(tap, p->tot_len);
	for (const struct pbuf *q = p; q; q = q->next)
		put(tap, q->payload, q->len);
	put_padding(tap, p->tot_len);
	put_option(tap, OPTION_FLAGS, &flags, sizeof flags);
	put32(tap, OPTION_END);
	put32(tap, length);
}

uint64_t tap_lost(const struct tap *tap)
{
	return tap ? tap->lost : 0;
}
