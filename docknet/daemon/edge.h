/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The edge of the host: frames of up to 64 KiB without checksums on this side, Ethernet frames of the NIC's MTU on the
 * other. What the NIC does not do itself is done while copying, so nothing is copied twice. (rte_gso would need the whole
 * frame in buffers first, and makes packets in two pieces, which the drivers of kernel interfaces do not send.)
 */
#ifndef DOCKDAEMON_EDGE_H
#define DOCKDAEMON_EDGE_H

#include "../dockpipe/frame.h"
#include "nic.h"
#include "packet.h"

/* The smallest segments that a container may ask for: Linux's tcp_min_snd_mss. It bounds what one descriptor can cost. */
#define EDGE_SEGMENT_MIN 48u

/* The most Ethernet frames that one frame can become: nic_room() must be at least this. */
#define EDGE_FRAMES_MAX (DP_FRAME_MAX / EDGE_SEGMENT_MIN + 1)

/*
 * edge_cut makes Ethernet frames of a pipe's frame, in order, with checksums and with addresses still empty, and calls
 * emit for each, which takes it. head is the copy of the frame's head that packet was read from. Returns how many, or
 * -EMSGSIZE: longer than the MTU, and not to be cut; -ENOMEM: no buffers, and nothing was emitted or only a part.
 */
int edge_cut(struct nic *nic, const struct dp_frame *frame, const uint8_t *head, uint32_t head_length,
	     const struct packet *packet, void (*emit)(struct rte_mbuf *frame, void *context), void *context);

/* edge_ether fills in the Ethernet header that edge_cut left room for. */
void edge_ether(struct rte_mbuf *frame, const struct mac_address *to, const struct mac_address *from, bool ipv4);

#endif
