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

/* --- what has no length of its own, in one buffer -------------------------- */

struct reading {
	struct perfsource_process p;
	struct strbuf text; /* strings, each with its NUL */
	struct strbuf threads; /* struct perfsource_thread each */
	const char *proc;
	int dir;
	char buf[PROCFS_ARGS_MAX + 1];
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
	const char *path;

	if (procfs_read(r->dir, "cgroup", r->buf, sizeof(r->buf)) <= 0)
		return 0;
	path = procfs_cgroup(r->buf);
	return path ? keep(r, path, strlen(path)) : 0;
}

static void read_ids(struct reading *r)
{
	struct procfs_ids ids;

	if (procfs_read(r->dir, "status", r->buf, PROCFS_TEXT_MAX) <= 0 ||
	    !procfs_ids_parse(r->buf, &ids))
		return;
	r->p.uid = ids.uid;
	r->p.gid = ids.gid;
}

static int read_thread(void *arg, uint32_t tid)
{
	struct perfsource_thread t = { .tid = tid };
	struct reading *r = arg;
	char name[64];

	snprintf(name, sizeof(name), "task/%u/comm", tid);
	if (procfs_read(r->dir, name, t.comm, sizeof(t.comm)) <= 0)
		return 0; /* over */
	t.comm[strcspn(t.comm, "\n")] = '\0';
	strbuf_add(&r->threads, &t, sizeof(t));
	return 0;
}

static int read_all(struct reading *r, uint32_t pid)
{
	char path[PATH_MAX];
	ssize_t n = procfs_read(r->dir, "stat", r->buf, PROCFS_TEXT_MAX);

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
static struct perfsource_process *pack(const struct reading *r, size_t front,
				       const size_t *at)
{
	struct perfsource_process *p;
	char *block, *text;

	if (r->text.failed || r->threads.failed)
		return NULL;
	block = malloc(front + sizeof(*p) + r->threads.len + r->text.len);
	if (!block)
		return NULL;
	p = (struct perfsource_process *)(block + front);
	*p = r->p;
	p->threads = (struct perfsource_thread *)(p + 1);
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
		     struct perfsource_process **out)
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
		n = procfs_read(r->dir, "cmdline", r->buf, sizeof(r->buf));
		if (n > 0) {
			at[3] = keep(r, r->buf, n);
			r->p.cmdline_len = n;
		}
	}
	*out = pack(r, front, at);
	return *out ? 0 : -ENOMEM;
}

int perfsource_process_read(const char *proc, uint32_t pid, size_t front,
			    struct perfsource_process **out)
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
