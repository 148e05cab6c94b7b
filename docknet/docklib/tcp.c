/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - connections begun, accepted and ended. */
#include <errno.h>

#include "connection.h"
#include "heap.h"
#include "lwip/priv/tcp_priv.h"

static struct docknet_listener *listeners;
static struct docknet_tcp *connections;

/* ---- life ---- */

void connection_ref(struct docknet_tcp *c)
{
	c->refs++;
}

void connection_unref(struct docknet_tcp *c)
{
	if (--c->refs > 0)
		return;
	unflushed_remove(c);
	*c->pprev_all = c->next_all;
	if (c->next_all)
		c->next_all->pprev_all = c->pprev_all;
	docknet_heap_put(c);
}

/* lost: the PCB is gone, or no longer ours. */
static void lost(struct docknet_tcp *c, int status)
{
	c->pcb = NULL;
	c->status = status;
	unflushed_remove(c);
	chunks_drop(c);
	connection_unref(c);
}

void connection_detach(struct docknet_tcp *c, int status)
{
	tcp_arg(c->pcb, NULL);
	tcp_recv(c->pcb, NULL);
	tcp_sent(c->pcb, NULL);
	tcp_err(c->pcb, NULL);
	lost(c, status);
}

void connection_settle(struct docknet_tcp *c)
{
	/* What follows is TIME_WAIT or the last ACK, of which lwIP would tell nothing, or too late. */
	if (c->pcb && c->queued == 0 && (!c->user || (c->eof && c->shut)))
		connection_detach(c, -ENOTCONN);
}

/* ---- what lwIP calls ---- */

static err_t on_sent(void *argument, struct tcp_pcb *pcb, u16_t bytes)
{
	struct docknet_tcp *c = argument;
	err_t result;

	(void)pcb;
	connection_ref(c);
	chunks_acked(c, bytes);
	connection_settle(c);
	if (c->user && c->pcb && c->callbacks.sent)
		c->callbacks.sent(c->argument, c, bytes);
	result = c->aborted ? ERR_ABRT : ERR_OK;
	c->aborted = false;
	connection_unref(c);
	return result;
}

/* on_err: the PCB is freed already, or will be as soon as this returns. */
static void on_err(void *argument, err_t err)
{
	struct docknet_tcp *c = argument;
	int status = err == ERR_RST    ? (c->status == -EINPROGRESS ? -ECONNREFUSED : -ECONNRESET)
		     : err == ERR_CLSD ? -ENOTCONN
				       : -ETIMEDOUT;

	connection_ref(c);
	lost(c, status);
	if (c->user && c->callbacks.failed) {
		c->callbacks.failed(c->argument, c, status);
		if (c->user) {
			c->user = false;
			received_drop(c);
			connection_unref(c);
		}
	}
	connection_unref(c);
}

static err_t on_connected(void *argument, struct tcp_pcb *pcb, err_t err)
{
	struct docknet_tcp *c = argument;
	err_t result;

	(void)pcb;
	(void)err; /* always ERR_OK: failures go to on_err */
	connection_ref(c);
	c->status = 0;
	if (c->user && c->callbacks.connected)
		c->callbacks.connected(c->argument, c);
	result = c->aborted ? ERR_ABRT : ERR_OK;
	c->aborted = false;
	connection_unref(c);
	return result;
}

static struct docknet_tcp *new_connection(struct docknet *net, struct tcp_pcb *pcb,
					  const struct docknet_tcp_callbacks *callbacks, void *argument, int status)
{
	struct docknet_tcp *c = docknet_heap_get_zeroed(1, sizeof *c);

	if (!c)
		return NULL;
	c->net = net;
	c->pcb = pcb;
	c->refs = 2; /* user and PCB */
	c->user = true;
	c->status = status;
	c->argument = argument;
	if (callbacks)
		c->callbacks = *callbacks;
	c->next_all = connections;
	c->pprev_all = &connections;
	if (connections)
		connections->pprev_all = &c->next_all;
	connections = c;
	tcp_arg(pcb, c);
	tcp_recv(pcb, connection_recv);
	tcp_sent(pcb, on_sent);
	tcp_err(pcb, on_err);
	/* Data is batched by docknet_poll: Nagle's algorithm would batch it again, by the peer's ACKs. */
	tcp_nagle_disable(pcb);
	return c;
}

