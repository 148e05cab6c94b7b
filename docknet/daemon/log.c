// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void log_line(const char *format, ...)
{
	char stamp[32], text[512];
	struct timespec now;
	struct tm utc;
	va_list args;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* One call, so that lines of two threads stay whole. */
	fprintf(stderr, "%s.%03ldZ dockdaemon: %s\n", stamp, now.tv_nsec / 1000000, text);
}
