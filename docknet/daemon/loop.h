/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's event loop. One event is handled at a time, so that a handler may remove any other source. */
#ifndef DOCKDAEMON_LOOP_H
#define DOCKDAEMON_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct source {
	int fd;
	void (*ready)(struct source *source, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR */
};

struct loop {
	int epoll_fd;
	bool stop;
};

#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

int loop_init(struct loop *loop);
int loop_add(struct loop *loop, struct source *source, uint32_t events);
int loop_change(struct loop *loop, struct source *source, uint32_t events);

/* loop_remove: call it before closing the file; does nothing to a source that was never added. */
void loop_remove(struct loop *loop, struct source *source);

/* loop_run handles events until stop is set. */
void loop_run(struct loop *loop);
void loop_close(struct loop *loop);

#endif
