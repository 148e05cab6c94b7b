/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "transport.h"

const struct transport *transport_find(const char *name)
{
	static const struct transport *const all[] = { &kernel_transport, &docknet_transport };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}
