// SPDX-License-Identifier: Apache-2.0
#include "forward.h"

#include "deliver.h"
#include "edge.h"
#include "neighbor.h"
#include "neighbor_table.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <sched.h>

/* A turn's share of one pipe: enough to pay for the wake-ups, little enough that others do not wait long. */
#define BURST_FRAMES 32u
#define BURST_BYTES  (512u * 1024)

/* The garbage of one attachment that is counted and passed over. More is no accident, and each costs the master time. */
#define BAD_DESCS_MAX 1024u

static void drop(struct pipe *pipe, enum drop_reason reason)
{
	counter_add(&pipe->stats.tx_dropped[reason], 1);
}

static void check_garbage(struct master *m, struct pipe *pipe, const struct dp_pipe *region)
{
	/* An impossible index of a ring is never right again; the container has to begin anew. */
	if (region->tx.bad > 0 || region->bad_descs > BAD_DESCS_MAX)
		deliver_condemn(m, pipe);
}

struct outgoing {
	struct master *master;
	struct pipe *pipe;
	const struct ip_key *hop;
	struct mac_address mac;
	bool known, dropped;
};

/* Takes one Ethernet frame of what edge_cut makes. */
static void emit(struct rte_mbuf *frame, void *context)
{
	struct outgoing *o = context;
	struct nic *nic = o->master->all->nic;

	edge_ether(frame, &o->mac, &nic->mac, ip_key_is4(o->hop));
	if (o->known) {
		nic_enqueue(nic, o->master->index, frame);
	} else if (!neighbor_park(nic->neighbors, o->hop, frame)) {
		rte_pktmbuf_free(frame);
		o->dropped = true;
	}
}

static void send_message(struct master *m, const uint8_t *bytes, size_t length)
{
	struct nic *nic = m->all->nic;
	struct rte_mbuf *frame = nic_room(nic, m->index) > 0 ? rte_pktmbuf_alloc(nic->pool) : NULL;
	char *to = frame ? rte_pktmbuf_append(frame, (uint16_t)length) : NULL;

	if (!to) {
		rte_pktmbuf_free(frame);
		counter_add(&nic->tx_no_memory, 1);
		return;
	}
	memcpy(to, bytes, length);
	nic_enqueue(nic, m->index, frame);
}

static bool in_prefix(const struct pipe_address *a, const struct ip_key *address)
{
	unsigned int bits = a->prefix_len + (ip_key_is4(&a->ip) ? 96u : 0), bytes = bits / 8, rest = bits % 8;
	uint8_t mask = (uint8_t)(0xff00 >> rest);

	return memcmp(a->ip.b, address->b, bytes) == 0 &&
	       (rest == 0 || ((a->ip.b[bytes] ^ address->b[bytes]) & mask) == 0);
}

/* Whom on the NIC's network a packet is handed to; NULL: there is no way. */
static const struct ip_key *next_hop(const struct pipe *pipe, const struct packet *p)
{
	const struct pipe_address *a = &pipe->config.address[p->version == 4 ? FAMILY_IPV4 : FAMILY_IPV6];

	if (!ip_is_host(&p->destination))
		return NULL; /* groups and broadcasts: pipes are unicast */
	if (in_prefix(a, &p->destination))
		return &p->destination;
	return a->has_gateway ? &a->gateway : NULL;
}

/* Returns 0, or -EAGAIN: the frame has to wait. */
static int to_nic(struct master *m, struct pipe *pipe, const struct dp_frame *frame, const uint8_t *head,
		  uint32_t head_length, const struct packet *p)
{
	struct nic *nic = m->all->nic;
	struct outgoing o = { .master = m, .pipe = pipe, .hop = nic->present ? next_hop(pipe, p) : NULL };
	bool ask;
	int r;

	if (!o.hop) {
		drop(pipe, DROP_UNROUTABLE);
		return 0;
	}
	/* Room for all that this frame can become, and for a request. */
	if (nic_room(nic, m->index) <= EDGE_FRAMES_MAX) {
		m->blocked = m->blocked_abroad = true;
		return -EAGAIN;
	}
	o.known = neighbor_lookup(nic->neighbors, o.hop, dp_now_ns(), &o.mac, &ask) == NEIGHBOR_KNOWN;
	if (ask) {
		uint8_t request[NEIGHBOR_FRAME];

		send_message(m, request, neighbor_ask(o.hop, &p->source, &nic->mac, request));
	}
	r = edge_cut(nic, frame, head, head_length, p, emit, &o);
	if (r == -EMSGSIZE)
		drop(pipe, DROP_TOO_BIG);
	else if (r < 0)
		counter_add(&nic->tx_no_memory, 1);
	else if (o.dropped)
		drop(pipe, DROP_UNRESOLVED);
	return 0;
}

