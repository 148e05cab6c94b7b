/* SPDX-License-Identifier: Apache-2.0 */
/* test_pipe.c - regions and frames, the master against a container that lies in every field. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frame.h"
#include "wait.h"

struct ends {
	int fd;
	struct dp_geometry geometry;
	struct dp_pipe master, container;
};

static int open_ends(void **state)
{
	static struct ends e;

	dp_geometry_default(&e.geometry);
	assert_int_equal(dp_region_create("test", &e.geometry, false, &e.fd), 0);
	assert_int_equal(dp_pipe_map(e.fd, DP_MASTER, &e.geometry, &e.master), 0);
	assert_int_equal(dp_pipe_map(e.fd, DP_CONTAINER, NULL, &e.container), 0);
	*state = &e;
	return 0;
}

static int close_ends(void **state)
{
	struct ends *e = *state;

	dp_pipe_unmap(&e->master);
	dp_pipe_unmap(&e->container);
	close(e->fd);
	return 0;
}

/* send_desc submits descriptors as they are. */
static void send_descs(struct ends *e, const struct dp_desc *descs, uint32_t n)
{
	assert_int_equal(dp_ring_reserve(&e->container.tx, n), n);
	for (uint32_t i = 0; i < n; i++)
		dp_slot_write(&e->container.tx_slot[dp_ring_at(&e->container.tx, i)], &descs[i]);
	dp_ring_submit(&e->container.tx, n);
}

static void lend(struct ends *e, unsigned class, uint32_t number)
{
	struct dp_ring *fill = &e->container.fill[class];

	assert_int_equal(dp_ring_reserve(fill, 1), 1);
	atomic_store(&e->container.fill_entry[class][dp_ring_at(fill, 0)], number);
	dp_ring_submit(fill, 1);
}

/* ---- the layout ---- */

static void test_layout(void **state)
{
	struct dp_geometry g;
	struct dp_layout l;

	(void)state;
	dp_geometry_default(&g);
	assert_int_equal(dp_layout_compute(&g, false, &l), 0);
	assert_int_equal(l.control, 4096);
	assert_int_equal(l.tx_slots, 8192);
	assert_int_equal(l.rx_slots, 8192 + 16384);
	assert_int_equal(l.rx_begin, l.rx_class[0]);
	assert_int_equal(l.rx_end, l.tx_begin);
	assert_int_equal(l.tx_end, l.size);
	assert_int_equal(l.size % 4096, 0);
	assert_int_equal(dp_layout_compute(&g, true, &l), 0);
	assert_int_equal(l.size % (2 << 20), 0);
}

static void test_bad_geometries(void **state)
{
	struct dp_geometry good, g;
	struct dp_layout l;

	(void)state;
	dp_geometry_default(&good);
#define REFUSED(change)                                                                                                \
	do {                                                                                                           \
		g = good;                                                                                              \
		change;                                                                                                \
		assert_int_equal(dp_layout_compute(&g, false, &l), -EINVAL);                                           \
	} while (0)
	REFUSED(g.tx_entries = 0);
	REFUSED(g.tx_entries = 1000);
	REFUSED(g.rx_entries = 1u << 31);
	REFUSED(g.rx_class[0].size = 100);
	REFUSED(g.rx_class[0].count = 0);
	REFUSED(g.rx_class[1].size = 256); /* not ascending */
	REFUSED(g.tx_class[3].size = 1u << 17);
	REFUSED(g.tx_class[3].size = 32768); /* the largest frame would not fit */
	REFUSED(g.tx_class[3].count = 1u << 31);
	REFUSED(g.tx_class[3].count = 32768); /* 2 GiB */
#undef REFUSED
}

/* ---- which files are accepted ---- */

static void test_unsealed_file(void **state)
{
	struct dp_geometry g;
	struct dp_pipe p;
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	(void)state;
	dp_geometry_default(&g);
	assert_int_equal(ftruncate(fd, 8 << 20), 0);
	assert_int_equal(dp_pipe_map(fd, DP_MASTER, &g, &p), -EBADMSG);
	close(fd);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(dp_pipe_map(fd, DP_MASTER, &g, &p), -EBADMSG);
	close(fd);
}

