/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files on which a master sleeps until the NIC has received something. Physical ports have interrupts, which DPDK offers as
 * eventfds. The drivers of kernel interfaces have a socket (AF_XDP, AF_PACKET) or /dev/net/tun open, which poll() knows how
 * to wait on, but DPDK does not tell which: so look what was not open before.
 */
#ifndef DOCKDAEMON_NIC_SLEEP_H
#define DOCKDAEMON_NIC_SLEEP_H

#include "nic.h"

#define OPEN_FILES_MAX 4096u

struct open_files {
	uint8_t open[OPEN_FILES_MAX / 8];
};

void nic_sleep_before(struct open_files *before);
void nic_sleep_after(struct nic *nic, const struct open_files *before);

#endif
