/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docknet.h - TCP and UDP over a DockPipe, for a program in a container.
 *
 *   struct docknet *net;
 *   int err = docknet_attach(&(struct docknet_options){ 0 }, &net);      the pipe that $DOCKNET_PIPE names
 *   docknet_tcp_listen(net, &address, &callbacks, NULL, &listener);
 *   while (running)
 *           docknet_poll(net, -1);                                       callbacks run in here
 *   docknet_detach(net);
 *
 * Or docknet_engine_start(net) instead of the loop: a thread of the library then polls.
 *
 * Rules
 * - One pipe per process: the stack's state is global.
 * - One thread: everything here is called by the thread that polls, which with an engine is the engine's (in callbacks);
 *   other threads use docknet_engine_call. Exceptions say so.
 * - Functions return 0 or a count, or -errno; outputs are written only on success. Nothing prints, nothing exits.
 * - Callbacks must not block. They may send, close, listen and connect. In a callback of a connection it may be
 *   closed; then it is gone when the callback returns.
 * - Without tcp_recved or udp_recved callback data is kept for docknet_tcp_recv and docknet_udp_recv; without accepted
 *   callback connections are kept for docknet_tcp_accept.
 */
#ifndef DOCKNET_H
#define DOCKNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct docknet;		 /* an attached pipe with its stack */
struct docknet_listener; /* a TCP port that is listened on */
struct docknet_tcp;	 /* a TCP connection */
struct docknet_udp;	 /* a UDP port */

/* ---- addresses ---- */

struct docknet_address {
	uint8_t family;	   /* 4 or 6; 0 with listen and bind: any address of either */
	uint8_t bytes[16]; /* network order; the first 4 for family 4 */
	uint16_t port;	   /* host order */
};

/* "10.50.0.2", "fd00::2" or "" (any); -EINVAL. */
int docknet_address_parse(const char *text, uint16_t port, struct docknet_address *address);

#define DOCKNET_ADDRESS_TEXT 64 /* bytes enough for "[address]:port" */
void docknet_address_format(const struct docknet_address *address, char text[DOCKNET_ADDRESS_TEXT]);

/* ---- attaching ---- */

enum docknet_wait {
	DOCKNET_WAIT_ADAPTIVE, /* spin for a moment when the peer runs on another CPU, then sleep: the default */
	DOCKNET_WAIT_BUSY,     /* never sleep: lowest latency, a whole CPU */
	DOCKNET_WAIT_SLEEP,    /* sleep at once: least CPU */
};

/* All zero is a valid choice. */
struct docknet_options {
	const char *pipe;	/* the pipe's directory or socket. NULL: $DOCKNET_PIPE, or else /run/docknet/pipe */
	enum docknet_wait wait; /* with pipe NULL and wait 0, $DOCKNET_WAIT may say "busy" or "sleep" */
	const char *tap;	/* file to write all packets to, as pcapng. NULL: $DOCKNET_TAP, or none */
	int timeout_ms;		/* for the master's answer; 0: 2000 */
};

/* -EBUSY: this process has a pipe already, or the pipe has another user. -ENOENT, -ECONNREFUSED: no master listens there.
 * -EACCES: the pipe is another user's. -EPROTONOSUPPORT: the master speaks another version. */
int docknet_attach(const struct docknet_options *options, struct docknet **net);

/* Abort all connections, give the pipe back. Handles of this net are invalid afterwards, and so are buffers: release them
 * before. NULL is allowed. */
void docknet_detach(struct docknet *net);

/* The reason that the master gave for the last refused attachment, or "". */
const char *docknet_refusal(void);

/* This pipe's name and its i-th address (-ENOENT past the last). */
const char *docknet_name(const struct docknet *net);
int docknet_address(const struct docknet *net, unsigned i, struct docknet_address *address);

