/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.h - a TCP connection between the user's handle and lwIP's PCB.
 *
 *   user's handle --+                +--> PCB (while lwIP would call us)
 *                   +-- docknet_tcp -+
 *   user's buffers -+                +--> chunks: data sent and not acknowledged
 *
 * It lives as long as any of the three on the left and the PCB refer to it.
 */
#ifndef DOCKNET_CONNECTION_H
#define DOCKNET_CONNECTION_H

#include "lwip/tcp.h"
#include "net.h"

/* Memory that holds data to be sent until it is acknowledged. lwIP refers to it and never copies. */
struct chunk {
	struct chunk *next;
	uint8_t *data;
	size_t capacity;
	size_t used;
	size_t acked;
	bool shared; /* a transmit buffer; otherwise the memory behind this struct */
	struct tx_buffer place;
	alignas(16) uint8_t bytes[];
};

struct docknet_tcp {
	struct docknet *net;
	struct tcp_pcb *pcb; /* NULL: lwIP is done with us, or we with it */
	unsigned refs;
	int status;   /* of docknet_tcp_status */
	bool user;    /* the user has the handle */
	bool eof;     /* the peer has sent all */
	bool shut;    /* we have */
	bool aborted; /* in a callback: lwIP must be told */

	struct docknet_tcp_callbacks callbacks;
	void *argument;

	struct chunk *first, *last;
	size_t queued;	/* bytes in chunks that are not acknowledged */
	bool unflushed; /* on net->unflushed */
	struct docknet_tcp *next_unflushed;

	struct pbuf *received, *received_last; /* for docknet_tcp_recv; linked by next, each with tot_len == len */
	size_t unreleased;		       /* bytes in the user's hands */
	struct docknet_tcp *next_accept;
	struct docknet_tcp *next_all, **pprev_all; /* all that there are, for docknet_detach */
};

struct docknet_listener {
	struct docknet *net;
	struct tcp_pcb *pcb;
	struct docknet_tcp_callbacks callbacks;
	void *argument;
	struct docknet_tcp *first, **last; /* for docknet_tcp_accept */
	struct docknet_listener *next;
};

void connection_ref(struct docknet_tcp *c);
void connection_unref(struct docknet_tcp *c);
/* lwIP finishes alone: nothing it could tell us is of interest any more. */
void connection_detach(struct docknet_tcp *c, int status);
/* Detach if both directions are closed and all is acknowledged. */
void connection_settle(struct docknet_tcp *c);

/* tcp_send.c */
void chunks_acked(struct docknet_tcp *c, size_t bytes);
void chunks_drop(struct docknet_tcp *c);
void unflushed_remove(struct docknet_tcp *c);

/* tcp_recv.c */
err_t connection_recv(void *argument, struct tcp_pcb *pcb, struct pbuf *p, err_t err);
void received_drop(struct docknet_tcp *c);

#endif