static void test_cannot_truncate(void **state)
{
	struct ends *e = *state;

	assert_int_equal(ftruncate(e->fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(e->fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

/* Each header field in turn is not what it should be. */
static void test_bad_headers(void **state)
{
	struct ends *e = *state;
	struct dp_header *h = e->container.header;
	struct dp_control *c = (struct dp_control *)(e->container.base + e->container.layout.control);
	const struct dp_header good = *h;
	struct dp_pipe p;

	h->magic++;
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &p), -EBADMSG);
	*h = good;
	h->version = 2;
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &p), -EPROTONOSUPPORT);
	*h = good;
	h->geometry.tx_entries *= 2;
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &p), -EBADMSG);
	assert_int_equal(dp_pipe_map(e->fd, DP_CONTAINER, NULL, &p), -EBADMSG);
	*h = good;
	atomic_store(&c->tx.producer, 5000);
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &p), -EBADMSG);
	atomic_store(&c->tx.producer, 0);
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &p), 0);
	dp_pipe_unmap(&p);
}

/* ---- frames ---- */

static void test_frame_passes(void **state)
{
	struct ends *e = *state;
	uint32_t at = (uint32_t)e->container.layout.tx_class[1];
	const struct dp_desc descs[] = { { .offset = at, .length = 5, .flags = DP_DESC_MORE | DP_DESC_CSUM_ELIDED },
					 { .offset = at + 1000, .length = 7 } };
	struct dp_frame f;
	struct dp_desc got;
	char bytes[32] = { 0 };

	memcpy(e->container.base + at, "hello", 5);
	memcpy(e->container.base + at + 1000, ", world", 7);
	send_descs(e, descs, 2);
	assert_int_equal(dp_frame_peek(&e->master, &f), 1);
	assert_int_equal(f.length, 12);
	assert_int_equal(f.flags, DP_DESC_CSUM_ELIDED);
	assert_int_equal(dp_frame_copy(&f, bytes, sizeof bytes), 12);
	assert_string_equal(bytes, "hello, world");

	/* Into the same pipe: no buffer, then one that is too small, then one. */
	assert_int_equal(dp_frame_deliver(&e->master, &f, "HELLO", 5), -EAGAIN);
	lend(e, 2, 3);
	assert_int_equal(dp_frame_deliver(&e->master, &f, "HELLO", 5), 0);
	dp_frame_release(&e->master, &f);
	assert_int_equal(dp_frame_peek(&e->master, &f), 0);
	assert_int_equal(dp_ring_in_use(&e->container.tx), 0);

	assert_int_equal(dp_ring_peek(&e->container.rx, 1), 1);
	got = dp_slot_read(&e->container.rx_slot[dp_ring_at(&e->container.rx, 0)]);
	assert_int_equal(got.offset, e->container.layout.rx_class[2] + 3 * 16384);
	assert_int_equal(got.length, 12);
	assert_memory_equal(e->container.base + got.offset, "HELLO, world", 12);
}

static void test_bad_descriptors(void **state)
{
	struct ends *e = *state;
	const struct dp_layout *l = &e->master.layout;
	uint32_t begin = (uint32_t)l->tx_begin, end = (uint32_t)l->tx_end;
	const struct dp_desc bad[] = {
		{ .offset = begin, .length = 0 },
		{ .offset = begin - 1, .length = 10 }, /* receive buffers are not for sending */
		{ .offset = 0, .length = 100 },	       /* the header */
		{ .offset = end, .length = 1 },
		{ .offset = end - 10, .length = 11 },
		{ .offset = UINT32_MAX, .length = UINT16_MAX }, /* a 32-bit sum would wrap */
		{ .offset = UINT32_MAX - 100, .length = 200 },
		{ .offset = begin, .length = 10, .flags = 0x8000 },
		{ .offset = begin, .length = 10, .reserved16 = 1 },
		{ .offset = begin, .length = 10, .reserved32 = 1 },
		{ .offset = begin, .length = 10, .flags = DP_DESC_MORE }, /* and then nothing */
	};
	const unsigned n = sizeof bad / sizeof bad[0];
	struct dp_frame f;

	for (unsigned i = 0; i < n; i++) {
		send_descs(e, &bad[i], 1);
		assert_int_equal(dp_frame_peek(&e->master, &f), -EBADMSG);
		assert_int_equal(dp_frame_peek(&e->master, &f), 0);
		assert_int_equal(e->master.bad_descs, i + 1);
	}
}

