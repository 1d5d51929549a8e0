// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource_proc: see perfsource_proc.h. The formats are proc(5)'s. Everything
 * is read through one descriptor of /proc/PID, which names that one process
 * and no successor of the same number.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "profiler/source/perfsource_proc.h"

#define PROCFS_TEXT_MAX 4096
#define PROCFS_ARGS_MAX ABI_QUARK_ARGS_MAX
#define PROCFS_KTHREAD 0x00200000U /* PF_KTHREAD of include/linux/sched.h */

uint64_t procfs_tick(void)
{
	return CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
}

int procfs_stat_parse(const char *text, size_t len, struct procfs_stat *out)
{
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	unsigned long long start;
	char rest[1024];
	unsigned int flags;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (!open || !close || close < open)
		return -EINVAL;
	/* A name may hold anything; kernel threads' are longer than comm. */
	n = MIN((size_t)(close - open - 1), sizeof(out->comm) - 1);
	memcpy(out->comm, open + 1, n);
	n = MIN(len - (close + 1 - text), sizeof(rest) - 1);
	memcpy(rest, close + 1, n);
	rest[n] = '\0';
	/* Fields 3, 4, 9 and 22. */
	if (sscanf(rest,
		   " %c %u %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d"
		   " %*d %*d %*d %*d %llu",
		   &out->state, &out->ppid, &flags, &start) != 4)
		return -EINVAL;
	out->kthread = flags & PROCFS_KTHREAD;
	if (__builtin_mul_overflow(start, procfs_tick(), &out->start))
		return -EINVAL;
	return 0;
}

/* A file's first 'max' bytes. How many, or -errno. */
static ssize_t slurp(int dir, const char *name, char *buf, size_t max)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, max - len);
		if (n > 0)
			len += n;
	} while (n > 0 && len < max);
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? n : (ssize_t)len;
}

/* --- what has no length of its own, in one buffer -------------------------- */

struct reading {
	struct procfs_process p;
	struct strbuf text; /* strings, each with its NUL */
	struct strbuf threads; /* struct procfs_thread each */
	const char *proc;
	int dir;
	char buf[PROCFS_ARGS_MAX];
};

/* Offset of a string in 'text', plus one; 0: unknown. */
static size_t keep(struct reading *r, const char *s, size_t len)
{
	size_t at = r->text.len + 1;

	strbuf_add(&r->text, s, len);
	strbuf_add(&r->text, "", 1);
	return at;
}

static size_t keep_link(struct reading *r, const char *name)
{
	ssize_t n = readlinkat(r->dir, name, r->buf, PROCFS_TEXT_MAX);

	return n > 0 && n < PROCFS_TEXT_MAX ? keep(r, r->buf, n) : 0;
}

static size_t keep_cgroup(struct reading *r)
{
	ssize_t n = slurp(r->dir, "cgroup", r->buf, sizeof(r->buf) - 1);
	const char *path;

	if (n <= 0)
		return 0;
	r->buf[n] = '\0';
	path = procfs_cgroup(r->buf);
	return path ? keep(r, path, strlen(path)) : 0;
}

static void read_ids(struct reading *r)
{
	ssize_t n = slurp(r->dir, "status", r->buf, PROCFS_TEXT_MAX - 1);
	const char *p;

	if (n <= 0)
		return;
	r->buf[n] = '\0';
	p = strstr(r->buf, "\nUid:\t");
	if (p)
		sscanf(p, "\nUid:\t%u\t%*u\t%*u\t%*u\nGid:\t%u", &r->p.uid,
		       &r->p.gid);
}

static int read_thread(void *arg, uint32_t tid)
{
	struct procfs_thread t = { .tid = tid };
	struct reading *r = arg;
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "task/%u/comm", tid);
	n = slurp(r->dir, name, t.comm, sizeof(t.comm));
	if (n <= 0)
		return 0; /* over */
	t.comm[n - 1] = '\0'; /* its newline */
	strbuf_add(&r->threads, &t, sizeof(t));
	return 0;
}

static int read_all(struct reading *r, uint32_t pid)
{
	char path[PATH_MAX];
	ssize_t n;

	n = slurp(r->dir, "stat", r->buf, PROCFS_TEXT_MAX);
	if (n < 0)
		return n;
	if (procfs_stat_parse(r->buf, n, &r->p.stat))
		return -EINVAL;
	read_ids(r);
	/* A list cut short by its end is no worse than one read earlier. */
	snprintf(path, sizeof(path), "%s/%u/task", r->proc, pid);
	procfs_numbers(path, read_thread, r);
	return 0;
}

static char *kept(char *text, size_t at)
{
	return at ? text + at - 1 : NULL;
}

/* All of it in one block, 'front' bytes of which are the caller's. */
static struct procfs_process *pack(const struct reading *r, size_t front,
				   const size_t *at)
{
	struct procfs_process *p;
	char *block, *text;

	if (r->text.failed || r->threads.failed)
		return NULL;
	block = malloc(front + sizeof(*p) + r->threads.len + r->text.len);
	if (!block)
		return NULL;
	p = (struct procfs_process *)(block + front);
	*p = r->p;
	p->threads = (struct procfs_thread *)(p + 1);
	p->nthreads = r->threads.len / sizeof(*p->threads);
	if (r->threads.len)
		memcpy(p->threads, r->threads.data, r->threads.len);
	text = (char *)(p->threads + p->nthreads);
	if (r->text.len)
		memcpy(text, r->text.data, r->text.len);
	p->cgroup = kept(text, at[0]);
	p->exe = kept(text, at[1]);
	p->cwd = kept(text, at[2]);
	p->cmdline = kept(text, at[3]);
	return p;
}

static int read_into(struct reading *r, size_t front,
		     struct procfs_process **out)
{
	size_t at[4] = { 0 };
	ssize_t n;
	int err = read_all(r, r->p.pid);

	if (err)
		return err;
	at[0] = keep_cgroup(r);
	if (!r->p.stat.kthread) {
		at[1] = keep_link(r, "exe");
		at[2] = keep_link(r, "cwd");
		n = slurp(r->dir, "cmdline", r->buf, sizeof(r->buf));
		if (n > 0) {
			at[3] = keep(r, r->buf, n);
			r->p.cmdline_len = n;
		}
	}
	*out = pack(r, front, at);
	return *out ? 0 : -ENOMEM;
}

int procfs_read(const char *proc, uint32_t pid, size_t front,
		struct procfs_process **out)
{
	struct reading *r = calloc(1, sizeof(*r));
	char path[PATH_MAX];
	int err;

	if (!r)
		return -ENOMEM;
	r->proc = proc;
	r->p.pid = pid;
	r->p.begin = clock_boottime_ns();
	snprintf(path, sizeof(path), "%s/%u", proc, pid);
	r->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = r->dir < 0 ? -errno : read_into(r, front, out);
	if (r->dir >= 0)
		close(r->dir);
	strbuf_fini(&r->threads);
	strbuf_fini(&r->text);
	free(r);
	return err;
}
