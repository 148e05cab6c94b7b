/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dockpipe.h - the memory that one container and the master share, and the messages by which they come to share it.
 *
 * This is the only description of it: daemon, library and tests include it. Code that works on it is in ring.h,
 * pipe.h, frame.h, attach.h and wait.h.
 *
 * A DockPipe is one sealed memfd. Its parts, each beginning on a page; the sizes of all follow from the geometry:
 *
 *   0        +--------------------------------------------------------+
 *            | struct dp_header   magic, version, epoch, geometry     |
 *   4 KiB    +--------------------------------------------------------+
 *            | struct dp_control  who sleeps and where; ring indices  |
 *            +--------------------------------------------------------+
 *            | transmit ring      descriptors, container -> master    |
 *            | receive ring       descriptors, master -> container    |
 *            | fill rings         numbers of free receive buffers,    |
 *            |                    one ring per size class, c -> m     |
 *            +--------------------------------------------------------+
 *            | receive buffers    256 B ... | 2 KiB ... | 64 KiB ...  |  written by the master
 *            | transmit buffers   256 B ... | 2 KiB ... | 64 KiB ...  |  written by the container
 *            +--------------------------------------------------------+
 *
 *   container                                                                   master
 *      | take a transmit buffer, write a frame, submit a descriptor ----tx---->  | copies the frame out, releases
 *      |   (the buffer is the container's again when the master has released)    |
 *      | give free receive buffers -------------------------------------fill-->  | takes one that is large enough,
 *      | reads the frame, gives the buffer back when it likes      <----rx-----  | copies a frame in, submits
 *
 * Invariants
 * - A frame is one IP packet, version 4 or 6, without Ethernet header: at most DP_FRAME_MAX bytes, in 1 to
 *   DP_FRAME_SEGMENTS descriptors, all but the last with DP_DESC_MORE, all submitted by one store.
 * - Each index has one writer. It counts entries ever passed, wraps at 2^32, and is used modulo the ring's size:
 *   producer - consumer is the number of entries in use, never above the size. Anything else is the peer's fault.
 * - Shared memory holds offsets from the start of the region, or numbers of buffers; never pointers.
 * - Nothing in here is believed. Whoever reads it loads it once, checks its copy, and uses only the copy. The owner
 *   of an index keeps its own copy and never reads it back.
 * - Checksums are left out inside the host: DP_DESC_CSUM_ELIDED says that none in the frame is filled in (IPv4
 *   header, TCP, UDP, ICMP, ICMPv6). The master fills them in at the NIC, and has checked those of every frame from the NIC.
 * - No frame is dropped for want of space: the producer waits (DP_WANT_SPACE).
 * - A region lives for one attachment. Only after the master's death a container brings its old region to the
 *   next master, with a higher epoch: see attach.h.
 */
#ifndef DOCKNET_DOCKPIPE_H
#define DOCKNET_DOCKPIPE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define DP_MAGIC   0x65706970656b6364ull /* "dckepipe", little endian: a big-endian peer sees another number */
#define DP_VERSION 1

#define DP_PAGE		  4096u
#define DP_CACHE_LINE	  64u
#define DP_FRAME_MAX	  65535u /* an IPv4 packet's total length; lwIP's pbuf lengths have 16 bits, too */
#define DP_FRAME_SEGMENTS 16u	 /* descriptors of one frame */
#define DP_CLASSES	  4u	 /* size classes of buffers, in each direction */
#define DP_BUFFER_MAX	  65536u
#define DP_BUFFER_MIN	  256u
#define DP_RING_MAX	  32768u		/* entries of a ring, and buffers of a class */
#define DP_REGION_MAX	  (1024u * 1024 * 1024) /* offsets stay far from 2^32 */
#define DP_NAME_MAX	  32u			/* bytes of a pipe's name with its 0 */
#define DP_ADDRESSES_MAX  8u

/* A size class: count buffers of size bytes. Both are powers of two; sizes ascend from class to class. */
struct dp_class {
	uint32_t size;
	uint32_t count;
};

/* The numbers that all offsets follow from (dp_layout_compute in pipe.h). Ring sizes are powers of two. */
struct dp_geometry {
	uint32_t tx_entries;
	uint32_t rx_entries;
	struct dp_class tx_class[DP_CLASSES];
	struct dp_class rx_class[DP_CLASSES];
};

/* Written by the creator before the region is shared; the epoch by the container between two masters. */
struct dp_header {
	uint64_t magic;
	uint32_t version;
	_Atomic uint32_t epoch; /* 1 for a new region, one more at each re-attachment */
	uint64_t size;		/* bytes of the region, and of its file */
	struct dp_geometry geometry;
};

/* One ring's indices. Producer and consumer write to different cache lines. */
struct dp_ring_shared {
	alignas(DP_CACHE_LINE) _Atomic uint32_t producer;
	alignas(DP_CACHE_LINE) _Atomic uint32_t consumer;
};

/* What a side tells its peer about its sleep. Written rarely, read by the peer after each burst. */
struct dp_side {
	alignas(DP_CACHE_LINE) _Atomic uint32_t want; /* DP_WANT_*: wake me when ...; 0 while awake */
	_Atomic uint32_t cpu;			      /* where this side runs, DP_CPU_UNKNOWN before it ran */
	_Atomic uint32_t bell;			      /* futex word: changes with each wake-up */
};

#define DP_WANT_FRAMES 1u /* ... frames have been submitted to me */
#define DP_WANT_SPACE  2u /* ... ring entries or receive buffers have been given back to me */
#define DP_WANT_MASK   3u
#define DP_WAKE_SOCKET 4u /* container only: wake me by a byte on the attach socket, not by the futex */
#define DP_CPU_UNKNOWN UINT32_MAX

struct dp_control {
	struct dp_side container;
	struct dp_side master;
	struct dp_ring_shared tx;
	struct dp_ring_shared rx;
	struct dp_ring_shared fill[DP_CLASSES];
	struct dp_ring_shared fast; /* reserved for the fast channel: 0, and not to be looked at */
};

/* A part of a frame, as code handles it. */
struct dp_desc {
	uint32_t offset; /* of the first byte, from the start of the region */
	uint16_t length; /* bytes, at least 1 */
	uint16_t flags;	 /* DP_DESC_* */
	/* In a frame's first descriptor: TCP payload bytes per packet if the frame must be segmented at the NIC; 0: must not. */
	uint16_t gso_size;
	uint16_t reserved16; /* 0 */
	uint32_t reserved32; /* 0 */
};

#define DP_DESC_MORE	    1u /* the frame goes on in the next descriptor */
#define DP_DESC_CSUM_ELIDED 2u /* in a frame's first descriptor: no checksum in it is filled in */
#define DP_DESC_FLAGS	    3u /* all that are defined; others are an error */

/* A descriptor as it lies in a ring: two words, each loaded once. (A memcpy from memory that the peer may write to
 * may be split or repeated by the compiler.) */
struct dp_slot {
	_Atomic uint64_t word[2];
};

/* ---- messages on the attach socket (SOCK_SEQPACKET); who sends what when is in attach.h ---- */

struct dp_address {
	uint8_t family; /* 4 or 6; 0 ends the list */
	uint8_t prefix_length;
	uint8_t reserved[2];
	uint8_t bytes[16]; /* network order; the first 4 for family 4 */
};

struct dp_hello { /* container -> master; with DP_HELLO_RESUME its region as SCM_RIGHTS */
	uint64_t magic;
	uint32_t version;
	uint32_t flags;
};

#define DP_HELLO_RESUME 1u

struct dp_welcome { /* master -> container; with status 0 two file descriptors: region, master's eventfd */
	uint64_t magic;
	uint32_t version;
	int32_t status; /* 0, or -errno: the attachment is refused */
	uint64_t size;	/* of the region */
	uint32_t epoch;
	uint32_t mtu; /* largest frame that this pipe takes, for all destinations */
	char name[DP_NAME_MAX];
	struct dp_address address[DP_ADDRESSES_MAX]; /* this pipe's own: other sources are dropped */
	struct dp_address gateway4, gateway6;	     /* family 0: none. For information: routing is the master's */
	char reason[96];			     /* with status < 0: text for a person */
};

/* ---- the layout is a protocol: if one of these fails, DP_VERSION must change ---- */

#define DP_AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define DP_SIZE(type, size)	    _Static_assert(sizeof(struct type) == (size), "size of " #type)

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2, "atomics between processes must be lock-free");
_Static_assert(sizeof(_Atomic uint32_t) == 4 && sizeof(_Atomic uint64_t) == 8, "atomics as large as their values");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words of a dp_slot assume little endian");

