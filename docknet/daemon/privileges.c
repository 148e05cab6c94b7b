// SPDX-License-Identifier: Apache-2.0
#include "privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int drop_bounding_set(void)
{
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM) /* EPERM: not ours to drop */
			return -errno;
	}
	return 0;
}

int privileges_drop(uid_t user)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2];
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (geteuid() == 0) {
		r = drop_bounding_set();
		if (r < 0)
			return r;
		if (user != 0 &&
		    (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0))
			return -errno;
	}
	memset(none, 0, sizeof(none));
	/* With user 0 this is what counts; otherwise setresuid has done it already. */
	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}