static err_t on_accept(void *argument, struct tcp_pcb *pcb, err_t err)
{
	struct docknet_listener *l = argument;
	struct docknet_tcp *c;
	err_t result;

	if (err != ERR_OK || !pcb || !l)
		return ERR_VAL;
	c = new_connection(l->net, pcb, &l->callbacks, l->argument, 0);
	if (!c)
		return ERR_MEM; /* lwIP resets the connection */
	if (!l->callbacks.accepted) {
		c->callbacks = (struct docknet_tcp_callbacks){ 0 }; /* none before there is a handle */
		tcp_backlog_delayed(pcb);
		*l->last = c;
		l->last = &c->next_accept;
		return ERR_OK;
	}
	connection_ref(c);
	l->callbacks.accepted(l->argument, c);
	result = c->aborted ? ERR_ABRT : ERR_OK;
	c->aborted = false;
	connection_unref(c);
	return result;
}

/* ---- listening ---- */

int docknet_tcp_listen(struct docknet *net, const struct docknet_address *local,
		       const struct docknet_tcp_callbacks *callbacks, void *argument,
		       struct docknet_listener **listener)
{
	struct docknet_listener *l;
	struct tcp_pcb *pcb, *listening;
	ip_addr_t address;
	err_t err;

	if (net->lost)
		return net->lost;
	address_to_lwip(local, &address);
	if (!ip_addr_isany(&address) && !address_is_own(net, local))
		return -EADDRNOTAVAIL;
	l = docknet_heap_get_zeroed(1, sizeof *l);
	pcb = tcp_new_ip_type(IP_GET_TYPE(&address));
	if (!l || !pcb)
		goto no_memory;
	ip_set_option(pcb, SOF_REUSEADDR);
	/* REUSEADDR is meant for TIME_WAIT; two listeners on a port would be a mistake. */
	for (struct docknet_listener *other = listeners; other; other = other->next) {
		if (local->port != 0 && other->pcb->local_port == local->port &&
		    (ip_addr_isany(&address) || ip_addr_isany(&other->pcb->local_ip) ||
		     ip_addr_cmp(&address, &other->pcb->local_ip))) {
			tcp_abort(pcb);
			docknet_heap_put(l);
			return -EADDRINUSE;
		}
	}
	err = tcp_bind(pcb, &address, local->port);
	if (err != ERR_OK) {
		tcp_abort(pcb);
		docknet_heap_put(l);
		return err == ERR_USE ? -EADDRINUSE : errno_of(err);
	}
	listening = tcp_listen_with_backlog_and_err(pcb, TCP_DEFAULT_LISTEN_BACKLOG, &err);
	if (!listening)
		goto no_memory;
	*l = (struct docknet_listener){ .net = net, .pcb = listening, .argument = argument, .next = listeners };
	l->last = &l->first;
	if (callbacks)
		l->callbacks = *callbacks;
	tcp_arg(listening, l);
	tcp_accept(listening, on_accept);
	listeners = l;
	*listener = l;
	return 0;

no_memory:
	if (pcb)
		tcp_abort(pcb);
	docknet_heap_put(l);
	return -ENOMEM;
}

int docknet_tcp_accept(struct docknet_listener *l, struct docknet_tcp **connection)
{
	struct docknet_tcp *c = l->first;

	if (!c)
		return -EAGAIN;
	l->first = c->next_accept;
	if (!l->first)
		l->last = &l->first;
	if (c->pcb)
		tcp_backlog_accepted(c->pcb);
	*connection = c;
	return 0;
}

void docknet_listener_close(struct docknet_listener *l)
{
	struct docknet_tcp *c;

	for (struct docknet_listener **at = &listeners; *at; at = &(*at)->next) {
		if (*at == l) {
			*at = l->next;
			break;
		}
	}
	while (docknet_tcp_accept(l, &c) == 0)
		docknet_tcp_abort(c);
	tcp_close(l->pcb);
	docknet_heap_put(l);
}

/* ---- connecting ---- */

int docknet_tcp_connect(struct docknet *net, const struct docknet_address *remote,
			const struct docknet_tcp_callbacks *callbacks, void *argument, struct docknet_tcp **connection)
{
	struct docknet_tcp *c;
	struct tcp_pcb *pcb;
	ip_addr_t address;
	err_t err;

	if (net->lost)
		return net->lost;
	if (remote->port == 0 || (remote->family != 4 && remote->family != 6))
		return -EINVAL;
	address_to_lwip(remote, &address);
	pcb = tcp_new_ip_type(IP_GET_TYPE(&address));
	if (!pcb)
		return -ENOMEM;
	c = new_connection(net, pcb, callbacks, argument, -EINPROGRESS);
	if (!c) {
		tcp_abort(pcb);
		return -ENOMEM;
	}
	err = tcp_connect(pcb, &address, remote->port, on_connected);
	if (err != ERR_OK) {
		c->user = false;
		connection_detach(c, errno_of(err));
		tcp_abort(pcb);
		connection_unref(c);
		return errno_of(err);
	}
	*connection = c;
	return 0;
}

