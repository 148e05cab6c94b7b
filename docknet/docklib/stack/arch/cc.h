/* SPDX-License-Identifier: Apache-2.0 */
/* cc.h - what lwIP wants to know about compiler and platform. */
#ifndef DOCKNET_ARCH_CC_H
#define DOCKNET_ARCH_CC_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "entropy.h"

#define LWIP_TIMEVAL_PRIVATE  0
#define LWIP_ERRNO_STDINCLUDE 1
#define LWIP_PLATFORM_DIAG(x) /* a library never prints */
#define LWIP_RAND()	      docknet_random()

#ifdef DOCKNET_ASSERT /* for tests; otherwise LWIP_NOASSERT */
#include <stdio.h>
#define LWIP_PLATFORM_ASSERT(x) (fprintf(stderr, "lwIP: %s (%s:%d)\n", x, __FILE__, __LINE__), abort())
#endif

#endif
