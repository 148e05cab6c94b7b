/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h - streams over kernel sockets or over DockLib, so that one program measures both.
 *
 * All calls come from one thread; callbacks run in transport_poll.
 */
#ifndef DOCKNET_TRANSPORT_H
#define DOCKNET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stream {
	void *user; /* the program's */
	const struct stream_events *events;
};

struct stream_events {
	void (*opened)(struct stream *stream); /* accepted, or connected */
	void (*data)(struct stream *stream, const uint8_t *data, size_t length);
	void (*writable)(struct stream *stream);	  /* there is room again after a short send */
	void (*ended)(struct stream *stream);		  /* the peer sends no more */
	void (*closed)(struct stream *stream, int error); /* failed; the stream is gone */
};

struct transport {
	const char *name;
	int (*open)(void);
	int (*listen)(const char *host, uint16_t port, const struct stream_events *events);
	int (*connect)(const char *host, uint16_t port, const struct stream_events *events, void *user,
		       struct stream **out);
	/* Returns how much was taken, 0 if nothing fits now, or -errno. */
	ssize_t (*send)(struct stream *stream, const void *data, size_t length);
	int (*shutdown)(struct stream *stream);
	void (*close)(struct stream *stream);
	int (*poll)(int timeout_ms);
	void (*stop)(void); /* end the transport */
};

extern const struct transport kernel_transport;
extern const struct transport docknet_transport;

/* "kernel" or "docknet"; NULL for anything else. */
const struct transport *transport_find(const char *name);

#endif
