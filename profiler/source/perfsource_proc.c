// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource_proc: see perfsource_proc.h. The formats are proc(5)'s. All is
 * read through one descriptor of /proc/PID, which stays that process's when its
 * pid is reused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "profiler/source/perfsource_proc.h"

#define PROCFS_TEXT_MAX 4096
#define PROCFS_ARGS_MAX ABI_QUARK_ARGS_MAX

struct reading {
	struct perfsource_process p;
	struct strbuf text; /* strings, each with its NUL */
	struct strbuf threads; /* struct perfsource_thread each */
	const char *proc;
	int dir;
	char buf[PROCFS_ARGS_MAX + 1];
};

/* Offset of a string in 'text', plus one; 0: unknown. */
static size_t perfsource_proc_keep(struct reading *r, const char *s, size_t len)
{
	size_t at = r->text.len + 1;

	strbuf_add(&r->text, s, len);
	strbuf_add(&r->text, "", 1);
	return at;
}

static size_t keep_link(struct reading *r, const char *name)
{
	ssize_t n = readlinkat(r->dir, name, r->buf, PROCFS_TEXT_MAX);

	return n > 0 && n < PROCFS_TEXT_MAX ? perfsource_proc_keep(r, r->buf, n)
					    : 0;
}

static size_t keep_cgroup(struct reading *r)
{
	const char *path;

	if (procfs_read(r->dir, "cgroup", r->buf, sizeof(r->buf)) <= 0)
		return 0;
	path = procfs_cgroup(r->buf);
	return path ? perfsource_proc_keep(r, path, strlen(path)) : 0;
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

static int perfsource_proc_read_all(struct reading *r, uint32_t pid)
{
	char path[PATH_MAX];
	ssize_t n = procfs_read(r->dir, "stat", r->buf, PROCFS_TEXT_MAX);

	if (n < 0)
		return n;
	if (procfs_stat_parse(r->buf, n, &r->p.stat))
		return -EINVAL;
	read_ids(r);
	/* If the process ends meanwhile, the list is as of an earlier time. */
	snprintf(path, sizeof(path), "%s/%u/task", r->proc, pid);
	procfs_numbers(path, read_thread, r);
	return 0;
}

static char *perfsource_proc_text(char *text, size_t at)
{
	return at ? text + at - 1 : NULL;
}

/* All of it in one block, 'front' bytes of which are the caller's. */
static struct perfsource_process *
perfsource_proc_pack(const struct reading *r, size_t front, const size_t *at)
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
	p->cgroup = perfsource_proc_text(text, at[0]);
	p->exe = perfsource_proc_text(text, at[1]);
	p->cwd = perfsource_proc_text(text, at[2]);
	p->cmdline = perfsource_proc_text(text, at[3]);
	return p;
}

static int read_into(struct reading *r, size_t front,
		     struct perfsource_process **out)
{
	size_t at[4] = { 0 };
	ssize_t n;
	int err = perfsource_proc_read_all(r, r->p.pid);

	if (err)
		return err;
	at[0] = keep_cgroup(r);
	if (!r->p.stat.kthread) {
		at[1] = keep_link(r, "exe");
		at[2] = keep_link(r, "cwd");
		n = procfs_read(r->dir, "cmdline", r->buf, sizeof(r->buf));
		if (n > 0) {
			at[3] = perfsource_proc_keep(r, r->buf, n);
			r->p.cmdline_len = n;
		}
	}
	*out = perfsource_proc_pack(r, front, at);
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

/* --- readings that may wait for ever -------------------------------------- */

#define PERFPROC_HUNG_NS (60 * CLOCK_NSEC_PER_SEC)
#define PERFPROC_HUNG_USER 2

/* Allocated, since it may outlive the call and the reader. */
struct perfproc_batch {
	struct patience_job job;
	const char *proc;
	size_t front, n;
	struct perfsource_reading readings[PERFSOURCE_READINGS_MAX];
	size_t which[PERFSOURCE_READINGS_MAX]; /* the caller's indices */
};

static void perfproc_batch_run(struct patience_job *job)
{
	struct perfproc_batch *b =
		container_of(job, struct perfproc_batch, job);
	struct perfsource_reading *r;
	size_t i;

	for (i = 0; i < b->n; i++) {
		r = &b->readings[i];
		r->err = perfsource_process_read(b->proc, r->pid, b->front,
						 &r->out);
		patience_step(job);
	}
}

static void perfproc_batch_release(struct patience_job *job)
{
	struct perfproc_batch *b =
		container_of(job, struct perfproc_batch, job);
	size_t i;

	for (i = 0; i < b->n; i++)
		if (b->readings[i].out)
			free((char *)b->readings[i].out - b->front);
	free(b);
}

/* stat(2) of the directory waits for no lock of the process. */
static bool perfproc_owner(const char *proc, uint32_t pid, struct stat *st)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%u", proc, pid);
	return !stat(path, st);
}

