// SPDX-License-Identifier: Apache-2.0
#include "nic.h"

#include "neighbor.h"
#include "neighbor_table.h"

#include <errno.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic_sleep.h"

#define DESCRIPTORS 1024u

/* A page less the kernel's headroom and trailer (veth's limit is 3506), DPDK's headers, and some. */
#define XDP_MTU_MAX 3400u
#define TAP_MTU_MAX 1500u

static const char *const kind_names[] = {
	[NIC_NONE] = "none", [NIC_AF_XDP] = "af_xdp", [NIC_AF_PACKET] = "af_packet",
	[NIC_TAP] = "tap",   [NIC_PCI] = "pci",
};

#define FAIL(err, ...)                                                                                                 \
	do {                                                                                                           \
		snprintf(reason, reason_size, __VA_ARGS__);                                                            \
		return err;                                                                                            \
	} while (0)

int nic_check(const struct nic_options *options, char *reason, size_t reason_size)
{
	char path[128];

	switch (options->kind) {
	case NIC_NONE:
		break;
	case NIC_AF_XDP:
	case NIC_AF_PACKET:
		if (if_nametoindex(options->name) == 0)
			FAIL(-ENODEV, "NIC %s:%s: there is no network interface %s in this network namespace",
			     kind_names[options->kind], options->name, options->name);
		break;
	case NIC_TAP:
		if (if_nametoindex(options->name) != 0)
			FAIL(-EEXIST, "NIC tap:%s: there is an interface %s already; a tap is a new one", options->name,
			     options->name);
		if (access("/dev/net/tun", R_OK | W_OK) < 0)
			FAIL(-errno, "NIC tap:%s: /dev/net/tun: %s", options->name, strerror(errno));
		break;
	case NIC_PCI:
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", options->name);
		if (access(path, F_OK) < 0)
			FAIL(-ENODEV, "NIC pci:%s: there is no such PCI device; addresses look like 0000:01:00.0",
			     options->name);
	}
	return 0;
}

/* The slots of the packet socket's ring, which the kernel writes whole frames into, behind a header of its own. */
static uint32_t packet_slot(uint32_t mtu)
{
	uint32_t slot = 2048;

	while (slot < mtu + ETHER_HEADER + 128)
		slot *= 2;
	return slot;
}

/* What DPDK calls the device, and the arguments that its driver wants. */
static void device_arguments(const struct nic_options *o, uint32_t mtu, char *name, size_t name_size, char *args,
			     size_t args_size)
{
	args[0] = '\0';
	switch (o->kind) {
	case NIC_NONE:
		break;
	case NIC_AF_XDP:
		snprintf(name, name_size, "net_af_xdp0");
		snprintf(args, args_size, "iface=%s", o->name);
		break;
	case NIC_AF_PACKET:
		snprintf(name, name_size, "net_af_packet0");
		snprintf(args, args_size, "iface=%s,blocksz=65536,framesz=%u,framecnt=1024,qpairs=1", o->name,
			 packet_slot(mtu));
		break;
	case NIC_TAP:
		snprintf(name, name_size, "net_tap0");
		snprintf(args, args_size, "iface=%s", o->name);
		break;
	case NIC_PCI:
		snprintf(name, name_size, "%s", o->name);
	}
}

