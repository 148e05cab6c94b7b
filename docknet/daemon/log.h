/* SPDX-License-Identifier: Apache-2.0 */
/* Lines for the operator, on stderr: events, never packets. What a container can cause is rate-limited by its caller. */
#ifndef DOCKDAEMON_LOG_H
#define DOCKDAEMON_LOG_H

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
