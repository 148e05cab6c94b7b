/* SPDX-License-Identifier: Apache-2.0 */
/* attachment.c - a pipe got, its master lost, and another one found. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach.h"
#include "heap.h"
#include "hooks.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/ip4_frag.h"
#include "lwip/ip6_frag.h"
#include "lwip/stats.h"
#include "lwip/sys.h"
#include "net.h"

#define DEFAULT_PIPE	   "/run/docknet/pipe"
#define DEFAULT_TIMEOUT_MS 2000
/* A master that is restarted is back within a second or so; looking for it costs a few microseconds. */
#define RETRY_NS 50000000u

struct docknet *docknet_current;
static char refusal[96];

const char *docknet_refusal(void)
{
	return refusal;
}

/* ---- lwIP's interface ---- */

u32_t sys_now(void)
{
	return (u32_t)(dp_now_ns() / 1000000u);
}

/* RFC 6528: a clock of 4 us, and a secret offset for each pair of addresses. */
u32_t docknet_initial_sequence(const ip_addr_t *local, u16_t local_port, const ip_addr_t *remote, u16_t remote_port)
{
	struct docknet_address key[2];

	memset(key, 0, sizeof key);
	address_from_lwip(local, local_port, &key[0]);
	address_from_lwip(remote, remote_port, &key[1]);
	return (u32_t)docknet_keyed_hash(key, sizeof key) + (u32_t)(dp_now_ns() / 4000u);
}

static err_t output4(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
	(void)to;
	return tx_packet(netif->state, p);
}

static err_t output6(struct netif *netif, struct pbuf *p, const ip6_addr_t *to)
{
	(void)to;
	return tx_packet(netif->state, p);
}

static err_t init_netif(struct netif *netif)
{
	struct docknet *net = netif->state;

	netif->name[0] = 'd';
	netif->name[1] = 'p';
	netif->mtu = (u16_t)net->welcome.mtu;
	netif->output = output4;
	netif->output_ip6 = output6;
	return ERR_OK;
}

static ip4_addr_t netmask_of(unsigned prefix_length)
{
	ip4_addr_t mask;

	ip4_addr_set_u32(&mask, prefix_length == 0 ? 0 : lwip_htonl(0xffffffffu << (32 - prefix_length)));
	return mask;
}

static int add_netif(struct docknet *net)
{
	ip4_addr_t address = { 0 }, mask = { 0 }, gateway = { 0 };
	s8_t index6 = 0;

	for (unsigned i = 0; i < DP_ADDRESSES_MAX; i++) {
		const struct dp_address *a = &net->welcome.address[i];

		/* lwIP has one IPv4 address per interface. */
		if (a->family == 4 && ip4_addr_isany_val(address)) {
			memcpy(&address.addr, a->bytes, 4);
			mask = netmask_of(a->prefix_length > 32 ? 32 : a->prefix_length);
		}
	}
	if (net->welcome.gateway4.family == 4)
		memcpy(&gateway.addr, net->welcome.gateway4.bytes, 4);
	if (!netif_add(&net->netif, &address, &mask, &gateway, net, init_netif, ip_input))
		return -ENOMEM;
	for (unsigned i = 0; i < DP_ADDRESSES_MAX && index6 < LWIP_IPV6_NUM_ADDRESSES; i++) {
		const struct dp_address *a = &net->welcome.address[i];
		u32_t words[4];

		if (a->family != 6)
			continue;
		memcpy(words, a->bytes, sizeof words);
		netif_ip6_addr_set_parts(&net->netif, index6, words[0], words[1], words[2], words[3]);
		netif_ip6_addr_set_state(&net->netif, index6, IP6_ADDR_PREFERRED);
		index6++;
	}
	netif_set_default(&net->netif);
	netif_set_link_up(&net->netif);
	netif_set_up(&net->netif);
	return 0;
}

/* ---- attaching ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int connect_pipe(struct docknet *net)
{
	int err, region;
	int resumed = net->region;

	struct dp_welcome welcome;

	err = dp_attach_connect(net->path, resumed, net->timeout_ms, &welcome, &net->conn, &region, &net->bell);
	if (err) {
		/* The welcome is only there if the master refused, not if there is none. */
		if (err != -ENOENT && err != -ECONNREFUSED && err != -ETIMEDOUT && err != -EACCES && err != -ECONNRESET)
			memcpy(refusal, welcome.reason, sizeof refusal);
		return err;
	}
	if (resumed < 0) {
		net->region = region;
		net->welcome = welcome;
		return 0;
	}
	/* Our own region came back, or it is of no use: buffers in use are in the old one. */
	close(region);
	if (welcome.size != net->pipe.size || welcome.mtu != net->welcome.mtu ||
	    memcmp(welcome.address, net->welcome.address, sizeof welcome.address) != 0) {
		close_fd(&net->conn);
		close_fd(&net->bell);
		return -ESTALE;
	}
	return 0;
}