static void perfproc_note_hung(struct perfsource_reader *rd, const char *proc,
			       uint32_t pid)
{
	struct stat st;

	rd->hung[rd->nhung++] = (struct perfsource_hung){
		.pid = pid,
		.uid = perfproc_owner(proc, pid, &st) ? st.st_uid : UINT32_MAX,
		.until = clock_boottime_ns() + PERFPROC_HUNG_NS,
	};
}

static void perfproc_forget_hung(struct perfsource_reader *rd)
{
	uint64_t now = rd->nhung ? clock_boottime_ns() : 0;
	size_t i, n = 0;

	for (i = 0; i < rd->nhung; i++)
		if (now < rd->hung[i].until)
			rd->hung[n++] = rd->hung[i];
	rd->nhung = n;
}

static bool perfproc_may_read(const struct perfsource_reader *rd,
			      const char *proc, uint32_t pid)
{
	size_t i, same = 0;
	struct stat st;

	if (!rd->nhung)
		return true;
	if (rd->nhung == PERFSOURCE_HUNG_MAX)
		return false;
	if (!perfproc_owner(proc, pid, &st))
		return true; /* it ended: reading it does not wait */
	for (i = 0; i < rd->nhung; i++) {
		if (rd->hung[i].pid == pid)
			return false;
		same += rd->hung[i].uid == st.st_uid;
	}
	return same < PERFPROC_HUNG_USER;
}

/* A batch of those that may be read; NULL: there are none, or no memory. */
static struct perfproc_batch *
perfproc_batch_new(const struct perfsource_reader *rd, const char *proc,
		   const struct perfsource_reading *readings, size_t n,
		   size_t front)
{
	struct perfproc_batch *b = calloc(1, sizeof(*b));
	size_t i;

	if (!b)
		return NULL;
	b->job.run = perfproc_batch_run;
	b->job.release = perfproc_batch_release;
	b->proc = proc;
	b->front = front;
	for (i = 0; i < n; i++) {
		if (!perfproc_may_read(rd, proc, readings[i].pid))
			continue;
		b->which[b->n] = i;
		b->readings[b->n++].pid = readings[i].pid;
	}
	if (b->n)
		return b;
	free(b);
	return NULL;
}

/* A process that was not read, with the owner of its directory. */
static struct perfsource_process *perfproc_unread(const char *proc,
						  uint32_t pid, size_t front)
{
	struct perfsource_process *p;
	struct stat st;
	char *block;

	if (!perfproc_owner(proc, pid, &st))
		return NULL;
	block = calloc(1, front + sizeof(*p));
	if (!block)
		return NULL;
	p = (struct perfsource_process *)(block + front);
	p->pid = pid;
	p->uid = st.st_uid;
	p->gid = st.st_gid;
	p->begin = p->stat.start = clock_boottime_ns();
	return p;
}

void perfsource_reader_run(struct perfsource_reader *rd, const char *proc,
			   struct perfsource_reading *readings, size_t n,
			   size_t front)
{
	uint32_t pids[PERFSOURCE_READINGS_MAX];
	struct perfproc_batch *b;
	size_t i, at, count;
	int err = -ETIMEDOUT;

	for (i = 0; i < n; i++) {
		readings[i].err = -EAGAIN;
		readings[i].out = NULL;
	}
	perfproc_forget_hung(rd);
	/* When one of them waits the others are read again, which is quick. */
	while (err == -ETIMEDOUT &&
	       (b = perfproc_batch_new(rd, proc, readings, n, front))) {
		count = b->n;
		for (i = 0; i < count; i++)
			pids[i] = b->readings[i].pid;
		err = patience_run(&rd->patience, &b->job, &at);
		if (err == -ETIMEDOUT) { /* the thread frees the batch */
			perfproc_note_hung(rd, proc, pids[MIN(at, count - 1)]);
			continue;
		}
		for (i = 0; !err && i < count; i++)
			readings[b->which[i]] = b->readings[i];
		free(b);
	}
	for (i = 0; i < n; i++) {
		if (readings[i].err != -EAGAIN)
			continue;
		rd->unread++;
		readings[i].out = perfproc_unread(proc, readings[i].pid, front);
	}
}

void perfsource_reader_fini(struct perfsource_reader *rd)
{
	patience_fini(&rd->patience);
}
