/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - how a container gets its pipe.
 *
 * The master listens on a SOCK_SEQPACKET Unix socket per pipe, "attach" in a directory of that pipe alone, which is
 * what gets bind-mounted into the container (the directory: a new master makes a new socket). Directory and socket
 * belong to the pipe's own uid. Who a container is follows from the socket that it came through, never from a message.
 *
 *   container                                   master
 *     connect ----------------------------------> accept; a second connection: welcome with -EBUSY, unless the
 *                                                 first has ended and that was just not noticed yet
 *     dp_hello ---------------------------------> new region: created by the master, sealed, zeroed
 *              <--------------- dp_welcome + fds  region, eventfd
 *     maps and checks the region                  maps and checks the region
 *     ...                                         ...
 *     EOF: the master is gone; try again,         EOF: the container is gone; unmap, close, forget its
 *     with DP_HELLO_RESUME and the region         buffers; its peers' TCP finds out by itself
 *
 * While attached the container sends nothing, and the master only single bytes: wake-ups for DP_WAKE_SOCKET.
 *
 * Resuming: established connections live in the container, so they survive the master if the container goes on with
 * its buffers. With no master alive it resets receive and fill rings (dp_pipe_reset_receive), raises the epoch, and
 * sends its region's fd with the hello. The master trusts a region of unknown origin as much as one of its own: not
 * at all; it demands its seals and its own idea of the geometry (dp_pipe_map), so a container gains nothing by bringing another.
 *
 * Why these means:
 * - memfd, because only a memfd can be sealed, and a file that its reader's peer can truncate kills the reader by
 *   SIGBUS. Seals do not stop a hole from being punched; in ordinary pages that reads as zeros, in hugepages
 *   it may fail, hence dp_fault_guard.
 * - The container is woken by a futex in the region: waking never blocks. An eventfd could be made to: O_NONBLOCK is
 *   a flag of the shared open file, and a hostile holder can clear it and fill the counter.
 * - The master is woken by an eventfd, so that it can sleep on many pipes in one epoll. It registers it with EPOLLET and never
 *   reads it, for the same reason.
 */
#ifndef DOCKPIPE_ATTACH_H
#define DOCKPIPE_ATTACH_H

#include "dockpipe.h"

#define DP_ATTACH_SOCKET "attach" /* the socket's name in the pipe's directory */

/* Container: connect to the master at path (the socket, or the directory that it is in), say hello, wait at most
 * timeout_ms for the welcome. region_fd < 0: a new region; otherwise resume with that one, which stays the caller's.
 * On 0: *conn, *region and *bell are open files of the caller. On a refusal: the welcome's status is returned, and
 * *welcome is written, too, with its reason. */
int dp_attach_connect(const char *path, int region_fd, int timeout_ms, struct dp_welcome *welcome, int *conn,
		      int *region, int *bell);

/* Master: read a hello from an accepted connection without blocking. -EAGAIN: not there yet. *region is the resumed
 * region's fd, -1 without. -EPROTO: it is no hello; -EPROTONOSUPPORT: a hello of another version. */
int dp_attach_receive_hello(int conn, struct dp_hello *hello, int *region);

/* Master: answer. Magic and version are filled in. With status 0 region and bell are passed along; they stay the caller's. */
int dp_attach_send_welcome(int conn, struct dp_welcome *welcome, int region, int bell);

/* Master: refuse with a reason that a person understands. A hello that waits is read and dropped. */
int dp_attach_refuse(int conn, int status, const char *reason);

#endif