static void test_too_long_frames(void **state)
{
	struct ends *e = *state;
	struct dp_desc d[DP_FRAME_SEGMENTS + 1];
	uint32_t begin = (uint32_t)e->master.layout.tx_begin;
	struct dp_frame f;

	/* 2 x 40,000 bytes. */
	d[0] = (struct dp_desc){ .offset = begin, .length = 40000, .flags = DP_DESC_MORE };
	d[1] = (struct dp_desc){ .offset = begin, .length = 40000 };
	send_descs(e, d, 2);
	assert_int_equal(dp_frame_peek(&e->master, &f), -EBADMSG);
	/* One descriptor too many. */
	for (unsigned i = 0; i <= DP_FRAME_SEGMENTS; i++)
		d[i] = (struct dp_desc){ .offset = begin,
					 .length = 1,
					 .flags = i < DP_FRAME_SEGMENTS ? DP_DESC_MORE : 0 };
	send_descs(e, d, DP_FRAME_SEGMENTS + 1);
	assert_int_equal(dp_frame_peek(&e->master, &f), -EBADMSG);
	assert_int_equal(dp_frame_peek(&e->master, &f),
			 1); /* what is left of it: one byte, a frame that no address is in */
	assert_int_equal(f.length, 1);
	dp_frame_release(&e->master, &f);
	/* Exactly as much as may be. */
	d[0] = (struct dp_desc){ .offset = begin, .length = 65535 };
	send_descs(e, d, 1);
	assert_int_equal(dp_frame_peek(&e->master, &f), 1);
	assert_int_equal(f.length, DP_FRAME_MAX);
	lend(e, 3, 31);
	assert_int_equal(dp_frame_deliver(&e->master, &f, NULL, 0), 0);
}

static void test_bad_fill_entries(void **state)
{
	struct ends *e = *state;
	uint32_t offset;

	lend(e, 0, 512); /* one past the last */
	lend(e, 0, UINT32_MAX);
	lend(e, 0, 511);
	assert_int_equal(dp_buffer_take(&e->master, 200, &offset), 0);
	assert_int_equal(offset, e->master.layout.rx_class[0] + 511 * 256);
	assert_int_equal(e->master.bad_descs, 2);
	assert_int_equal(dp_buffer_take(&e->master, 200, &offset), -EAGAIN);
	lend(e, 0, 1);
	assert_int_equal(dp_buffer_take(&e->master, 257, &offset), -EAGAIN); /* too small for that */
}

/* A container writes garbage over everything that is shared, again and again; the master goes through all of it. */
static void test_garbage_everywhere(void **state)
{
	struct ends *e = *state;
	uint64_t x = 88172645463325252u;
	uint32_t frames = 0;

	for (unsigned round = 0; round < 300; round++) {
		uint64_t *words = (uint64_t *)(e->container.base + DP_PAGE);
		struct dp_frame f;
		int got;

		for (uint64_t i = 0; i < (e->master.layout.rx_begin - DP_PAGE) / 8; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			words[i] = x;
		}
		/* Half of the time the indices are possible ones, or nothing behind them would be reached. */
		if (round % 2) {
			atomic_store(&e->master.tx.shared->producer, e->master.tx.own + 64);
			for (unsigned c = 0; c < DP_CLASSES; c++)
				atomic_store(&e->master.fill[c].shared->producer, e->master.fill[c].own + 8);
			atomic_store(&e->master.rx.shared->consumer, e->master.rx.own);
		}
		for (unsigned i = 0; i < 2000 && (got = dp_frame_peek(&e->master, &f)) != 0; i++) {
			if (got < 0)
				continue;
			assert_in_range(f.length, 1, DP_FRAME_MAX);
			(void)dp_frame_deliver(&e->master, &f, NULL, 0);
			dp_frame_release(&e->master, &f);
			frames++;
		}
		dp_wake(&e->master, DP_WANT_FRAMES | DP_WANT_SPACE);
	}
	assert_true(e->master.bad_descs > 1000);
	(void)frames;
}

/* ---- faults ---- */

static void test_punched_region(void **state)
{
	struct ends *e = *state;
	struct dp_frame f;

	/* In ordinary pages a hole is zeros: no fault, and no descriptor of zeros is valid. */
	assert_int_equal(dp_fault_guard(&e->master), 0);
	assert_int_equal(fallocate(e->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)e->master.size), 0);
	assert_int_equal(dp_frame_peek(&e->master, &f), 0);
	assert_false(dp_fault_seen(&e->master));
}