DP_SIZE(dp_class, 8);
DP_AT(dp_class, size, 0);
DP_AT(dp_class, count, 4);

DP_SIZE(dp_geometry, 72);
DP_AT(dp_geometry, tx_entries, 0);
DP_AT(dp_geometry, rx_entries, 4);
DP_AT(dp_geometry, tx_class, 8);
DP_AT(dp_geometry, rx_class, 40);

DP_SIZE(dp_header, 96);
DP_AT(dp_header, magic, 0);
DP_AT(dp_header, version, 8);
DP_AT(dp_header, epoch, 12);
DP_AT(dp_header, size, 16);
DP_AT(dp_header, geometry, 24);
_Static_assert(sizeof(struct dp_header) <= DP_PAGE, "the header has a page");

DP_SIZE(dp_ring_shared, 128);
DP_AT(dp_ring_shared, producer, 0);
DP_AT(dp_ring_shared, consumer, 64);
_Static_assert(alignof(struct dp_ring_shared) == DP_CACHE_LINE, "a ring's indices begin on a cache line");

DP_SIZE(dp_side, 64);
DP_AT(dp_side, want, 0);
DP_AT(dp_side, cpu, 4);
DP_AT(dp_side, bell, 8);
_Static_assert(alignof(struct dp_side) == DP_CACHE_LINE, "a side has a cache line");

