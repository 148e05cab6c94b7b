/* SPDX-License-Identifier: Apache-2.0 */
/* lwipopts.h - how lwIP is built here, each option with its reason. All others have lwIP's defaults. */
#ifndef DOCKNET_LWIPOPTS_H
#define DOCKNET_LWIPOPTS_H

/* ---- one thread, no operating system layer: run to completion ---- */
#define NO_SYS		     1
#define SYS_LIGHTWEIGHT_PROT 0 /* one thread: nothing to protect */
#define LWIP_NETCONN	     0 /* these two need threads */
#define LWIP_SOCKET	     0
#define LWIP_TIMERS	     1

/* ---- bare IP packets: the master knows Ethernet, ARP and neighbour discovery, containers don't ---- */
#define LWIP_ETHERNET		      0
#define LWIP_ARP		      0
#define LWIP_IPV4		      1
#define LWIP_IPV6		      1
#define LWIP_IPV6_MLD		      0 /* no multicast */
#define LWIP_IPV6_AUTOCONFIG	      0 /* addresses come with the pipe */
#define LWIP_IPV6_SEND_ROUTER_SOLICIT 0
#define LWIP_IPV6_DUP_DETECT_ATTEMPTS 0 /* the master refuses duplicates */
#define LWIP_ND6_QUEUEING	      0 /* never a packet that waits for a neighbour */
#define LWIP_IPV6_SCOPES	      0 /* one interface: zones can't differ */
#define LWIP_SINGLE_NETIF	      1 /* one pipe: no search for a route */
#define LWIP_HAVE_LOOPIF	      0
#define LWIP_NETIF_LOOPBACK	      0 /* a packet to oneself comes back from the master */
#define LWIP_RAW		      0
#define LWIP_IGMP		      0
#define LWIP_DNS		      0
#define LWIP_DHCP		      0
#define PBUF_LINK_HLEN		      0 /* no Ethernet header to leave space for */
#define ETH_PAD_SIZE		      0
#define LWIP_SUPPORT_CUSTOM_PBUF      1 /* received frames stay in shared memory */

/* ---- memory: private, in size classes (heap.c). lwIP's heap cost a third of the throughput ---- */
#define MEM_ALIGNMENT			16
#define MEM_LIBC_MALLOC			1
#define mem_clib_malloc			docknet_heap_get
#define mem_clib_calloc			docknet_heap_get_zeroed
#define mem_clib_free			docknet_heap_put
#define MEMP_MEM_MALLOC			1 /* pools of a fixed size would be a fixed number of connections */
#define MEMP_OVERFLOW_CHECK		0
#define LWIP_DISABLE_MEMP_SANITY_CHECKS 1 /* they compare sizes of pools that there are not */
#include "heap.h"

/* ---- checksums: none inside the host; the master makes and checks them at the NIC (dockpipe.h) ---- */
#define CHECKSUM_GEN_IP	     0
#define CHECKSUM_GEN_UDP     0
#define CHECKSUM_GEN_TCP     0
#define CHECKSUM_GEN_ICMP    0
#define CHECKSUM_GEN_ICMP6   0
#define CHECKSUM_CHECK_IP    0
#define CHECKSUM_CHECK_UDP   0
#define CHECKSUM_CHECK_TCP   0
#define CHECKSUM_CHECK_ICMP  0
#define CHECKSUM_CHECK_ICMP6 0

/* ---- IP ---- */
#define IP_FORWARD	     0
#define IP_REASSEMBLY	     1 /* large datagrams from outside come in fragments */
#define LWIP_IPV6_REASS	     1
#define IPV6_FRAG_COPYHEADER 1 /* two 64-bit pointers don't fit over the fragment header, where 32-bit ones do */
#define IP_FRAG		     1 /* for pipes with a small MTU */
#define LWIP_IPV6_FRAG	     1
#define IP_REASS_MAX_PBUFS                                                                                             \
	512 /* ten 64 KiB datagrams in 1500-byte fragments at a time; bounds what fragments may hold */
#define MEMP_NUM_REASSDATA 64
#define MEMP_NUM_FRAG_PBUF 512
#define IP_DEFAULT_TTL	   64
#define LWIP_ICMP	   1
#define LWIP_ICMP6	   1

/* ---- TCP ---- */
#define LWIP_TCP		       1
#define TCP_MSS			       65495 /* an IP packet of 65,535 bytes; less is negotiated from the MTU, and with peers outside */
#define LWIP_WND_SCALE		       1
#define TCP_RCV_SCALE		       5	     /* up to 2 MiB */
#define TCP_WND			       (1024 * 1024) /* 16 frames of 64 KiB in flight; more no longer fits a second-level cache */
#define TCP_SND_BUF		       (1024 * 1024)
#define TCP_SND_QUEUELEN	       16384 /* counts pbufs: with an MSS of 1460 two per segment */
#define TCP_SNDLOWAT		       (TCP_SND_BUF / 2)
#define TCP_SNDQUEUELOWAT	       1024
#define MEMP_NUM_TCP_SEG	       TCP_SND_QUEUELEN
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1 /* they compare 65,495 x n with 16-bit limits */
#define TCP_OVERSIZE		       0 /* data is never copied by lwIP: docklib has its own staging (tcp_send.c) */
#define TCP_QUEUE_OOSEQ		       1
#define LWIP_TCP_SACK_OUT	       1 /* Linux then resends only what is missing */
#define LWIP_TCP_MAX_SACK_NUM	       4
#define TCP_OOSEQ_MAX_BYTES	       TCP_WND
#define TCP_OOSEQ_MAX_PBUFS	       2048 /* bounds what a peer may hold with tiny segments */
#define LWIP_TCP_TIMESTAMPS	       0    /* 12 bytes per segment, for round trips that lwIP measures anyway */
#define LWIP_TCP_KEEPALIVE	       1
#define TCP_LISTEN_BACKLOG	       1
#define TCP_DEFAULT_LISTEN_BACKLOG     0xff
#define SO_REUSE		       1 /* a server restarts while old connections are in TIME_WAIT */
/* lwIP's clock of 250 ms makes 1.5 s of a lost packet. 25 ms make delayed ACKs of 25 ms and a minimal
 * retransmission time of 3 slow ticks = 150 ms, a little less than Linux's 200. */
#define TCP_TMR_INTERVAL 25
#define TCP_MSL		 1000u /* TIME_WAIT of 2 s: 60 s would fill memory, and paths here are short */
/* RFC 6528: sequence numbers that a stranger cannot guess. */
#define LWIP_HOOK_TCP_ISN  docknet_initial_sequence
#define LWIP_HOOK_FILENAME "hooks.h"

/* ---- UDP ---- */
#define LWIP_UDP	     1
#define LWIP_NETBUF_RECVINFO 0

/* ---- statistics: retransmissions only, which no callback tells ---- */
#define LWIP_STATS	   1
#define MIB2_STATS	   1
#define LINK_STATS	   0
#define IP_STATS	   0
#define IPFRAG_STATS	   0
#define ICMP_STATS	   0
#define UDP_STATS	   0
#define TCP_STATS	   0
#define MEM_STATS	   0
#define MEMP_STATS	   0
#define SYS_STATS	   0
#define IP6_STATS	   0
#define ICMP6_STATS	   0
#define IP6_FRAG_STATS	   0
#define ND6_STATS	   0
#define LWIP_STATS_DISPLAY 0

/* Assertions abort: in tests only (meson: -DDOCKNET_ASSERT). A library never exits. */
#ifndef DOCKNET_ASSERT
#define LWIP_NOASSERT 1
#endif

#endif