static unsigned int kernel_mtu(const char *interface)
{
	struct ifreq request = { .ifr_mtu = 0 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned int mtu = 0;

	if (s < 0)
		return 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", interface);
	if (ioctl(s, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0)
		mtu = (unsigned int)request.ifr_mtu;
	close(s);
	return mtu;
}

/*
 * The driver for XDP sockets registers the pool with the kernel as one piece of count times an object's size. In ordinary
 * memory DPDK lets no object cross a page, so only objects of exactly a page lie without gaps; those behind the piece's
 * end would be refused by the kernel, silently and for ever.
 */
static struct rte_mempool *make_xdp_pool(uint32_t *count)
{
	const uint32_t object = 4096 - RTE_CACHE_LINE_SIZE; /* DPDK's header before it takes a line */
	struct rte_pktmbuf_pool_private room = { .mbuf_data_room_size = (uint16_t)(object - sizeof(struct rte_mbuf)) };

	for (; *count >= 4 * DESCRIPTORS; *count -= *count / 8) {
		struct rte_mempool *pool = rte_mempool_create_empty("nic", *count, object, 0, sizeof(room),
								    SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);

		if (!pool)
			continue;
		rte_pktmbuf_pool_init(pool, &room);
		if (rte_mempool_populate_default(pool) > 0 && pool->nb_mem_chunks == 1) {
			rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
			return pool;
		}
		rte_mempool_free(pool);
	}
	return NULL;
}

/* The MTU that will be used, and a pool whose buffers hold a frame in one piece: some drivers send nothing else. */
static int prepare_memory(struct nic *nic, const struct nic_options *o, unsigned int memory_mib, char *reason,
			  size_t reason_size)
{
	bool in_kernel = o->kind == NIC_AF_XDP || o->kind == NIC_AF_PACKET;
	unsigned int mtu = in_kernel ? kernel_mtu(o->name) : 0;
	uint32_t room, count;

	nic->mtu = o->mtu ? o->mtu : mtu ? mtu : 1500;
	if (in_kernel && mtu && nic->mtu > mtu)
		FAIL(-EINVAL, "NIC %s:%s: its MTU is %u: mtu=%u is too much", kind_names[o->kind], o->name, mtu,
		     nic->mtu);
	room = RTE_PKTMBUF_HEADROOM + ETHER_HEADER + 8 /* VLAN tags */ + nic->mtu;
	if (o->kind == NIC_AF_PACKET) /* its driver wants a slot to fit into a buffer */
		room = RTE_PKTMBUF_HEADROOM + packet_slot(nic->mtu);
	room = o->kind == NIC_AF_XDP ? 4096 : RTE_ALIGN(room, 64u);
	if (o->kind == NIC_AF_XDP && nic->mtu > XDP_MTU_MAX)
		FAIL(-EINVAL,
		     "NIC af_xdp:%s: MTU %u: a frame must fit into a page for an XDP socket: set the interface's MTU "
		     "to %u or "
		     "less (ip link set %s mtu %u), or use af_packet:%s",
		     o->name, nic->mtu, XDP_MTU_MAX, o->name, XDP_MTU_MAX, o->name);
	if (o->kind == NIC_TAP && nic->mtu > TAP_MTU_MAX)
		FAIL(-EINVAL, "NIC tap:%s: DPDK's driver has an MTU of at most %u; af_packet:INTERFACE has any",
		     o->name, TAP_MTU_MAX);
	count = (uint32_t)((uint64_t)memory_mib * 1024 * 1024 / 2 / (room + 256));
	if (o->kind == NIC_AF_XDP)
		nic->pool = make_xdp_pool(&count);
	else
		nic->pool = rte_pktmbuf_pool_create("nic", count, 0, 0, (uint16_t)room, SOCKET_ID_ANY);
	if (!nic->pool)
		FAIL(-ENOMEM, "NIC %s:%s: no memory for %u packet buffers of %u bytes: %s", kind_names[o->kind],
		     o->name, count, room, rte_strerror(rte_errno));
	return 0;
}

static void choose_offloads(struct nic *nic, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	const uint64_t rx = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	const uint64_t tso = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
			     RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	uint64_t tx = info->tx_offload_capa;

	/* A tap's driver computes checksums in software, too, and later: after another pass over the frame. */
	if (nic->kind == NIC_TAP)
		tx = 0;
	nic->checks = nic->kind != NIC_TAP && (info->rx_offload_capa & rx) == rx;
	if (nic->checks)
		conf->rxmode.offloads |= rx;
	nic->fills_ipv4 = tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
	nic->fills_tcp = tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	nic->fills_udp = tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	nic->segments = (tx & tso) == tso;
	conf->txmode.offloads |=
		tx & (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	if (nic->segments)
		conf->txmode.offloads |= tso;
}

static int configure(struct nic *nic, const struct nic_options *o, unsigned int masters, char *reason,
		     size_t reason_size)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	uint16_t rx_ring = DESCRIPTORS, tx_ring = DESCRIPTORS;
	struct rte_eth_dev_info info;
	int r = rte_eth_dev_info_get(nic->port, &info);
	unsigned int queues;

	if (r < 0)
		FAIL(r, "NIC %s: reading its abilities: %s", nic->name, rte_strerror(-r));
	/* Only hardware steers (rte_flow); a kernel interface has one queue for us. */
	queues = o->queues ? o->queues : o->kind == NIC_PCI ? NIC_QUEUES_MAX : 1;
	nic->rx_queues = (uint16_t)RTE_MIN(queues, (unsigned int)info.max_rx_queues);
	nic->tx_queues = (uint16_t)RTE_MIN(masters, (unsigned int)info.max_tx_queues);
	if (o->kind == NIC_TAP) /* its driver wants pairs */
		nic->tx_queues = nic->rx_queues = RTE_MAX(nic->rx_queues, nic->tx_queues);
	if (nic->tx_queues < masters)
		FAIL(-EINVAL, "NIC %s: it has %u transmit queues, one per master is needed: use --masters %u",
		     nic->name, nic->tx_queues, nic->tx_queues);
	choose_offloads(nic, &info, &conf);
	if (o->kind == NIC_PCI)
		conf.intr_conf.rxq = 1;
	/* The packet socket's driver says that it has 1500 at most, and asks nobody else: its slots are what counts. */
	conf.rxmode.mtu = o->kind == NIC_AF_PACKET ? RTE_MIN(nic->mtu, 1500u) : nic->mtu;
	r = rte_eth_dev_configure(nic->port, nic->rx_queues, nic->tx_queues, &conf);
	if (r < 0 && conf.intr_conf.rxq) { /* without interrupts then */
		conf.intr_conf.rxq = 0;
		r = rte_eth_dev_configure(nic->port, nic->rx_queues, nic->tx_queues, &conf);
	}
	if (r < 0)
		FAIL(r, "NIC %s: configuring %u+%u queues, MTU %u: %s", nic->name, nic->rx_queues, nic->tx_queues,
		     nic->mtu, rte_strerror(-r));
	nic->interrupts = conf.intr_conf.rxq;
	rte_eth_dev_adjust_nb_rx_tx_desc(nic->port, &rx_ring, &tx_ring);
	for (uint16_t q = 0; q < nic->rx_queues && r == 0; q++)
		r = rte_eth_rx_queue_setup(nic->port, q, rx_ring, SOCKET_ID_ANY, NULL, nic->pool);
	for (uint16_t q = 0; q < nic->tx_queues && r == 0; q++)
		r = rte_eth_tx_queue_setup(nic->port, q, tx_ring, SOCKET_ID_ANY, NULL);
	if (r < 0)
		FAIL(r, "NIC %s: setting up its queues: %s (CAP_NET_RAW and, for af_xdp, CAP_BPF are needed)",
		     nic->name, rte_strerror(-r));
	return 0;
}

static int start(struct nic *nic, const struct nic_options *o, char *reason, size_t reason_size)
{
	struct rte_ether_addr mac;
	int r;

	if (o->kind == NIC_TAP) {
		r = rte_eth_dev_set_mtu(nic->port, (uint16_t)nic->mtu);
		if (r < 0)
			FAIL(r, "NIC %s: setting its MTU to %u: %s", nic->name, nic->mtu, rte_strerror(-r));
	}
	r = rte_eth_dev_start(nic->port);
	if (r < 0)
		FAIL(r, "NIC %s: starting it: %s", nic->name, rte_strerror(-r));
	r = rte_eth_macaddr_get(nic->port, &mac);
	if (r < 0)
		FAIL(r, "NIC %s: reading its MAC address: %s", nic->name, rte_strerror(-r));
	memcpy(nic->mac.b, mac.addr_bytes, 6);
	/* Neighbour solicitations come to multicast addresses, one per pipe. Existing interfaces are switched by whoever
	 * starts us: it will be there to switch them back. */
	if (o->kind == NIC_PCI && rte_eth_allmulticast_enable(nic->port) < 0)
		(void)rte_eth_promiscuous_enable(nic->port);
	return 0;
}

int nic_open(struct nic *nic, const struct nic_options *o, unsigned int masters, unsigned int memory_mib, char *reason,
	     size_t reason_size)
{
	char name[64] = "", args[128];
	struct open_files before;
	int r;

	memset(nic, 0, sizeof(*nic));
	if (o->kind == NIC_NONE)
		return 0;
	nic->kind = o->kind;
	snprintf(nic->name, sizeof(nic->name), "%s", o->name);
	r = prepare_memory(nic, o, memory_mib, reason, reason_size);
	if (r < 0)
		return r;
	device_arguments(o, nic->mtu, name, sizeof(name), args, sizeof(args));
	nic->neighbors = neighbor_table_new();
	if (!nic->neighbors)
		FAIL(-ENOMEM, "NIC %s: no memory", nic->name);
	nic_sleep_before(&before);
	if (o->kind != NIC_PCI) { /* EAL has probed that, by its allow list */
		r = rte_eal_hotplug_add("vdev", name, args);
		if (r < 0)
			FAIL(r, "NIC %s:%s: DPDK's driver does not take it: %s (see the lines above)",
			     kind_names[o->kind], o->name, rte_strerror(-r));
	}
	r = rte_eth_dev_get_port_by_name(name, &nic->port);
	if (r < 0)
		FAIL(-ENODEV,
		     "NIC %s:%s: DPDK has no driver for it; a PCI device must be bound to vfio-pci (dpdk-devbind.py)",
		     kind_names[o->kind], o->name);
	r = configure(nic, o, masters, reason, reason_size);
	if (r == 0)
		r = start(nic, o, reason, reason_size);
	if (r < 0)
		return r;
	nic_sleep_after(nic, &before);
	nic->present = true;
	return 0;
}

void nic_close(struct nic *nic)
{
	if (!nic->present)
		return;
	for (unsigned int m = 0; m < MASTERS_MAX; m++)
		for (uint32_t i = 0; i < nic->transmit[m].count; i++)
			rte_pktmbuf_free(nic->transmit[m].pending[(nic->transmit[m].first + i) % NIC_PENDING]);
	neighbor_table_free(nic->neighbors);
	rte_eth_dev_stop(nic->port);
	rte_eth_dev_close(nic->port);
	nic->present = false;
}

uint32_t nic_flush(struct nic *nic, unsigned int master)
{
	struct nic_transmit *t = &nic->transmit[master];
	uint32_t sent = 0;

	while (t->count > 0) {
		uint32_t to_end = NIC_PENDING - t->first, contiguous = t->count < to_end ? t->count : to_end;
		uint16_t n = rte_eth_tx_burst(nic->port, (uint16_t)master, &t->pending[t->first], (uint16_t)contiguous);

		t->first = (t->first + n) % NIC_PENDING;
		t->count -= n;
		sent += n;
		if (n < contiguous)
			break;
	}
	return sent;
}

json_t *nic_to_json(const struct nic *nic)
{
	struct rte_eth_stats stats = { 0 };
	char mac[18];

	if (!nic->present)
		return json_null();
	(void)rte_eth_stats_get(nic->port, &stats);
	return json_pack("{s:s, s:s, s:s, s:i, s:i, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "kind",
			 kind_names[nic->kind], "name", nic->name, "mac", mac_format(&nic->mac, mac), "mtu",
			 (int)nic->mtu, "rx_queues", (int)nic->rx_queues, "segments_in_hardware", nic->segments,
			 "checksums_in_hardware", nic->fills_tcp, "rx_frames", (json_int_t)stats.ipackets, "rx_bytes",
			 (json_int_t)stats.ibytes, "tx_frames", (json_int_t)stats.opackets, "tx_bytes",
			 (json_int_t)stats.obytes, "rx_missed", (json_int_t)(stats.imissed + stats.rx_nombuf),
			 "rx_bad_checksum", (json_int_t)counter_read(&nic->rx_bad_checksum), "rx_not_ours",
			 (json_int_t)counter_read(&nic->rx_not_ours), "tx_no_memory",
			 (json_int_t)counter_read(&nic->tx_no_memory));
}
