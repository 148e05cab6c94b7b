// SPDX-License-Identifier: Apache-2.0
#include "nic_sleep.h"

#include <fcntl.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif

void nic_sleep_before(struct open_files *before)
{
	memset(before, 0, sizeof(*before));
	for (unsigned int fd = 0; fd < OPEN_FILES_MAX; fd++)
		if (fcntl((int)fd, F_GETFD) >= 0)
			before->open[fd / 8] |= (uint8_t)(1u << fd % 8);
}

static bool receives_frames(int fd)
{
	char path[64], target[64];
	int domain;
	socklen_t size = sizeof(domain);
	ssize_t n;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0)
		return domain == AF_XDP || domain == AF_PACKET;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strcmp(target, "/dev/net/tun") == 0;
}

void nic_sleep_after(struct nic *nic, const struct open_files *before)
{
	if (nic->interrupts) {
		for (uint16_t q = 0; q < nic->rx_queues && nic->fds < NIC_FDS_MAX; q++) {
			int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(nic->port, q);

			if (fd >= 0)
				nic->fd[nic->fds++] = fd;
		}
		nic->interrupts = nic->fds == nic->rx_queues;
		if (!nic->interrupts)
			nic->fds = 0;
		return;
	}
	for (unsigned int fd = 0; fd < OPEN_FILES_MAX && nic->fds < NIC_FDS_MAX; fd++)
		if (!(before->open[fd / 8] & (1u << fd % 8)) && receives_frames((int)fd))
			nic->fd[nic->fds++] = (int)fd;
}

void nic_arm(const struct nic *nic)
{
	for (uint16_t q = 0; nic->interrupts && q < nic->rx_queues; q++)
		(void)rte_eth_dev_rx_intr_enable(nic->port, q);
}

void nic_disarm(const struct nic *nic)
{
	for (uint16_t q = 0; nic->interrupts && q < nic->rx_queues; q++)
		(void)rte_eth_dev_rx_intr_disable(nic->port, q);
}
