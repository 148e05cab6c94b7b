// SPDX-License-Identifier: Apache-2.0
#include "loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

int loop_init(struct loop *loop)
{
	loop->stop = false;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

static int control(struct loop *loop, int operation, struct source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->epoll_fd, operation, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int loop_change(struct loop *loop, struct source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_remove(struct loop *loop, struct source *source)
{
	if (source->fd >= 0)
		(void)control(loop, EPOLL_CTL_DEL, source, 0);
}

void loop_run(struct loop *loop)
{
	while (!loop->stop) {
		struct epoll_event event;

		if (epoll_wait(loop->epoll_fd, &event, 1, -1) == 1) {
			struct source *source = event.data.ptr;
			source->ready(source, event.events);
		}
	}
}

void loop_close(struct loop *loop)
{
	close(loop->epoll_fd);
}
