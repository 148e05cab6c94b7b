/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861) at the NIC: messages only, no state.
 *
 * Pipes carry IP packets without Ethernet headers, so the daemon speaks both protocols on behalf of its pipes: it answers
 * for each pipe's address with the NIC's MAC address, and asks for those that pipes send to.
 */
#ifndef DOCKDAEMON_NEIGHBOR_H
#define DOCKDAEMON_NEIGHBOR_H

#include "address.h"

#define ETHER_HEADER   14u
#define ETHER_ARP      0x0806
#define ETHER_IPV4     0x0800
#define ETHER_IPV6     0x86dd
#define NEIGHBOR_FRAME 86u /* the longest message that is written: Ethernet, IPv6, solicitation with one option */

enum neighbor_kind {
	NEIGHBOR_NONE,	  /* not one of these messages, or a wrong one */
	NEIGHBOR_REQUEST, /* who has target? */
	NEIGHBOR_REPLY,	  /* subject is at mac */
};

struct neighbor_message {
	enum neighbor_kind kind;
	struct ip_key target;  /* of a request */
	struct ip_key subject; /* whose MAC address the message tells: a reply's, or a request's sender */
	bool has_subject;
	bool duplicate_detection; /* an IPv6 request from ::, a host that tries out an address (RFC 4862) */
	struct mac_address mac;	  /* of the subject, or where the frame came from */
};

/* neighbor_parse reads an Ethernet frame. What is not completely right is NEIGHBOR_NONE. */
enum neighbor_kind neighbor_parse(const uint8_t *frame, size_t length, struct neighbor_message *message);

/* neighbor_answer writes the answer to a request for a pipe's address; returns its length. */
size_t neighbor_answer(const struct neighbor_message *request, const struct mac_address *own,
		       uint8_t out[NEIGHBOR_FRAME]);

/* neighbor_ask writes a request for target on behalf of sender, one of the pipes' addresses; returns its length. */
size_t neighbor_ask(const struct ip_key *target, const struct ip_key *sender, const struct mac_address *own,
		    uint8_t out[NEIGHBOR_FRAME]);

#endif
