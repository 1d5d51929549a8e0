// SPDX-License-Identifier: Apache-2.0
/*
 * procfs: what the task iterator cannot read, since it is in the memory of other
 * processes. All through one descriptor of /proc/PID; the start time shows that it
 * is still the same process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

/* A line for each of about a dozen hierarchies; the rest is cut. */
#define CGROUP_TEXT_MAX 32768

/* Appends at most 'max' bytes of a file. The bytes read, or -errno. */
static ssize_t quark_procfs_append(int dirfd, const char *name, size_t max,
				   struct strbuf *sb)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	size_t start = sb->len;
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (sb->len - start < max) {
		n = read(fd, buf, MIN(sizeof(buf), max - (sb->len - start)));
		if (n <= 0)
			break;
		strbuf_add(sb, buf, n);
	}
	close(fd);
	return sb->failed ? -ENOMEM : (ssize_t)(sb->len - start);
}

static bool same_start(int dirfd, uint64_t start_boottime)
{
	struct procfs_stat st;

	return procfs_stat_at(dirfd, &st) &&
	       st.start == procfs_tick_of(start_boottime);
}

uint64_t quark_procfs_start(uint32_t pid)
{
	struct procfs_stat st;

	return procfs_stat(pid, &st) ? st.start / procfs_tick()
				     : QUARK_PROCFS_NO_START;
}

bool quark_procfs_exists(uint32_t pid, uint64_t start_boottime)
{
	int dirfd = procfs_open(pid);
	bool same;

	/* Only ENOENT means that it is gone; a lack of descriptors does not. */
	if (dirfd < 0)
		return dirfd != -ENOENT;
	errno = 0;
	same = same_start(dirfd, start_boottime) || errno == EMFILE ||
	       errno == ENFILE || errno == ENOMEM;
	close(dirfd);
	return same;
}

uint32_t quark_procfs_parent(uint32_t pid, uint64_t start_boottime)
{
	struct procfs_stat st;

	return procfs_stat(pid, &st) &&
			       st.start == procfs_tick_of(start_boottime)
		       ? st.ppid
		       : 0;
}

bool quark_procfs_strings(uint32_t pid, uint64_t start_boottime, size_t max_env,
			  struct strbuf *sb, size_t *args_len, size_t *env_len)
{
	int dirfd = procfs_open(pid);
	ssize_t args, env = 0;
	bool same;

	*args_len = *env_len = 0;
	if (dirfd < 0)
		return false;
	args = quark_procfs_append(dirfd, "cmdline", ABI_QUARK_ARGS_MAX, sb);
	if (max_env)
		env = quark_procfs_append(dirfd, "environ", max_env, sb);
	same = !start_boottime || same_start(dirfd, start_boottime);
	close(dirfd);
	if (!same || args < 0)
		return false;
	*args_len = args;
	*env_len = MAX(env, 0);
	return true;
}

size_t quark_procfs_cgroup(uint32_t pid, uint64_t start_boottime,
			   struct strbuf *sb)
{
	struct strbuf text = STRBUF_INIT;
	const char *path = NULL;
	int dirfd = procfs_open(pid);
	size_t start = sb->len;

	if (dirfd < 0)
		return 0;
	if (quark_procfs_append(dirfd, "cgroup", CGROUP_TEXT_MAX, &text) > 0 &&
	    same_start(dirfd, start_boottime) && strbuf_str(&text))
		path = procfs_cgroup(text.data);
	if (path && strlen(path) < ABI_QUARK_PATH_MAX)
		strbuf_puts(sb, path);
	close(dirfd);
	strbuf_fini(&text);
	return sb->len - start;
}
