/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's half of attaching (../dockpipe/attach.h): a listening socket per pipe, and connections to it. */
#ifndef DOCKDAEMON_ATTACHMENT_H
#define DOCKDAEMON_ATTACHMENT_H

#include "registry.h"

/* attachment_offer makes the pipe's directory and its socket. Returns 0 or -errno. */
int attachment_offer(struct registry *registry, struct pipe *pipe);

/* attachment_withdraw closes all of a pipe's connections and its socket; with forget the directory goes, too. */
void attachment_withdraw(struct registry *registry, struct pipe *pipe, bool forget);

/* attachment_end detaches a pipe's container, if there is one, and closes its connection: it may come again. */
void attachment_end(struct registry *registry, struct pipe *pipe);

#endif
