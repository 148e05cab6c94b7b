/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: lines in, lines out. What they mean is in methods.c. */
#ifndef DOCKDAEMON_CONTROL_H
#define DOCKDAEMON_CONTROL_H

#include "methods.h"

struct control;

/* control_open listens at DIRECTORY/control.sock, for its owner alone (mode 0600). Returns 0 or -errno. */
int control_open(struct daemon_state *daemon, const char *directory, struct control **control);

/* control_close ends all connections, and unlinks the socket. */
void control_close(struct control *control);

#endif
