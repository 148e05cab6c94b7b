/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Is this the packet that was seen before? An skb's address alone says so wrongly for one packet in four beside
 * container-to-container traffic: buffers are reused within microseconds. So about 64 bits of the packet itself
 * are compared too, none of which NAT rewrites: neither addresses, ports and ICMP ids, nor checksums and TTL.
 */
#ifndef TARE_IDENTITY_H
#define TARE_IDENTITY_H

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "path.h"
#include "tare.h"

#define TARE_PROTO_ICMP	    1
#define TARE_PROTO_TCP	    6
#define TARE_PROTO_UDP	    17
#define TARE_PROTO_FRAGMENT 44
#define TARE_PROTO_ICMPV6   58

#define TARE_VXLAN_OVERHEAD (8 + 8 + 14) /* UDP, VXLAN and inner Ethernet headers */

/* A copy of a packet's headers: the IP header without options or extensions, then what follows them. */
struct header {
	u8 bytes[TARE_HEADER_BYTES] __attribute__((aligned(8)));
	u32 len;       /* bytes filled; 0: not IP, or too short */
	u32 transport; /* where the transport header is, 20 or 40 */
	u16 length;    /* the IP header's own length field, which GRO adapts; in network byte order */
	u8 protocol;   /* of the transport header; TARE_PROTO_FRAGMENT where it is in another fragment */
	bool fragment; /* the first one included */
	bool extended; /* options or extensions lay between the two headers */
	bool wrapped;  /* in VXLAN: these are the inner packet's headers */
};

struct identity {
	u64 fixed;	  /* of headers; never 0 */
	u64 payload;	  /* of the first payload_bytes; 0 where they are not known */
	u8 payload_bytes; /* 0, 8 or 16 */
};

static __always_inline u64 mix(u64 hash, u64 word)
{
	/* The constant is 2^64 / golden ratio: Fibonacci hashing. */
	hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
	return hash ^ (hash >> 29);
}

