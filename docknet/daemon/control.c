// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLIENTS_MAX 64u

struct client {
	struct source source;
	struct control *control;
	struct client *next;
	size_t received; /* bytes of line[] */
	char *answer;	 /* not sent yet; nothing is read while there is one */
	size_t answer_length, sent;
	char line[RPC_LINE_MAX];
};

struct control {
	struct source source;
	struct daemon_state *daemon;
	struct client *clients;
	unsigned int count;
	struct sockaddr_un address;
};

static void close_client(struct client *c)
{
	struct client **p = &c->control->clients;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
	c->control->count--;
	loop_remove(&c->control->daemon->loop, &c->source);
	close(c->source.fd);
	free(c->answer);
	free(c);
}

/* Sends what is left of the answer; false: the client is gone and has been closed. */
static bool send_answer(struct client *c)
{
	while (c->answer) {
		ssize_t n = send(c->source.fd, c->answer + c->sent, c->answer_length - c->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			(void)loop_change(&c->control->daemon->loop, &c->source, EPOLLOUT);
			return true;
		}
		if (n < 0) {
			close_client(c);
			return false;
		}
		c->sent += (size_t)n;
		if (c->sent == c->answer_length) {
			free(c->answer);
			c->answer = NULL;
			(void)loop_change(&c->control->daemon->loop, &c->source, EPOLLIN);
		}
	}
	return true;
}

static void answer_line(struct client *c, const char *line, size_t length)
{
	struct daemon_state *d = c->control->daemon;
	struct rpc_request request;
	struct rpc_error error;
	json_t *result = NULL;

	if (rpc_parse(line, length, &request, &error) == 0)
		result = methods_call(d, &request, &error);
	if (request.id) {
		c->answer = rpc_answer(request.id, result, &error);
		c->answer_length = c->answer ? strlen(c->answer) : 0;
		c->sent = 0;
	} else {
		json_decref(result);
	}
	rpc_request_release(&request);
}

/* Answers complete lines, one after the other. Returns false if the client has been closed. */
static bool answer_lines(struct client *c)
{
	char *newline;

	while (!c->answer && (newline = memchr(c->line, '\n', c->received)) != NULL) {
		size_t used = (size_t)(newline - c->line) + 1;

		answer_line(c, c->line, used - 1);
		c->received -= used;
		memmove(c->line, c->line + used, c->received);
		if (!send_answer(c))
			return false;
	}
	return true;
}

static void client_ready(struct source *source, uint32_t events)
{
	struct client *c = CONTAINER_OF(source, struct client, source);
	ssize_t n;

	if (c->answer) {
		if (events & (EPOLLERR | EPOLLHUP))
			close_client(c);
		else if (send_answer(c))
			(void)answer_lines(c);
		return;
	}
	n = recv(source->fd, c->line + c->received, sizeof(c->line) - c->received, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_client(c);
		return;
	}
	c->received += (size_t)n;
	if (answer_lines(c) && !c->answer && c->received == sizeof(c->line))
		close_client(c); /* a line longer than any request */
}

static void control_ready(struct source *source, uint32_t events)
{
	struct control *control = CONTAINER_OF(source, struct control, source);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c = fd >= 0 && control->count < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;

	(void)events;
	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	c->source = (struct source){ fd, client_ready };
	c->control = control;
	c->next = control->clients;
	control->clients = c;
	control->count++;
	if (loop_add(&control->daemon->loop, &c->source, EPOLLIN) < 0)
		close_client(c);
}

static int listen_at(struct control *control, const char *directory)
{
	struct sockaddr_un *address = &control->address;
	int n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/control.sock", directory);
	mode_t mask;
	int r;

	address->sun_family = AF_UNIX;
	if (n < 0 || (size_t)n >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	control->source.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->source.fd < 0)
		return -errno;
	(void)unlink(address->sun_path); /* of a daemon that was killed: the lock says that none is alive */
	mask = umask(0177);
	r = bind(control->source.fd, (struct sockaddr *)address, sizeof(*address));
	umask(mask);
	if (r < 0 || listen(control->source.fd, 16) < 0)
		return -errno;
	return loop_add(&control->daemon->loop, &control->source, EPOLLIN);
}

int control_open(struct daemon_state *daemon, const char *directory, struct control **out)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	if (!control)
		return -ENOMEM;
	control->source = (struct source){ -1, control_ready };
	control->daemon = daemon;
	err = listen_at(control, directory);
	if (err < 0) {
		control_close(control);
		return err;
	}
	*out = control;
	return 0;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (control->clients)
		close_client(control->clients);
	loop_remove(&control->daemon->loop, &control->source);
	if (control->source.fd >= 0) {
		close(control->source.fd);
		(void)unlink(control->address.sun_path);
	}
	free(control);
}
