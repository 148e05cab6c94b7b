/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - what docklib's files share: the attached pipe, its buffers, its engine.
 *
 *   attachment.c  a pipe got, lost, got again          engine.c   polling, sleeping, the thread
 *   receive.c     rx ring -> pbufs                     transmit.c pbufs -> tx ring
 *   tcp*.c udp.c  the API on lwIP's callbacks          tap.c      packets into a file
 */
#ifndef DOCKNET_NET_H
#define DOCKNET_NET_H

#include <pthread.h>
#include <stdatomic.h>

#include "docknet.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "wait.h"

/* ---- transmit buffers ---- */

struct tx_buffer {
	uint8_t class;
	uint32_t number;
};

/* The container's side of its transmit buffers. A buffer is free when nobody refers to it: neither its holder nor a
 * descriptor that the master has not released. */
struct tx_pool {
	uint32_t *free[DP_CLASSES]; /* stacks: what was used last is in the cache */
	uint32_t free_count[DP_CLASSES];
	uint16_t *refs[DP_CLASSES];
	struct tx_buffer *in_ring; /* for each ring entry the buffer that it refers to */
	uint32_t reclaimed;	   /* ring index: entries before it have been dealt with */
	bool blocked;		   /* a frame did not fit: somebody waits for room */
};

int tx_pool_open(struct docknet *net);
void tx_pool_close(struct docknet *net);
void tx_reclaim(struct docknet *net);
/* A free buffer of at least size bytes of the smallest class that has one, with one reference; false: none. */
bool tx_buffer_get(struct docknet *net, size_t size, struct tx_buffer *buffer);
void tx_buffer_put(struct docknet *net, struct tx_buffer buffer);
uint8_t *tx_buffer_data(struct docknet *net, struct tx_buffer buffer);
uint32_t tx_buffer_size(struct docknet *net, struct tx_buffer buffer);
/* Put one packet into the transmit ring. ERR_MEM: no room. */
err_t tx_packet(struct docknet *net, struct pbuf *p);

/* ---- receive buffers ---- */

/* Where a receive buffer is, in the container's own book: the master's word does not count. */
enum rx_state { RX_FREE, RX_LENT /* to the master: in a fill ring, taken, or in the receive ring */, RX_HELD };

struct rx_pool {
	uint8_t *state[DP_CLASSES];
	uint32_t *free[DP_CLASSES];
	uint32_t free_count[DP_CLASSES];
	uint32_t held_count[DP_CLASSES];
	bool refill; /* since the last refill some came from the master, or from the user */
};

int rx_pool_open(struct docknet *net);
void rx_pool_close(struct docknet *net);
/* Take at most max frames out of the ring, give them to the stack; returns how many. */
unsigned rx_burst(struct docknet *net, unsigned max);
/* Lend free buffers to the master; returns whether there was any to lend. */
bool rx_refill(struct docknet *net);
/* After the master's death: what was lent is free. */
void rx_recall(struct docknet *net);

/* ---- buffers in the user's hands ---- */

struct buffer {
	struct docknet_buffer user;
	enum { BUFFER_RX, BUFFER_TX } kind;
};

/* A received piece of a packet: a pbuf whose bytes are shared memory or follow this struct. */
struct rx_buffer {
	struct buffer buffer;
	struct docknet_tcp *owner; /* whose window opens when this is released */
	size_t window;
	bool shared;
	uint8_t class;
	uint32_t number;
	struct pbuf_custom custom;
	alignas(16) uint8_t bytes[];
};

/* A transmit buffer that the user fills. */
struct tx_user_buffer {
	struct buffer buffer;
	struct tx_buffer place;
	size_t capacity;
};

/* The user's view of a received pbuf. It is the pbuf's only reference that changes hands. */
struct rx_buffer *rx_buffer_of(struct pbuf *p);

/* ---- the whole ---- */

struct engine_call {
	int (*call)(void *argument);
	void *argument;
	int result;
	bool done;
	struct engine_call *next;
};

struct engine {
	pthread_t thread;
	bool running;
	atomic_bool stop;
	atomic_bool calls_waiting;
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct engine_call *first, **last;
};

struct docknet {
	struct dp_pipe pipe;
	struct dp_welcome welcome; /* of the first master; later ones must say the same */
	char *path;
	int conn, region, bell;
	int timeout_ms;
	bool attached;	   /* a master serves us */
	int lost;	   /* 0, or why there will be none again */
	uint64_t retry_ns; /* when to try again to attach */
	uint64_t alive_ns; /* when the master was last seen alive */

	struct dp_waiter waiter;
	bool armed; /* the user polls our socket */
	struct netif netif;
	struct tx_pool tx;
	struct rx_pool rx;
	struct docknet_tcp *unflushed; /* connections with data to be sent */
	bool submitted;		       /* something for the master since the last wake-up */

	docknet_stack_rx stack_rx;
	void *stack_rx_argument;
	struct tap *tap;
	struct engine engine;
	struct docknet_stats stats;
	uint32_t retransmits_before; /* lwIP's count is the process's */
};

/* The process's pipe: lwIP's state is global, so there is one. NULL: none. */
extern struct docknet *docknet_current;

/* attachment.c */
bool attachment_alive(struct docknet *net); /* asks the kernel; on false the pipe has been let go */
void attachment_retry(struct docknet *net); /* try to find a new master, if it is time to */
int errno_of(err_t err);

/* engine.c */
void engine_kick(struct docknet *net); /* wake the master if there is something for it */

/* tcp.c, tcp_send.c */
void tcp_flush_all(struct docknet *net);
void tcp_send_blocked(void); /* there is room again */
void tcp_abort_all(void);
void tcp_free_all(void); /* with the user's handles */
void tcp_window_open(struct docknet_tcp *connection, size_t bytes);
void tcp_buffer_released(struct docknet_tcp *connection, size_t bytes);

/* udp.c */
void udp_close_all(void);

/* address.c */
void address_to_lwip(const struct docknet_address *from, ip_addr_t *to);
bool address_is_own(const struct docknet *net, const struct docknet_address *address);
void address_from_lwip(const ip_addr_t *from, uint16_t port, struct docknet_address *to);

/* tap.c */
int tap_open(const char *path, const char *interface, struct tap **tap);
void tap_close(struct tap *tap);
/* Write a packet. outbound: from this container. */
void tap_packet(struct tap *tap, const struct pbuf *p, bool outbound);
uint64_t tap_lost(const struct tap *tap);

#endif
