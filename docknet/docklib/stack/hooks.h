/* SPDX-License-Identifier: Apache-2.0 */
/* hooks.h - functions that lwIP calls by name (lwipopts.h). */
#ifndef DOCKNET_HOOKS_H
#define DOCKNET_HOOKS_H

#include "lwip/ip_addr.h"

u32_t docknet_initial_sequence(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote, u16_t remote_port);

#endif
