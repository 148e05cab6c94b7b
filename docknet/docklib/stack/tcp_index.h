/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp_index.h - finds a TCP PCB by its addresses, and tells whether a port is in use, in constant time. lwIP's macros
 * that put PCBs on lists and take them off keep it up to date (lwip/0001-tcp-index.patch).
 */
#ifndef DOCKNET_TCP_INDEX_H
#define DOCKNET_TCP_INDEX_H

#include <stdbool.h>

#include "lwip/ip_addr.h"

struct tcp_pcb;

/* pcb was put on list, or is about to be taken off. Listening PCBs are shorter than struct tcp_pcb: only their port counts. */
void tcp_index_add(struct tcp_pcb *const *list, struct tcp_pcb *pcb);
void tcp_index_remove(struct tcp_pcb *const *list, struct tcp_pcb *pcb);

/* The PCB, active or in TIME_WAIT, with these addresses; ports in host order. NULL: none. */
struct tcp_pcb *tcp_index_find(const ip_addr_t *remote, u16_t remote_port, const ip_addr_t *local, u16_t local_port);

bool tcp_index_port_used(u16_t port);

#endif