/* Decides about one frame. Returns 0: it is done with; -EAGAIN: it has to wait. */
static int forward(struct master *m, struct view *view, struct pipe *pipe, const struct dp_frame *frame,
		   struct pipe **receiver)
{
	uint8_t head[PACKET_HEAD_MAX];
	uint32_t head_length = dp_frame_copy(frame, head, sizeof(head));
	struct pipe *to;
	struct packet p;

	if (packet_parse(head, head_length, frame->length, &p) < 0 || p.length != frame->length) {
		drop(pipe, DROP_MALFORMED);
		return 0;
	}
	if (!pipe_owns(pipe, &p.source)) {
		drop(pipe, DROP_SPOOFED);
		return 0;
	}
	/* Most of a burst goes where the frame before went. */
	to = *receiver && pipe_owns(*receiver, &p.destination) ? *receiver : view_find(view, &p.destination);
	if (!to)
		return to_nic(m, pipe, frame, head, head_length, &p);
	if (*receiver && to != *receiver)
		deliver_wake(*receiver);
	*receiver = to;
	switch (deliver_local(m, to, frame, head, head_length)) {
	case DELIVERED:
		break;
	case DELIVER_LATER:
		return -EAGAIN;
	case DELIVER_DETACHED:
		drop(pipe, DROP_DETACHED);
		break;
	case DELIVER_STALLED:
		drop(pipe, DROP_STALLED);
		break;
	}
	return 0;
}

/* What the next idle moment depends on: whoever shares our CPU cannot run while we spin. */
static void note_peers(struct master *m, const struct dp_pipe *sender, const struct pipe *receiver)
{
	const struct dp_pipe *to = receiver ? atomic_load_explicit(&receiver->region, memory_order_acquire) : NULL;
	uint32_t own = (uint32_t)sched_getcpu();

	m->peer_cpu = dp_peer_cpu(sender);
	if (to && dp_peer_cpu(to) == own)
		m->peer_cpu = own;
}

uint32_t forward_from_pipe(struct master *m, struct view *view, struct pipe *pipe)
{
	struct dp_pipe *region = atomic_load_explicit(&pipe->region, memory_order_acquire);
	struct pipe *receiver = NULL;
	uint32_t frames = 0, bytes = 0, bad = 0;

	if (!region || atomic_load_explicit(&pipe->condemned, memory_order_relaxed))
		return 0;
	while (frames + bad < BURST_FRAMES && bytes < BURST_BYTES) {
		struct dp_frame frame;
		int r = dp_frame_peek(region, &frame);

		if (r == 0)
			break;
		if (r < 0) {
			bad++;
			continue;
		}
		if (forward(m, view, pipe, &frame, &receiver) == -EAGAIN) {
			counter_add(&pipe->stats.tx_blocked, frames == 0);
			break;
		}
		dp_frame_release(region, &frame);
		frames++;
		bytes += frame.length;
	}
	if (frames + bad > 0) {
		counter_add(&pipe->stats.tx_frames, frames);
		counter_add(&pipe->stats.tx_bytes, bytes);
		dp_publish_cpu(region);
		note_peers(m, region, receiver);
		(void)dp_wake(region, DP_WANT_SPACE);
	}
	if (receiver)
		deliver_wake(receiver);
	check_garbage(m, pipe, region);
	return frames + bad;
}