/* Do what there is to do: frames, timers, callbacks. With nothing to do wait: at most timeout_ms, -1 for as long as it
 * takes. Returns how many frames came in (0: the time is over, or a timer ran), or -errno: -ECONNRESET if the pipe is
 * lost for good. While the master is away (see docknet_attached) it waits and attaches again by itself. */
int docknet_poll(struct docknet *net, int timeout_ms);

/* Whether a master serves the pipe now. */
bool docknet_attached(const struct docknet *net);

/* For programs with an event loop of their own: a file that becomes readable when docknet_poll(net, 0) has work, if
 * docknet_arm returned 0 just before; 1: there is work already. docknet_deadline_ms tells when to poll at the latest. The file
 * changes when a master is replaced: ask again after each poll. */
int docknet_fd(const struct docknet *net);
int docknet_arm(struct docknet *net);
int docknet_deadline_ms(struct docknet *net);

/* ---- the engine: a thread that polls ---- */

int docknet_engine_start(struct docknet *net);
int docknet_engine_stop(struct docknet *net); /* from any thread but the engine; afterwards the caller may poll */
/* From any thread: run call(argument) in the engine's thread and wait for it. Its return value is returned. */
int docknet_engine_call(struct docknet *net, int (*call)(void *argument), void *argument);

/* See each received packet before the stack does, in the thread that polls: packet engine and stack are two layers.
 * stack_rx returns false if the stack shall not have the packet. head: the first head_length of length bytes. */
typedef bool (*docknet_stack_rx)(void *argument, const void *head, size_t head_length, size_t length);
void docknet_set_stack_rx(struct docknet *net, docknet_stack_rx stack_rx, void *argument);

/* ---- buffers: sending and receiving without a copy ---- */

struct docknet_buffer {
	uint8_t *data;
	size_t length;
};

/* A buffer for docknet_tcp_send_buffer, of capacity bytes in length, or fewer if there is none as large.
 * -EAGAIN: none at all now; *_sent callbacks tell when. */
int docknet_buffer_get(struct docknet *net, size_t capacity, struct docknet_buffer **buffer);

/* Give back a received buffer (which opens the TCP window again), or one that was not sent. NULL is allowed. */
void docknet_buffer_release(struct docknet_buffer *buffer);

/* ---- TCP ---- */

struct docknet_tcp_callbacks {
	/* A connection was accepted: set its own callbacks with docknet_tcp_set, or leave the listener's. */
	void (*accepted)(void *argument, struct docknet_tcp *connection);
	/* The outcome of docknet_tcp_connect. */
	void (*connected)(void *argument, struct docknet_tcp *connection);
	/* Data: the buffer is the callee's until it releases it. NULL: the peer will send no more. */
	void (*tcp_recved)(void *argument, struct docknet_tcp *connection, struct docknet_buffer *buffer);
	/* The peer has acknowledged this many bytes: there is room to send again. */
	void (*sent)(void *argument, struct docknet_tcp *connection, size_t bytes);
	/* The connection ended without docknet_tcp_close: -ECONNRESET, -ETIMEDOUT, -ECONNREFUSED, ... It is gone when
	 * this returns. */
	void (*failed)(void *argument, struct docknet_tcp *connection, int error);
};

/* -EADDRINUSE: somebody listens there. -EADDRNOTAVAIL: not an address of this pipe. */
int docknet_tcp_listen(struct docknet *net, const struct docknet_address *local,
		       const struct docknet_tcp_callbacks *callbacks, void *argument,
		       struct docknet_listener **listener);
void docknet_listener_close(struct docknet_listener *listener);				    /* connections live on */
int docknet_tcp_accept(struct docknet_listener *listener, struct docknet_tcp **connection); /* -EAGAIN: none waits */

int docknet_tcp_connect(struct docknet *net, const struct docknet_address *remote,
			const struct docknet_tcp_callbacks *callbacks, void *argument, struct docknet_tcp **connection);

/* Other callbacks for this connection; NULL: none. The struct is copied. A connection from docknet_tcp_accept has
 * none; data that came before stays for docknet_tcp_recv. */