DP_SIZE(dp_control, 1024);
DP_AT(dp_control, container, 0);
DP_AT(dp_control, master, 64);
DP_AT(dp_control, tx, 128);
DP_AT(dp_control, rx, 256);
DP_AT(dp_control, fill, 384);
DP_AT(dp_control, fast, 896);
_Static_assert(sizeof(struct dp_control) <= DP_PAGE, "the control block has a page");

DP_SIZE(dp_desc, 16);
DP_AT(dp_desc, offset, 0);
DP_AT(dp_desc, length, 4);
DP_AT(dp_desc, flags, 6);
DP_AT(dp_desc, gso_size, 8);
DP_AT(dp_desc, reserved16, 10);
DP_AT(dp_desc, reserved32, 12);
DP_SIZE(dp_slot, 16);
DP_AT(dp_slot, word, 0);

DP_SIZE(dp_address, 20);
DP_AT(dp_address, bytes, 4);
DP_SIZE(dp_hello, 16);
DP_AT(dp_hello, magic, 0);
DP_AT(dp_hello, version, 8);
DP_AT(dp_hello, flags, 12);
DP_SIZE(dp_welcome, 360);
DP_AT(dp_welcome, magic, 0);
DP_AT(dp_welcome, version, 8);
DP_AT(dp_welcome, status, 12);
DP_AT(dp_welcome, size, 16);
DP_AT(dp_welcome, epoch, 24);
DP_AT(dp_welcome, mtu, 28);
DP_AT(dp_welcome, name, 32);
DP_AT(dp_welcome, address, 64);
DP_AT(dp_welcome, gateway4, 224);
DP_AT(dp_welcome, gateway6, 244);
DP_AT(dp_welcome, reason, 264);

#endif
