/* SPDX-License-Identifier: Apache-2.0 */
/* udp.c - datagrams. */
#include <errno.h>

#include "heap.h"
#include "lwip/udp.h"
#include "net.h"

/* Bytes that a socket without callback keeps for docknet_udp_recv; as many as Linux keeps by default. */
#define QUEUE_BYTES (208u * 1024)

struct datagram {
	struct datagram *next;
	struct pbuf *p;
	struct docknet_address from;
};

struct docknet_udp {
	struct docknet *net;
	struct udp_pcb *pcb;
	docknet_udp_recved recved;
	void *argument;
	struct datagram *first, **last;
	size_t queued;
	struct docknet_udp *next;
};

static struct docknet_udp *sockets;

/* whole returns a chain's bytes as one received buffer: a datagram is not handed out in pieces. */
static struct docknet_buffer *whole(struct pbuf *p)
{
	struct rx_buffer *b;

	while (p->len == 0 && p->next) { /* the headers' pbuf, emptied */
		struct pbuf *rest = p->next;

		p->next = NULL;
		pbuf_free(p);
		p = rest;
	}
	b = rx_buffer_of(p);
	if (p->next) {
		struct rx_buffer *copy = docknet_heap_get(sizeof *copy + p->tot_len);

		if (!copy) {
			pbuf_free(p);
			return NULL;
		}
		memset(copy, 0, sizeof *copy);
		pbuf_copy_partial(p, copy->bytes, p->tot_len, 0);
		copy->custom.custom_free_function = b->custom.custom_free_function;
		pbuf_alloced_custom(PBUF_RAW, p->tot_len, PBUF_REF, &copy->custom, copy->bytes, p->tot_len);
		pbuf_free(p);
		b = copy;
	}
	b->buffer.kind = BUFFER_RX;
	b->buffer.user.data = b->custom.pbuf.payload;
	b->buffer.user.length = b->custom.pbuf.len;
	return &b->buffer.user;
}

static void keep(struct docknet_udp *s, struct pbuf *p, const struct docknet_address *from)
{
	struct datagram *d = NULL;

	if (s->queued + p->tot_len <= QUEUE_BYTES)
		d = docknet_heap_get(sizeof *d);
	if (!d) {
		s->net->stats.udp_overflows++;
		pbuf_free(p);
		return;
	}
	*d = (struct datagram){ .p = p, .from = *from };
	s->queued += p->tot_len;
	*s->last = d;
	s->last = &d->next;
}

static void on_recv(void *argument, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *address, u16_t port)
{
	struct docknet_udp *s = argument;
	struct docknet_address from;
	struct docknet_buffer *buffer;

	(void)pcb;
	address_from_lwip(address, port, &from);
	if (!s->recved) {
		keep(s, p, &from);
		return;
	}
	buffer = whole(p);
	if (buffer)
		s->recved(s->argument, s, &from, buffer);
	else
		s->net->stats.udp_overflows++;
}

int docknet_udp_bind(struct docknet *net, const struct docknet_address *local, docknet_udp_recved recved,
		     void *argument, struct docknet_udp **socket)
{
	struct docknet_udp *s;
	struct udp_pcb *pcb;
	ip_addr_t address;
	err_t err;

	if (net->lost)
		return net->lost;
	address_to_lwip(local, &address);
	if (!ip_addr_isany(&address) && !address_is_own(net, local))
		return -EADDRNOTAVAIL;
	pcb = udp_new_ip_type(IP_GET_TYPE(&address));
	s = docknet_heap_get_zeroed(1, sizeof *s);
	err = pcb && s ? udp_bind(pcb, &address, local->port) : ERR_MEM;
	if (err != ERR_OK) {
		if (pcb)
			udp_remove(pcb);
		docknet_heap_put(s);
		return err == ERR_MEM ? -ENOMEM : errno_of(err);
	}
	*s = (struct docknet_udp){ .net = net, .pcb = pcb, .recved = recved, .argument = argument, .next = sockets };
	s->last = &s->first;
	udp_recv(pcb, on_recv, s);
	sockets = s;
	*socket = s;
	return 0;
}

int docknet_udp_send(struct docknet_udp *s, const struct docknet_address *to, const void *data, size_t length)
{
	struct pbuf *p;
	ip_addr_t address;
	err_t err;

	if (length > DOCKNET_UDP_MAX)
		return -EMSGSIZE;
	if ((to->family != 4 && to->family != 6) || to->port == 0)
		return -EINVAL;
	if (s->net->lost)
		return s->net->lost;
	address_to_lwip(to, &address);
	/* A reference: the driver copies it into the transmit buffer before udp_sendto returns. */
	p = pbuf_alloc(PBUF_TRANSPORT, (u16_t)length, PBUF_REF);
	if (!p)
		return -ENOMEM;
	p->payload = (void *)data;
	err = udp_sendto(s->pcb, p, &address, to->port);
	pbuf_free(p);
	return err == ERR_MEM || err == ERR_BUF ? -EAGAIN : errno_of(err);
}

ssize_t docknet_udp_recv(struct docknet_udp *s, struct docknet_address *from, void *data, size_t length)
{
	struct datagram *d = s->first;
	ssize_t size;

	if (!d)
		return s->net->lost ? s->net->lost : -EAGAIN;
	s->first = d->next;
	if (!s->first)
		s->last = &s->first;
	size = d->p->tot_len;
	s->queued -= (size_t)size;
	pbuf_copy_partial(d->p, data, (u16_t)(length > DP_FRAME_MAX ? DP_FRAME_MAX : length), 0);
	if (from)
		*from = d->from;
	pbuf_free(d->p);
	docknet_heap_put(d);
	return size;
}

int docknet_udp_local(const struct docknet_udp *s, struct docknet_address *address)
{
	address_from_lwip(&s->pcb->local_ip, s->pcb->local_port, address);
	return 0;
}

void docknet_udp_close(struct docknet_udp *s)
{
	char nothing;

	for (struct docknet_udp **at = &sockets; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			break;
		}
	}
	while (s->first)
		(void)docknet_udp_recv(s, NULL, &nothing, 0);
	udp_remove(s->pcb);
	docknet_heap_put(s);
}

void udp_close_all(void)
{
	while (sockets)
		docknet_udp_close(sockets);
}