void docknet_tcp_set(struct docknet_tcp *c, const struct docknet_tcp_callbacks *callbacks, void *argument)
{
	c->callbacks = callbacks ? *callbacks : (struct docknet_tcp_callbacks){ 0 };
	c->argument = argument;
}

int docknet_tcp_status(const struct docknet_tcp *c)
{
	return c->status;
}

/* ---- ending ---- */

int docknet_tcp_shutdown(struct docknet_tcp *c)
{
	err_t err;

	if (!c->pcb)
		return c->status;
	if (c->shut)
		return 0;
	err = tcp_shutdown(c->pcb, 0, 1);
	if (err != ERR_OK)
		return errno_of(err);
	c->shut = true;
	docknet_tcp_flush(c);
	connection_settle(c);
	return 0;
}

/* The user's handle is given up, and with it what nobody will read. */
static void drop_user(struct docknet_tcp *c)
{
	c->user = false;
	received_drop(c);
	connection_unref(c);
}

void docknet_tcp_close(struct docknet_tcp *c)
{
	struct tcp_pcb *pcb = c->pcb;

	if (!pcb) {
		drop_user(c);
		return;
	}
	/* Data that was never looked at is lost, and the peer must know, as with kernel sockets; lwIP would tell it, too, but
	 * forget to tell us. What the user holds in buffers is not lost. */
	if (c->received) {
		docknet_tcp_abort(c);
		return;
	}
	if (c->unreleased > 0) {
		tcp_window_open(c, c->unreleased);
		if (c->pcb == NULL) {
			drop_user(c);
			return;
		}
	}
	connection_ref(c);
	drop_user(c);
	if (pcb->state == SYN_SENT || pcb->state == CLOSED) {
		connection_detach(c, -ENOTCONN);
		tcp_close(pcb);
	} else if ((pcb->state == ESTABLISHED || pcb->state == CLOSE_WAIT) && pcb->rcv_wnd != TCP_WND_MAX(pcb)) {
		tcp_abort(pcb);
		c->aborted = true;
	} else {
		docknet_tcp_flush(c);
		if (tcp_close(pcb) != ERR_OK) { /* no memory for a FIN */
			tcp_abort(pcb);
			c->aborted = true;
		} else {
			connection_settle(c);
		}
	}
	connection_unref(c);
}

void docknet_tcp_abort(struct docknet_tcp *c)
{
	struct tcp_pcb *pcb = c->pcb;

	connection_ref(c);
	drop_user(c);
	if (pcb) {
		tcp_abort(pcb); /* calls on_err */
		c->aborted = true;
	}
	connection_unref(c);
}

void tcp_abort_all(void)
{
	while (listeners)
		docknet_listener_close(listeners);
	while (tcp_active_pcbs)
		tcp_abort(tcp_active_pcbs);
	while (tcp_tw_pcbs)
		tcp_abort(tcp_tw_pcbs);
	while (tcp_bound_pcbs)
		tcp_abort(tcp_bound_pcbs);
}

void tcp_free_all(void)
{
	while (connections) {
		connections->refs = 1;
		received_drop(connections);
		connection_unref(connections);
	}
}

/* ---- about a connection ---- */

int docknet_tcp_keepalive(struct docknet_tcp *c, unsigned idle_s, unsigned interval_s, unsigned count)
{
	if (!c->pcb)
		return c->status;
	if (idle_s == 0 || interval_s == 0 || count == 0 || idle_s > 86400 || interval_s > 86400)
		return -EINVAL;
	c->pcb->keep_idle = idle_s * 1000u;
	c->pcb->keep_intvl = interval_s * 1000u;
	c->pcb->keep_cnt = count;
	ip_set_option(c->pcb, SOF_KEEPALIVE);
	return 0;
}

int docknet_tcp_local(const struct docknet_tcp *c, struct docknet_address *address)
{
	if (!c->pcb)
		return -ENOTCONN;
	address_from_lwip(&c->pcb->local_ip, c->pcb->local_port, address);
	return 0;
}

int docknet_tcp_remote(const struct docknet_tcp *c, struct docknet_address *address)
{
	if (!c->pcb)
		return -ENOTCONN;
	address_from_lwip(&c->pcb->remote_ip, c->pcb->remote_port, address);
	return 0;
}
