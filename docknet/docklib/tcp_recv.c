/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_recv.c - data on its way in: to the tcp_recved callback, or kept for docknet_tcp_recv. */
#include <errno.h>

#include "connection.h"

void tcp_window_open(struct docknet_tcp *c, size_t bytes)
{
	if (bytes > c->unreleased)
		bytes = c->unreleased;
	c->unreleased -= bytes;
	while (c->pcb && bytes > 0) {
		u16_t n = bytes > 0xffff ? 0xffff : (u16_t)bytes;

		tcp_recved(c->pcb, n);
		bytes -= n;
	}
}

void tcp_buffer_released(struct docknet_tcp *c, size_t bytes)
{
	tcp_window_open(c, bytes);
	connection_unref(c);
}

/* hand_out makes the user's buffer of a pbuf that stands alone. */
static struct docknet_buffer *hand_out(struct docknet_tcp *c, struct pbuf *p)
{
	struct rx_buffer *b = rx_buffer_of(p);

	b->buffer.kind = BUFFER_RX;
	b->buffer.user.data = p->payload;
	b->buffer.user.length = p->len;
	b->owner = c;
	b->window = p->len;
	connection_ref(c);
	return &b->buffer.user;
}

/* keep appends a pbuf to what waits for docknet_tcp_recv. */
static void keep(struct docknet_tcp *c, struct pbuf *p)
{
	if (c->received_last)
		c->received_last->next = p;
	else
		c->received = p;
	c->received_last = p;
}

/* alone separates the first pbuf of a chain. */
static struct pbuf *alone(struct pbuf *p)
{
	struct pbuf *rest = p->next;

	p->next = NULL;
	p->tot_len = p->len;
	return rest;
}

static void pass(struct docknet_tcp *c, struct pbuf *p)
{
	while (p) {
		struct pbuf *rest = alone(p);

		if (p->len == 0 || !c->user) {
			pbuf_free(p);
		} else {
			c->unreleased += p->len;
			if (c->callbacks.tcp_recved)
				c->callbacks.tcp_recved(c->argument, c, hand_out(c, p));
			else
				keep(c, p);
		}
		p = rest;
	}
}

err_t connection_recv(void *argument, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct docknet_tcp *c = argument;
	err_t result;

	(void)pcb;
	(void)err;
	connection_ref(c);
	if (p) {
		pass(c, p);
	} else {
		c->eof = true;
		if (c->user && c->callbacks.tcp_recved)
			c->callbacks.tcp_recved(c->argument, c, NULL);
		connection_settle(c);
	}
	result = c->aborted ? ERR_ABRT : ERR_OK;
	c->aborted = false;
	connection_unref(c);
	return result;
}

void received_drop(struct docknet_tcp *c)
{
	while (c->received) {
		struct pbuf *p = c->received;

		c->received = p->next;
		p->next = NULL;
		pbuf_free(p);
	}
	c->received_last = NULL;
}

/* nothing_there tells why there is no data: 0 at the end. */
static int nothing_there(const struct docknet_tcp *c)
{
	if (c->eof)
		return 0;
	if (c->pcb)
		return -EAGAIN;
	return c->status ? c->status : -ENOTCONN;
}

ssize_t docknet_tcp_recv(struct docknet_tcp *c, void *data, size_t length)
{
	size_t done = 0;

	if (!c->received)
		return nothing_there(c);
	while (c->received && done < length) {
		struct pbuf *p = c->received;
		size_t n = p->len < length - done ? p->len : length - done;

		memcpy((uint8_t *)data + done, p->payload, n);
		done += n;
		if (n < p->len) {
			p->payload = (uint8_t *)p->payload + n;
			p->len = (u16_t)(p->len - n);
			p->tot_len = p->len;
			break;
		}
		c->received = p->next;
		if (!c->received)
			c->received_last = NULL;
		p->next = NULL;
		pbuf_free(p);
	}
	tcp_window_open(c, done);
	return (ssize_t)done;
}

int docknet_tcp_recv_buffer(struct docknet_tcp *c, struct docknet_buffer **buffer)
{
	struct pbuf *p = c->received;

	if (!p) {
		int err = nothing_there(c);

		if (err == 0)
			*buffer = NULL;
		return err;
	}
	c->received = p->next;
	if (!c->received)
		c->received_last = NULL;
	p->next = NULL;
	*buffer = hand_out(c, p);
	return 0;
}