/* ARP and neighbour discovery. Returns whether the frame was such a message. */
static bool neighbor_received(struct master *m, struct view *view, const uint8_t *bytes, uint32_t length)
{
	struct rte_mbuf *parked[NEIGHBOR_PARKED];
	struct neighbor_message message;
	struct nic *nic = m->all->nic;
	uint8_t answer[NEIGHBOR_FRAME];
	uint32_t n = 0;

	if (neighbor_parse(bytes, length, &message) == NEIGHBOR_NONE)
		return false;
	/* Nobody outside is believed to be where one of our own pipes is. */
	if (message.has_subject && !view_find(view, &message.subject))
		n = neighbor_learn(nic->neighbors, &message.subject, &message.mac, dp_now_ns(), parked);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(rte_pktmbuf_mtod(parked[i], void *), message.mac.b, 6);
		if (nic_room(nic, m->index) > 0)
			nic_enqueue(nic, m->index, parked[i]);
		else
			rte_pktmbuf_free(parked[i]);
	}
	if (message.kind == NEIGHBOR_REQUEST && view_find(view, &message.target))
		send_message(m, answer, neighbor_answer(&message, &nic->mac, answer));
	return true;
}

static bool checksum_right(const struct nic *nic, const struct rte_mbuf *frame, const uint8_t *ip,
			   const struct packet *p)
{
	if (nic->checks) {
		uint64_t l3 = frame->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK;
		uint64_t l4 = frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;

		if (l3 == RTE_MBUF_F_RX_IP_CKSUM_BAD || l4 == RTE_MBUF_F_RX_L4_CKSUM_BAD)
			return false;
		if ((l3 == RTE_MBUF_F_RX_IP_CKSUM_GOOD || p->version == 6) && l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
			return true;
	}
	return packet_checksum_ok(ip, p);
}

/* Finds out whom a received frame is for; NULL: nobody here. */
static struct pipe *addressee(struct nic *nic, struct view *view, const struct rte_mbuf *frame, struct packet *p)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *), *ip = bytes + ETHER_HEADER;
	uint32_t length = frame->data_len - ETHER_HEADER;
	struct pipe *to;

	if (memcmp(bytes, nic->mac.b, 6) != 0 || packet_parse(ip, RTE_MIN(length, PACKET_HEAD_MAX), length, p) < 0) {
		counter_add(&nic->rx_not_ours, 1);
		return NULL;
	}
	to = view_find(view, &p->destination);
	/* Packets with a pipe's source come from that pipe, never from outside: somebody forges them. */
	if (!to || view_find(view, &p->source)) {
		counter_add(&nic->rx_not_ours, 1);
		return NULL;
	}
	if (!checksum_right(nic, frame, ip, p)) {
		counter_add(&nic->rx_bad_checksum, 1);
		return NULL;
	}
	return to;
}

uint32_t forward_from_nic(struct master *m, struct view *view, uint16_t queue)
{
	struct rte_mbuf *burst[BURST_FRAMES];
	struct nic *nic = m->all->nic;
	uint32_t work = deliver_backlogs(m, view);
	uint16_t n = rte_eth_rx_burst(nic->port, queue, burst, BURST_FRAMES);
	struct pipe *last = NULL;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *frame = burst[i];
		const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
		struct pipe *to = NULL;
		struct packet p;

		if (frame->nb_segs == 1 && frame->data_len > ETHER_HEADER &&
		    !neighbor_received(m, view, bytes, frame->data_len))
			to = addressee(nic, view, frame, &p);
		if (!to) {
			rte_pktmbuf_free(frame);
			continue;
		}
		/* Cut off what Ethernet has around the packet: its header, and padding up to 60 bytes. */
		rte_pktmbuf_adj(frame, ETHER_HEADER);
		rte_pktmbuf_trim(frame, (uint16_t)(frame->data_len - p.length));
		if (last && last != to)
			deliver_wake(last);
		last = to;
		deliver_from_nic(m, to, frame);
	}
	if (last)
		deliver_wake(last);
	return work + n;
}
