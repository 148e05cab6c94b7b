// SPDX-License-Identifier: Apache-2.0
#include "steer.h"

#include "log.h"

#include <rte_flow.h>

/* The lowest queue from 1 up that no pipe has; 0: none is left. */
static uint16_t free_queue(const struct nic *nic, struct pipe *const *pipes, uint32_t count)
{
	for (uint16_t q = 1; q < nic->rx_queues; q++) {
		bool used = false;

		for (uint32_t i = 0; i < count; i++)
			used |= pipes[i]->nic_queue == q;
		if (!used)
			return q;
	}
	return 0;
}

static struct rte_flow *create_rule(const struct nic *nic, const struct ip_key *address, uint16_t queue)
{
	const struct rte_flow_attr attributes = { .ingress = 1 };
	const struct rte_flow_action_queue to = { .index = queue };
	const struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_item_ipv4 ipv4 = { 0 }, ipv4_mask = { .hdr.dst_addr = UINT32_MAX };
	struct rte_flow_item_ipv6 ipv6 = { 0 }, ipv6_mask = { 0 };
	bool v4 = ip_key_is4(address);
	const struct rte_flow_item pattern[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = v4 ? RTE_FLOW_ITEM_TYPE_IPV4 : RTE_FLOW_ITEM_TYPE_IPV6,
		  .spec = v4 ? (const void *)&ipv4 : &ipv6,
		  .mask = v4 ? (const void *)&ipv4_mask : &ipv6_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_error error;

	memcpy(&ipv4.hdr.dst_addr, address->b + 12, 4);
	memcpy(ipv6.hdr.dst_addr, address->b, 16);
	memset(ipv6_mask.hdr.dst_addr, 0xff, 16);
	if (rte_flow_validate(nic->port, &attributes, pattern, actions, &error) != 0)
		return NULL;
	return rte_flow_create(nic->port, &attributes, pattern, actions, &error);
}

void steer_pipe(struct nic *nic, struct pipe *const *pipes, uint32_t count, struct pipe *pipe)
{
	uint16_t queue = nic->present ? free_queue(nic, pipes, count) : 0;

	if (queue == 0)
		return;
	for (int f = 0; f < FAMILIES; f++) {
		if (!pipe->config.address[f].present)
			continue;
		pipe->flow[f] = create_rule(nic, &pipe->config.address[f].ip, queue);
		if (!pipe->flow[f]) {
			steer_remove(nic, pipe);
			log_line("pipe %s: the NIC does not steer by address: software does", pipe->config.name);
			return;
		}
	}
	pipe->nic_queue = queue;
}

void steer_remove(struct nic *nic, struct pipe *pipe)
{
	struct rte_flow_error error;

	for (int f = 0; f < FAMILIES; f++) {
		if (pipe->flow[f])
			(void)rte_flow_destroy(nic->port, pipe->flow[f], &error);
		pipe->flow[f] = NULL;
	}
	pipe->nic_queue = 0;
}
