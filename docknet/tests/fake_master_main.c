/* SPDX-License-Identifier: Apache-2.0 */
/* fake_master_main.c - the fake master as a program, for trying the apps without dockdaemon:
 * fake-master DIRECTORY WAIT SECONDS NAME=ADDRESS[,ADDRESS...]... */
#include <stdio.h>
#include <stdlib.h>

#include "fake_master.h"

int main(int argc, char **argv)
{
	static struct fake_master m;
	enum dp_wait_mode mode;

	if (argc < 5 || dp_wait_mode_parse(argv[2], &mode)) {
		fprintf(stderr,
			"usage: fake-master DIRECTORY adaptive|busy|sleep SECONDS NAME=ADDRESS[,ADDRESS...]...\n");
		return 2;
	}
	fake_master_init(&m, mode);
	for (int i = 4; i < argc; i++) {
		char *addresses = strchr(argv[i], '=');
		int err;

		if (!addresses)
			return 2;
		*addresses++ = 0;
		err = fake_master_add(&m, argv[1], argv[i], addresses);
		if (err) {
			fprintf(stderr, "fake-master: adding %s below %s: %s\n", argv[i], argv[1], strerror(-err));
			return 1;
		}
	}
	fake_master_run(&m, (unsigned)atoi(argv[3]));
	fake_master_close(&m);
	return 0;
}