static __always_inline u64 load64(const u8 *p)
{
	u64 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static __always_inline u32 load32(const u8 *p)
{
	u32 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static __always_inline u16 load16(const u8 *p)
{
	u16 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

/* Copies at most max bytes of what lies at from, before end. Returns how many. */
static __always_inline u32 header_copy(u8 *to, u32 max, const void *from, const void *end)
{
	s64 room = (s64)end - (s64)from;
	u64 n = max;

	if (room <= 0)
		return 0;
	if (room < max)
		n = room;
	/*
	 * The compiler would check one copy of n and pass another, and Linux 6.1 does not know the bound of one that
	 * was spilled before the check. So n is made opaque, and then checked where it counts.
	 */
	barrier_var(n);
	if (n > max)
		return 0;
	if (bpf_probe_read_kernel(to, n, from))
		return 0;
	return n;
}

/* The rare ones, out of the common path: IPv4 options and IPv6 extensions are stepped over. */
static __always_inline void header_skip_extensions(struct header *h, const void *l3, const void *end)
{
	u32 offset;
	u8 extension[8];
	int i;

	h->extended = true;
	if (h->transport == 20) {
		offset = (h->bytes[0] & 0x0f) * 4;
		h->len = 20 + header_copy(h->bytes + 20, TARE_HEADER_BYTES - 20, l3 + offset, end);
		return;
	}
	offset = 40;
	for (i = 0; i < 4; i++) {
		if (h->protocol != 0 && h->protocol != 43 && h->protocol != 60 && h->protocol != TARE_PROTO_FRAGMENT)
			break;
		if (header_copy(extension, sizeof(extension), l3 + offset, end) != sizeof(extension))
			break;
		if (h->protocol == TARE_PROTO_FRAGMENT) {
			h->fragment = true;
			if (load16(extension + 2) & bpf_htons(0xfff8))
				return; /* a later fragment: it has no transport header */
			offset += 8;
		} else {
			offset += (extension[1] + 1) * 8;
		}
		h->protocol = extension[0];
	}
	h->bytes[6] = h->protocol;
	h->len = 40 + header_copy(h->bytes + 40, TARE_HEADER_BYTES - 40, l3 + offset, end);
}

/* What identify() needs: IPv6, UDP or ICMP, and 16 bytes of payload. */
#define IDENTITY_BYTES 64

/*
 * Copies IDENTITY_BYTES, or as many as there are. Since Linux 6.17 a program may load through such a pointer, which
 * saves 30 ns of calling a helper; a load that faults reads 0. What lies behind the packet's end is copied, too, and
 * never looked at: the buffer goes on there for longer than that, with skb_shared_info.
 */
static __always_inline u32 identity_copy(u8 *to, const void *from, const void *end)
{
	s64 room = (s64)end - (s64)from;
	u32 i;

	if (!direct_loads)
		return header_copy(to, IDENTITY_BYTES, from, end);
	if (room <= 0)
		return 0;
#pragma unroll
	for (i = 0; i < IDENTITY_BYTES / 8; i++)
		((u64 *)to)[i] = ((const u64 *)from)[i];
	return room < IDENTITY_BYTES ? room : IDENTITY_BYTES;
}

/* Reads the headers of a packet whose IP header is at l3, or that of the tunnel it is in. */
static __always_inline void header_read(struct header *h, const struct sk_buff *skb, const void *l3)
{
	const void *end = skb->data + (skb->len - skb->data_len);
	u32 n = identity_copy(h->bytes, l3, end);

	h->len = 0;
	h->fragment = h->extended = false;
	if (n < 28)
		return;
	h->len = n;
	switch (h->bytes[0] >> 4) {
	case 4:
		h->transport = 20;
		h->length = load16(h->bytes + 2);
		h->protocol = h->bytes[9];
		if (h->bytes[0] != 0x45)
			header_skip_extensions(h, l3, end);
		h->fragment = load16(h->bytes + 6) & bpf_htons(0x3fff);
		if (load16(h->bytes + 6) & bpf_htons(0x1fff))
			h->protocol = TARE_PROTO_FRAGMENT;
		break;
	case 6:
		h->transport = 40;
		h->length = load16(h->bytes + 4);
		h->protocol = h->bytes[6];
		if (h->protocol == 0 || h->protocol == 43 || h->protocol == 60 || h->protocol == TARE_PROTO_FRAGMENT)
			header_skip_extensions(h, l3, end);
		break;
	default:
		h->len = 0;
	}
	if (h->len < h->transport + 8)
		h->len = 0;
}

/* at is a constant in each call of these two, so that every access has a fixed offset. */
static __always_inline void identify_payload(struct identity *id, const struct header *h, u32 at, u8 payload_bytes)
{
	id->payload = 0;
	id->payload_bytes = 0;
	if (payload_bytes == 16 && h->len >= at + 16) {
		id->payload = mix(load64(h->bytes + at), load64(h->bytes + at + 8)) | 1;
		id->payload_bytes = 16;
	} else if (payload_bytes >= 8 && h->len >= at + 8) {
		id->payload = mix(load64(h->bytes + at), 8) | 1;
		id->payload_bytes = 8;
	}
}

/* ICMP: unreachable, quench, redirect, time exceeded, parameter problem. ICMPv6: below 128. */
static __always_inline bool is_icmp_error(const struct header *h, u32 at)
{
	u8 type = h->bytes[at];

	if (at == 40)
		return h->protocol == TARE_PROTO_ICMPV6 && type < 128;
	return h->protocol == TARE_PROTO_ICMP && (type == 3 || type == 4 || type == 5 || type == 11 || type == 12);
}

/*
 * IPv6 has no packet id: errors about the probes of one traceroute differ in nothing but the port or sequence number
 * that they quote. The quoted destination and its port are those that the container has sent to.
 */
static __always_inline void identify_quoted(struct identity *id, const struct header *h)
{
	const u8 *quoted = h->bytes + 48;

	if (h->len < TARE_HEADER_BYTES)
		return;
	id->fixed = mix(mix(id->fixed, load64(quoted + 24)), load64(quoted + 32));
	if (quoted[6] == TARE_PROTO_ICMPV6)
		id->fixed = mix(id->fixed, load16(quoted + 46));
	else
		id->fixed = mix(id->fixed, load16(quoted + 42));
}

static __always_inline void identify_transport(struct identity *id, const struct header *h, u32 at, u8 payload_bytes)
{
	const u8 *transport = h->bytes + at;

	switch (h->protocol) {
	case TARE_PROTO_TCP:
		id->fixed = mix(id->fixed, load64(transport + 4)); /* sequence and acknowledgement numbers */
		if (h->len >= at + 16)
			id->fixed = mix(id->fixed, load32(transport + 12)); /* flags and window */
		payload_bytes = 0;
		break;
	case TARE_PROTO_UDP:
		id->fixed = mix(id->fixed, load16(transport + 4)); /* length */
		break;
	case TARE_PROTO_ICMP:
	case TARE_PROTO_ICMPV6:
		id->fixed = mix(id->fixed, load16(transport)); /* type and code */
		if (is_icmp_error(h, at)) {
			payload_bytes = 8; /* beyond these, NAT rewrites the packet that it quotes */
			if (at == 40)
				identify_quoted(id, h);
		} else if (transport[0] == 8 || transport[0] == 0 || transport[0] == 128 || transport[0] == 129) {
			id->fixed = mix(id->fixed, load16(transport + 6)); /* sequence number; the id is NAT's */
		}
		break;
	case TARE_PROTO_FRAGMENT:
		id->fixed |= 1;
		identify_payload(id, h, at, payload_bytes); /* it is nothing but payload */
		return;
	}
	id->fixed |= 1;
	identify_payload(id, h, at + 8, payload_bytes);
}

/* The identity of the packet. */
static __always_inline void identify(struct identity *id, const struct header *h)
{
	if (h->transport == 20) {
		/* id, fragment offset and protocol: the words around them hold length, flags, TTL and checksum */
		id->fixed = mix(load32(h->bytes + 4) & bpf_htonl(0xffff1fff), h->protocol);
		/* Multicast on the link: NAT leaves its addresses alone, and little else tells one report from another. */
		if ((load32(h->bytes + 16) & bpf_htonl(0xffffff00)) == bpf_htonl(0xe0000000))
			id->fixed = mix(id->fixed, load64(h->bytes + 12));
		identify_transport(id, h, 20, 16);
	} else {
		id->fixed = mix(load32(h->bytes) & bpf_htonl(0x000fffff), h->protocol); /* flow label */
		/* Multicast and link-local addresses: as above. Packets to neighbours have no flow label, either. */
		if (h->bytes[24] == 0xff || (h->bytes[24] == 0xfe && (h->bytes[25] & 0xc0) == 0x80))
			id->fixed = mix(mix(mix(mix(id->fixed, load64(h->bytes + 8)), load64(h->bytes + 16)),
					    load64(h->bytes + 24)),
					load64(h->bytes + 32));
		identify_transport(id, h, 40, 16);
	}
}

/* The port of the destination and the length, two bytes each as they are in the UDP header. */
static __always_inline u32 udp_port_and_length(const struct header *h)
{
	u32 of_ipv4 = load32(h->bytes + 22), of_ipv6 = load32(h->bytes + 42);

	/* Keeps the compiler from choosing between two addresses, which the verifier does not like. */
	barrier_var(of_ipv4);
	return h->transport == 20 ? of_ipv4 : of_ipv6;
}

static __always_inline bool is_vxlan(const struct header *h)
{
	return h->protocol == TARE_PROTO_UDP && (u16)udp_port_and_length(h) == bpf_htons(vxlan_port);
}

/* An ICMPv6 error quotes more than fits IDENTITY_BYTES. */
static __always_inline void header_complete(struct header *h, const struct sk_buff *skb, const void *l3)
{
	const void *end = skb->data + (skb->len - skb->data_len);

	if (h->len == IDENTITY_BYTES && !h->extended && h->protocol == TARE_PROTO_ICMPV6 && h->bytes[40] < 128)
		h->len += header_copy(h->bytes + IDENTITY_BYTES, TARE_HEADER_BYTES - IDENTITY_BYTES,
				      l3 + IDENTITY_BYTES, end);
}

/*
 * Reads the headers of the innermost packet: the one that a container has sent or will get, also where it is seen
 * inside a VXLAN tunnel. len is 0 if there is none.
 */
static __always_inline void packet_read(struct header *h, const struct sk_buff *skb, const void *l3)
{
	header_read(h, skb, l3);
	h->wrapped = h->len && is_vxlan(h);
	if (h->wrapped) {
		l3 += h->transport + TARE_VXLAN_OVERHEAD;
		header_read(h, skb, l3);
	}
	header_complete(h, skb, l3);
}

#endif