void docknet_tcp_set(struct docknet_tcp *connection, const struct docknet_tcp_callbacks *callbacks, void *argument);

/* 0: established; -EINPROGRESS: not yet; otherwise why it ended. Connections without failed callback stay until they are closed. */
int docknet_tcp_status(const struct docknet_tcp *connection);

/* Copy data to be sent. Returns how much was taken, -EAGAIN if nothing. It leaves with the next docknet_poll, or
 * docknet_tcp_flush, together with what else was sent till then. */
ssize_t docknet_tcp_send(struct docknet_tcp *connection, const void *data, size_t length);
/* Send a buffer's first length bytes (buffer->length). On success, 0, it is the library's; -EAGAIN: no room now. */
int docknet_tcp_send_buffer(struct docknet_tcp *connection, struct docknet_buffer *buffer);
void docknet_tcp_flush(struct docknet_tcp *connection);

/* Bytes that docknet_tcp_send would take now. */
size_t docknet_tcp_room(const struct docknet_tcp *connection);

/* Without callback: copy received data out; or take the next buffer. 0 bytes, or a NULL buffer: the peer will send no more.
 * -EAGAIN: nothing there; otherwise why the connection ended. */
ssize_t docknet_tcp_recv(struct docknet_tcp *connection, void *data, size_t length);
int docknet_tcp_recv_buffer(struct docknet_tcp *connection, struct docknet_buffer **buffer);

int docknet_tcp_shutdown(struct docknet_tcp *connection); /* send no more; receiving goes on */
void docknet_tcp_close(struct docknet_tcp *connection);	  /* what was sent is still delivered; the handle is gone */
void docknet_tcp_abort(struct docknet_tcp *connection);	  /* the peer sees a reset; the handle is gone */

int docknet_tcp_keepalive(struct docknet_tcp *connection, unsigned idle_s, unsigned interval_s, unsigned count);
int docknet_tcp_local(const struct docknet_tcp *connection, struct docknet_address *address);
int docknet_tcp_remote(const struct docknet_tcp *connection, struct docknet_address *address);

/* ---- UDP ---- */

typedef void (*docknet_udp_recved)(void *argument, struct docknet_udp *socket, const struct docknet_address *from,
				   struct docknet_buffer *buffer);

#define DOCKNET_UDP_MAX 65487u /* bytes of a datagram, for both IP versions */

int docknet_udp_bind(struct docknet *net, const struct docknet_address *local, docknet_udp_recved recved,
		     void *argument, struct docknet_udp **socket);
/* -EMSGSIZE; -EAGAIN: no room in the transmit ring now. Datagrams are not lost inside the host for want of space. */
int docknet_udp_send(struct docknet_udp *socket, const struct docknet_address *to, const void *data, size_t length);
/* Without callback. Returns the datagram's length, of which at most length bytes were copied; -EAGAIN. */
ssize_t docknet_udp_recv(struct docknet_udp *socket, struct docknet_address *from, void *data, size_t length);
int docknet_udp_local(const struct docknet_udp *socket, struct docknet_address *address);
void docknet_udp_close(struct docknet_udp *socket);

/* ---- statistics ---- */

struct docknet_stats {
	uint64_t rx_frames, rx_bytes;
	uint64_t tx_frames, tx_bytes;
	uint64_t rx_bad;	  /* descriptors of the master's that were refused */
	uint64_t tx_blocked;	  /* frames that had to wait for room: back-pressure */
	uint64_t rx_copied;	  /* frames copied to private memory: receive buffers were getting scarce */
	uint64_t tcp_retransmits; /* segments sent again after duplicate ACKs */
	uint64_t udp_overflows;	  /* datagrams that nobody took in time */
	uint64_t polls, spins, yields, sleeps, wakes;
	uint64_t reattached; /* masters that came after the first */
	uint64_t tap_lost;   /* packets that the tap could not write */
};

void docknet_stats(const struct docknet *net, struct docknet_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