static void release(struct docknet *net)
{
	tap_close(net->tap);
	tx_pool_close(net);
	rx_pool_close(net);
	dp_pipe_unmap(&net->pipe);
	close_fd(&net->conn);
	close_fd(&net->region);
	close_fd(&net->bell);
	docknet_heap_put(net->path);
	docknet_heap_put(net);
	docknet_current = NULL;
}

static const char *setting(const char *chosen, const char *variable, const char *otherwise)
{
	const char *value = chosen ? chosen : getenv(variable);

	return value && *value ? value : otherwise;
}

static int set_up(struct docknet *net, const struct docknet_options *options)
{
	const char *tap = setting(options->tap, "DOCKNET_TAP", NULL);
	const char *mode = options->wait == DOCKNET_WAIT_ADAPTIVE ? getenv("DOCKNET_WAIT") : NULL;
	int err = connect_pipe(net);

	if (err)
		return err;
	net->waiter.mode = (enum dp_wait_mode)options->wait;
	if (mode && *mode && dp_wait_mode_parse(mode, &net->waiter.mode))
		return -EINVAL;
	err = dp_pipe_map(net->region, DP_CONTAINER, NULL, &net->pipe);
	if (err)
		return err;
	if (net->pipe.size != net->welcome.size)
		return -EPROTO;
	net->pipe.bell_fd = net->bell;
	err = tx_pool_open(net);
	if (!err)
		err = rx_pool_open(net);
	if (!err && tap)
		err = tap_open(tap, net->welcome.name, &net->tap);
	return err;
}

int docknet_attach(const struct docknet_options *options, struct docknet **out)
{
	static bool initialised;
	const char *path = setting(options->pipe, "DOCKNET_PIPE", DEFAULT_PIPE);
	struct docknet *net;
	int err;

	if (docknet_current)
		return -EBUSY;
	refusal[0] = 0;
	net = docknet_heap_get_zeroed(1, sizeof *net);
	if (!net)
		return -ENOMEM;
	docknet_current = net;
	net->conn = net->region = net->bell = net->pipe.bell_fd = -1;
	net->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	net->path = docknet_heap_get(strlen(path) + 1);
	if (!net->path) {
		release(net);
		return -ENOMEM;
	}
	strcpy(net->path, path);
	err = set_up(net, options);
	if (!err) {
		if (!initialised)
			lwip_init();
		initialised = true;
		err = add_netif(net);
	}
	if (err) {
		release(net);
		return err;
	}
	net->attached = true;
	net->alive_ns = dp_now_ns();
	net->retransmits_before = lwip_stats.mib2.tcpretranssegs;
	rx_refill(net);
	dp_publish_cpu(&net->pipe);
	dp_wake(&net->pipe, DP_WANT_SPACE);
	*out = net;
	return 0;
}

void docknet_detach(struct docknet *net)
{
	if (!net)
		return;
	if (net->engine.running)
		docknet_engine_stop(net);
	tcp_abort_all();
	tcp_free_all();
	udp_close_all();
	/* What waits for fragments holds receive buffers. */
	for (int i = 0; i <= IP_REASS_MAXAGE; i++)
		ip_reass_tmr();
	for (int i = 0; i <= IPV6_REASS_MAXAGE; i++)
		ip6_reass_tmr();
	netif_remove(&net->netif);
	dp_wake(&net->pipe, DP_WANT_FRAMES);
	release(net);
}

/* ---- losing and finding the master ---- */

bool attachment_alive(struct docknet *net)
{
	char bytes[64];
	ssize_t n = recv(net->conn, bytes, sizeof bytes, MSG_DONTWAIT);

	/* A byte is a wake-up. The kernel tells the end of the connection as soon as the master is dead. */
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return true;
	net->attached = false;
	net->retry_ns = 0;
	close_fd(&net->conn);
	close_fd(&net->bell);
	net->pipe.bell_fd = -1;
	return false;
}

/* final tells which refusals will be the same the next time. */
static bool final(int err)
{
	return err == -ESTALE || err == -EBADMSG || err == -EPROTONOSUPPORT || err == -EINVAL || err == -EPERM;
}

void attachment_retry(struct docknet *net)
{
	uint64_t now = dp_now_ns();
	int err;

	if (net->lost || now < net->retry_ns)
		return;
	net->retry_ns = now + RETRY_NS;
	/* The old master is dead: nobody else touches the region now. */
	while (rx_burst(net, 64) > 0)
		;
	rx_recall(net);
	dp_pipe_reset_receive(&net->pipe);
	rx_refill(net);
	err = connect_pipe(net);
	if (err) {
		if (final(err)) {
			net->lost = -ECONNRESET;
			tcp_abort_all();
		}
		return;
	}
	net->attached = true;
	net->alive_ns = now;
	net->pipe.bell_fd = net->bell;
	net->stats.reattached++;
	net->submitted = true;
}

bool docknet_attached(const struct docknet *net)
{
	return net->attached;
}

int docknet_fd(const struct docknet *net)
{
	return net->conn;
}
