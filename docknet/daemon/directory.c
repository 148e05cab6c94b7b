// SPDX-License-Identifier: Apache-2.0
#include "directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAIL(...)                                                                                                      \
	do {                                                                                                           \
		int saved = errno;                                                                                     \
		snprintf(reason, reason_size, __VA_ARGS__);                                                            \
		return -saved;                                                                                         \
	} while (0)

static int make(const char *path, uid_t user, char *reason, size_t reason_size)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		FAIL("making directory %s: %s", path, strerror(saved));
	if (geteuid() == 0 && lchown(path, user, (gid_t)-1) < 0)
		FAIL("giving directory %s to user %u: %s", path, user, strerror(saved));
	return 0;
}

/* Pipes' directories of a daemon before, which may have been another user. Their groups stay. */
static void take_pipes(const char *path, uid_t user)
{
	DIR *dir = geteuid() == 0 ? opendir(path) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			(void)fchownat(dirfd(dir), entry->d_name, user, (gid_t)-1, AT_SYMLINK_NOFOLLOW);
	if (dir)
		closedir(dir);
}

static int take_lock(const char *directory, uid_t user, char *reason, size_t reason_size)
{
	char path[256], pid[16] = "";
	int fd, n;

	snprintf(path, sizeof(path), "%s/lock", directory);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		FAIL("opening %s: %s", path, strerror(saved));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		n = (int)read(fd, pid, sizeof(pid) - 1);
		pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
		close(fd);
		errno = EADDRINUSE;
		FAIL("%s is in use by the dockdaemon with process id %s", directory, pid);
	}
	if (geteuid() == 0)
		(void)fchown(fd, user, (gid_t)-1);
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		FAIL("writing %s: %s", path, strerror(saved));
	return 0; /* the file stays open as long as we live */
}

int directory_take(const char *directory, uid_t user, char *reason, size_t reason_size)
{
	char pipes[256];
	int r;

	/* A socket's path has 108 bytes, and a pipe's has its name and "attach" behind ours. */
	if (directory[0] != '/' || strlen(directory) > 64) {
		errno = EINVAL;
		FAIL("--dir %s: use an absolute path of at most 64 bytes", directory);
	}
	snprintf(pipes, sizeof(pipes), "%s/pipes", directory);
	r = make(directory, user, reason, reason_size);
	if (r == 0)
		r = take_lock(directory, user, reason, reason_size);
	if (r == 0)
		r = make(pipes, user, reason, reason_size);
	if (r == 0)
		take_pipes(pipes, user);
	return r;
}

void directory_leave(const char *directory)
{
	char path[256];

	/* The lock stays, and is held until we are dead: whoever waits for that looks at it, and removes it. */
	snprintf(path, sizeof(path), "%s/pipes", directory);
	(void)rmdir(path);
}
