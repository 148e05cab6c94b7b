/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - regions: made, mapped, checked. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipe.h"

/* Without these a peer can make the file shorter, and whoever touches the missing part gets SIGBUS. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int write_header(int fd, const struct dp_geometry *geometry, uint64_t size)
{
	struct dp_header *header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (header == MAP_FAILED)
		return -errno;
	header->magic = DP_MAGIC;
	header->version = DP_VERSION;
	header->size = size;
	header->geometry = *geometry;
	atomic_store_explicit(&header->epoch, 1, memory_order_relaxed);

	struct dp_control *control = (struct dp_control *)((uint8_t *)header + DP_PAGE);

	atomic_store_explicit(&control->container.cpu, DP_CPU_UNKNOWN, memory_order_relaxed);
	atomic_store_explicit(&control->master.cpu, DP_CPU_UNKNOWN, memory_order_relaxed);
	munmap(header, size);
	return 0;
}

int dp_region_create(const char *name, const struct dp_geometry *geometry, bool hugepages, int *fd)
{
	struct dp_layout layout;
	int err = dp_layout_compute(geometry, hugepages, &layout);

	if (err)
		return err;

	int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (hugepages ? MFD_HUGETLB | MFD_HUGE_2MB : 0));

	if (file < 0)
		return -errno;
	if (ftruncate(file, (off_t)layout.size) < 0) {
		err = -errno;
		goto fail;
	}
	/* Hugepages are allocated here and now: a page that is missing later would be a SIGBUS instead of an error. */
	if (hugepages && fallocate(file, 0, 0, (off_t)layout.size) < 0) {
		err = errno == ENOSPC ? -ENOMEM : -errno;
		goto fail;
	}
	err = write_header(file, geometry, layout.size);
	if (err)
		goto fail;
	if (fcntl(file, F_ADD_SEALS, SEALS) < 0) {
		err = -errno;
		goto fail;
	}
	*fd = file;
	return 0;
fail:
	close(file);
	return err;
}

static bool geometry_equal(const struct dp_geometry *a, const struct dp_geometry *b)
{
	return memcmp(a, b, sizeof *a) == 0; /* nothing but uint32_t in it: no padding */
}

/* check_header copies the geometry out of a mapped header and finds the layout that it means. */
static int check_header(const struct dp_header *shared, uint64_t file_size, const struct dp_geometry *expected,
			struct dp_geometry *geometry, struct dp_layout *layout)
{
	struct dp_layout huge;

	if (shared->magic != DP_MAGIC)
		return -EBADMSG;
	if (shared->version != DP_VERSION)
		return -EPROTONOSUPPORT;

	struct dp_geometry copy = expected ? *expected : shared->geometry;

	if (expected && !geometry_equal(expected, &shared->geometry))
		return -EBADMSG;
	if (dp_layout_compute(&copy, false, layout) || dp_layout_compute(&copy, true, &huge))
		return -EBADMSG;
	if (huge.size == file_size)
		layout->size = huge.size;
	if (layout->size != file_size)
		return -EBADMSG;
	*geometry = copy;
	return 0;
}

/* resume_ring makes a handle from indices that are in the region already: both 0 in a new one. */
static int resume_ring(struct dp_ring *ring, struct dp_ring_shared *shared, uint32_t size, bool producer)
{
	uint32_t p = atomic_load_explicit(&shared->producer, memory_order_acquire);
	uint32_t c = atomic_load_explicit(&shared->consumer, memory_order_acquire);

	if (p - c > size)
		return -EBADMSG;
	dp_ring_init(ring, shared, size, producer ? p : c, producer ? c : p);
	return 0;
}

static int open_rings(struct dp_pipe *pipe)
{
	struct dp_control *control = (struct dp_control *)(pipe->base + pipe->layout.control);
	bool container = pipe->role == DP_CONTAINER;
	int err;

	pipe->me = container ? &control->container : &control->master;
	pipe->peer = container ? &control->master : &control->container;
	pipe->tx_slot = (struct dp_slot *)(pipe->base + pipe->layout.tx_slots);
	pipe->rx_slot = (struct dp_slot *)(pipe->base + pipe->layout.rx_slots);

	err = resume_ring(&pipe->tx, &control->tx, pipe->geometry.tx_entries, container);
	if (!err)
		err = resume_ring(&pipe->rx, &control->rx, pipe->geometry.rx_entries, !container);
	for (unsigned i = 0; i < DP_CLASSES && !err; i++) {
		pipe->fill_entry[i] = (_Atomic uint32_t *)(pipe->base + pipe->layout.fill[i]);
		err = resume_ring(&pipe->fill[i], &control->fill[i], pipe->geometry.rx_class[i].count, container);
	}
	return err;
}

int dp_pipe_map(int fd, enum dp_role role, const struct dp_geometry *expected, struct dp_pipe *pipe)
{
	struct dp_pipe p = { .role = role, .bell_fd = -1 };
	struct stat st;
	int err, seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return -EBADMSG; /* not a memfd */
	if ((seals & SEALS) != SEALS || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
		return -EBADMSG;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)DP_PAGE * 2 || st.st_size > (off_t)DP_REGION_MAX)
		return -EBADMSG;

	p.size = (uint64_t)st.st_size;
	p.base = mmap(NULL, p.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p.base == MAP_FAILED)
		return -errno;
	p.header = (struct dp_header *)p.base;
	err = check_header(p.header, p.size, expected, &p.geometry, &p.layout);
	if (!err)
		err = open_rings(&p);
	if (err) {
		munmap(p.base, p.size);
		return err;
	}
	*pipe = p;
	return 0;
}

void dp_pipe_unmap(struct dp_pipe *pipe)
{
	if (pipe->base) {
		dp_fault_unguard(pipe);
		munmap(pipe->base, pipe->size);
	}
	*pipe = (struct dp_pipe){ .bell_fd = -1 };
}

static void reset_ring(struct dp_ring *ring)
{
	atomic_store_explicit(&ring->shared->producer, 0, memory_order_relaxed);
	atomic_store_explicit(&ring->shared->consumer, 0, memory_order_release);
	ring->own = 0;
	ring->peer = 0;
}

void dp_pipe_reset_receive(struct dp_pipe *pipe)
{
	reset_ring(&pipe->rx);
	for (unsigned i = 0; i < DP_CLASSES; i++)
		reset_ring(&pipe->fill[i]);
	/* A dead master's sleep must not be answered. */
	atomic_store_explicit(&pipe->peer->want, 0, memory_order_relaxed);
	atomic_store_explicit(&pipe->peer->cpu, DP_CPU_UNKNOWN, memory_order_relaxed);
	atomic_fetch_add_explicit(&pipe->header->epoch, 1, memory_order_release);
}
