/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - hello, welcome, and the file descriptors that travel with them. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "attach.h"

#define FDS_MAX 2

static void close_all(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
}

static int send_message(int conn, const void *data, size_t length, const int *fds, unsigned n)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { (void *)data, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n > 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	ssize_t sent = sendmsg(conn, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return -errno;
	return (size_t)sent == length ? 0 : -EPROTO;
}

/* receive_message reads one message of exactly length bytes. Files that came along beyond FDS_MAX the kernel has
 * closed (MSG_CTRUNC); the others are the caller's. */
static int receive_message(int conn, void *data, size_t length, int *fds, unsigned *n)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { data, length };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space
	};
	ssize_t got = recvmsg(conn, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*n = 0;
	if (got < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), *n * sizeof(int));
	}
	if (got == 0)
		return -ECONNRESET;
	if ((size_t)got != length || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		close_all(fds, *n);
		*n = 0;
		return -EPROTO;
	}
	return 0;
}

static int socket_address(const char *path, struct sockaddr_un *address)
{
	struct stat st;
	int n;

	if (stat(path, &st) < 0)
		return -errno;
	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path, sizeof address->sun_path, S_ISDIR(st.st_mode) ? "%s/" DP_ATTACH_SOCKET : "%s",
		     path);
	return n < 0 || (size_t)n >= sizeof address->sun_path ? -ENAMETOOLONG : 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { 0 };
	int err = socket_address(path, &address);

	if (err)
		return err;

	int conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (conn < 0)
		return -errno;
	if (connect(conn, (struct sockaddr *)&address, sizeof address) < 0) {
		err = -errno;
		close(conn);
		return err;
	}
	return conn;
}

/* welcome_valid makes sure that text ends and numbers are possible: a container need not trust its master either. */
static int welcome_valid(struct dp_welcome *w, unsigned fds)
{
	if (w->magic != DP_MAGIC)
		return -EPROTO;
	w->name[sizeof w->name - 1] = 0;
	w->reason[sizeof w->reason - 1] = 0;
	if (w->status < 0)
		return w->status;
	if (w->version != DP_VERSION)
		return -EPROTONOSUPPORT;
	if (w->status != 0 || fds != 2 || w->mtu < 1280 || w->mtu > DP_FRAME_MAX)
		return -EPROTO;
	return 0;
}

static int attach_once(const char *path, int region_fd, int timeout_ms, struct dp_welcome *welcome, int *conn,
		       int *region, int *bell)
{
	struct dp_hello hello = { DP_MAGIC, DP_VERSION, region_fd >= 0 ? DP_HELLO_RESUME : 0 };
	int fds[FDS_MAX], err, s = connect_to(path);
	unsigned n = 0;

	if (s < 0)
		return s;
	err = send_message(s, &hello, sizeof hello, &region_fd, region_fd >= 0);
	if (err == -EPIPE)
		err = 0; /* refused before we spoke: the reason is there to be read */
	if (!err) {
		struct pollfd p = { .fd = s, .events = POLLIN };
		int ready = poll(&p, 1, timeout_ms);

		err = ready < 0 ? -errno : ready == 0 ? -ETIMEDOUT : 0;
	}
	if (!err)
		err = receive_message(s, welcome, sizeof *welcome, fds, &n);
	if (!err)
		err = welcome_valid(welcome, n);
	if (err) {
		close_all(fds, n);
		close(s);
		return err;
	}
	*conn = s;
	*region = fds[0];
	*bell = fds[1];
	return 0;
}

int dp_attach_connect(const char *path, int region_fd, int timeout_ms, struct dp_welcome *welcome, int *conn,
		      int *region, int *bell)
{
	int err = -ECONNRESET;

	/* A connection that is closed with our hello unread loses the refusal, too: ask again. */
	for (unsigned tries = 0; tries < 3 && err == -ECONNRESET; tries++)
		err = attach_once(path, region_fd, timeout_ms, welcome, conn, region, bell);
	return err;
}

int dp_attach_receive_hello(int conn, struct dp_hello *hello, int *region)
{
	struct dp_hello h;
	int fds[FDS_MAX];
	unsigned n = 0;
	int err = receive_message(conn, &h, sizeof h, fds, &n);

	if (!err && h.magic != DP_MAGIC)
		err = -EPROTO;
	if (!err && h.version != DP_VERSION)
		err = -EPROTONOSUPPORT;
	if (!err && ((h.flags & ~DP_HELLO_RESUME) || n != (h.flags & DP_HELLO_RESUME)))
		err = -EPROTO;
	if (err) {
		close_all(fds, n);
		return err;
	}
	*hello = h;
	*region = n ? fds[0] : -1;
	return 0;
}

int dp_attach_send_welcome(int conn, struct dp_welcome *welcome, int region, int bell)
{
	const int fds[FDS_MAX] = { region, bell };

	welcome->magic = DP_MAGIC;
	welcome->version = DP_VERSION;
	return send_message(conn, welcome, sizeof *welcome, fds, welcome->status == 0 ? 2 : 0);
}

int dp_attach_refuse(int conn, int status, const char *reason)
{
	struct dp_welcome w = { .status = status };
	char hello[sizeof(struct dp_hello)];

	/* Closing a Unix socket with unread data resets it, and the reason would be lost. */
	(void)recv(conn, hello, sizeof hello, MSG_DONTWAIT);
	snprintf(w.reason, sizeof w.reason, "%s", reason);
	return dp_attach_send_welcome(conn, &w, -1, -1);
}