static void test_sigbus_is_survived(void **state)
{
	struct dp_pipe p = { .size = 8192 };
	int fd = memfd_create("test", MFD_CLOEXEC); /* unsealed: can be cut under its reader */

	(void)state;
	assert_int_equal(ftruncate(fd, 8192), 0);
	p.base = mmap(NULL, p.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p.base[5000] = 1;
	assert_int_equal(dp_fault_guard(&p), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(*(volatile uint8_t *)&p.base[5000], 0); /* would have been the end of the process */
	assert_true(dp_fault_seen(&p));
	dp_fault_unguard(&p);
	assert_false(dp_fault_seen(&p));
	munmap(p.base, p.size);
	close(fd);
}

/* ---- re-attachment, sleeping ---- */

static void test_reset_receive(void **state)
{
	struct ends *e = *state;
	uint32_t begin = (uint32_t)e->master.layout.tx_begin;
	const struct dp_desc d = { .offset = begin, .length = 9 };
	struct dp_pipe next;
	struct dp_frame f;

	send_descs(e, &d, 1);
	lend(e, 1, 7);
	dp_pipe_reset_receive(&e->container);
	assert_int_equal(atomic_load(&e->container.header->epoch), 2);
	assert_int_equal(dp_pipe_map(e->fd, DP_MASTER, &e->geometry, &next), 0);
	assert_int_equal(dp_ring_peek(&next.fill[1], 1), 0);
	assert_int_equal(dp_frame_peek(&next, &f), 1); /* what the old master had not taken */
	assert_int_equal(f.length, 9);
	dp_pipe_unmap(&next);
}

static void *sleeper(void *argument)
{
	struct ends *e = argument;

	/* Until the frame is there: a lost wake-up would make this test time out. */
	while (dp_ring_peek(&e->container.rx, 1) == 0) {
		dp_sleep_prepare(&e->container, DP_WANT_FRAMES);
		if (dp_ring_peek(&e->container.rx, 1) == 0)
			dp_sleep(&e->container, 100000000000u);
		dp_sleep_cancel(&e->container);
	}
	return NULL;
}

static void test_no_lost_wake(void **state)
{
	struct ends *e = *state;

	for (unsigned i = 0; i < 200; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, sleeper, e), 0);
		if (i % 3 == 0)
			usleep(100);
		dp_frame_submit(&e->master, (uint32_t)e->master.layout.rx_begin, 1, 0);
		dp_wake(&e->master, DP_WANT_FRAMES);
		pthread_join(thread, NULL);
		dp_ring_release(&e->container.rx, 1);
		assert_true(dp_frame_room(&e->master));
	}
}

static void test_wake_only_what_is_wanted(void **state)
{
	struct ends *e = *state;

	assert_false(dp_wake(&e->master, DP_WANT_FRAMES)); /* awake */
	dp_sleep_prepare(&e->container, DP_WANT_FRAMES);
	assert_false(dp_wake(&e->master, DP_WANT_SPACE));
	assert_true(dp_wake(&e->master, DP_WANT_FRAMES));
	assert_false(dp_wake(&e->master, DP_WANT_FRAMES)); /* once */
	atomic_store(&e->container.me->want, 0xfffffff0);  /* nonsense wakes nobody */
	assert_false(dp_wake(&e->master, DP_WANT_FRAMES | DP_WANT_SPACE));
}

#define WITH_ENDS(test) cmocka_unit_test_setup_teardown(test, open_ends, close_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_bad_geometries),
		cmocka_unit_test(test_unsealed_file),
		WITH_ENDS(test_cannot_truncate),
		WITH_ENDS(test_bad_headers),
		WITH_ENDS(test_frame_passes),
		WITH_ENDS(test_bad_descriptors),
		WITH_ENDS(test_too_long_frames),
		WITH_ENDS(test_bad_fill_entries),
		WITH_ENDS(test_garbage_everywhere),
		WITH_ENDS(test_punched_region),
		cmocka_unit_test(test_sigbus_is_survived),
		WITH_ENDS(test_reset_receive),
		WITH_ENDS(test_no_lost_wake),
		WITH_ENDS(test_wake_only_what_is_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
