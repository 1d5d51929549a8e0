// SPDX-License-Identifier: Apache-2.0
/*
 * reader: reads of /proc/PID that may block for ever, see base/proc/patience.h.
 * Each is a job with memory of its own, since it may outlive the call and the
 * queue. A process whose read blocked is not read again for a minute, nor is any
 * process of a user with two such processes. Ten reads a minute may time out,
 * which takes a second in all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "processmanager/quark/priv.h"

#define HUNG_NS (60 * CLOCK_NSEC_PER_SEC)
#define HUNG_USER_MAX 2

/* --- processes that are not read ------------------------------------------ */

static void forget_hung(struct quark_reader *rd)
{
	uint64_t now = clock_boottime_ns();
	size_t i, n = 0;

	for (i = 0; i < rd->nhung; i++)
		if (now < rd->hung[i].until)
			rd->hung[n++] = rd->hung[i];
	rd->nhung = n;
}

static void note_hung(struct quark_reader *rd, uint32_t pid, uint32_t uid)
{
	rd->hung[rd->nhung++] = (struct quark_hung){
		.pid = pid,
		.uid = uid,
		.until = clock_boottime_ns() + HUNG_NS,
	};
}

static bool may_read(struct quark_reader *rd, uint32_t pid, uint32_t uid)
{
	size_t i, same = 0;

	if (rd->nhung)
		forget_hung(rd);
	for (i = 0; i < rd->nhung; i++) {
		if (rd->hung[i].pid == pid)
			return false;
		same += uid != QUARK_NO_UID && rd->hung[i].uid == uid;
	}
	return same < HUNG_USER_MAX && rd->nhung < QUARK_HUNG_MAX;
}

/* --- one read ------------------------------------------------------------- */

struct reading {
	struct patience_job job;
	void (*fn)(struct reading *r);
	uint32_t pid;
	/* What to read, set by the caller of reader_perform(). */
	uint64_t start;
	const char *name; /* static */
	/* The results. */
	uint64_t number;
	struct stat st;
	struct strbuf sb;
};

static void reading_run(struct patience_job *job)
{
	struct reading *r = container_of(job, struct reading, job);

	r->fn(r);
}

static void reading_release(struct patience_job *job)
{
	struct reading *r = container_of(job, struct reading, job);

	strbuf_fini(&r->sb);
	free(r);
}

/* True: *what has the results; the caller frees its 'sb'. */
static bool reader_perform(struct quark_reader *rd,
			   void (*fn)(struct reading *), uint32_t uid,
			   uint32_t pid, struct reading *what)
{
	struct reading *r;
	size_t at;
	int err;

	if (!may_read(rd, pid, uid)) {
		rd->unread++;
		return false;
	}
	r = malloc(sizeof(*r));
	if (!r)
		return false;
	*r = *what;
	r->fn = fn;
	r->pid = pid;
	r->job.run = reading_run;
	r->job.release = reading_release;
	err = patience_run(&rd->patience, &r->job, &at);
	if (!err)
		*what = *r;
	else
		rd->unread++;
	if (err == -ETIMEDOUT)
		note_hung(rd, pid, uid);
	else
		free(r); /* its strbuf is empty, or the caller's now */
	return !err;
}

static void run_exists(struct reading *r)
{
	r->number = quark_procfs_exists(r->pid, r->start);
}

bool quark_reader_exists(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			 uint64_t start)
{
	struct reading r = { .start = start };

	return !reader_perform(rd, run_exists, uid, pid, &r) || r.number;
}

static void run_parent(struct reading *r)
{
	r->number = quark_procfs_parent(r->pid, r->start);
}

uint32_t quark_reader_parent(struct quark_reader *rd, uint32_t uid,
			     uint32_t pid, uint64_t start)
{
	struct reading r = { .start = start };

	return reader_perform(rd, run_parent, uid, pid, &r) ? r.number : 0;
}

static void run_task(struct reading *r)
{
	r->number = quark_procfs_task(r->pid, &r->sb);
}

bool quark_reader_task(struct quark_reader *rd, uint32_t pid, struct strbuf *sb)
{
	struct reading r = { .name = NULL };

	if (!reader_perform(rd, run_task, QUARK_NO_UID, pid, &r))
		return false;
	if (!r.number) {
		strbuf_fini(&r.sb);
		return false;
	}
	strbuf_fini(sb);
	*sb = r.sb;
	return true;
}

static void run_start(struct reading *r)
{
	r->number = quark_procfs_start(r->pid);
}

uint64_t quark_reader_start(struct quark_reader *rd, uint32_t pid)
{
	struct reading r = { .name = NULL };

	return reader_perform(rd, run_start, QUARK_NO_UID, pid, &r)
		       ? r.number
		       : QUARK_PROCFS_NO_START;
}

static void run_stat(struct reading *r)
{
	r->number = quark_procfs_stat(r->pid, r->name, &r->st);
}

bool quark_reader_stat(struct quark_reader *rd, uint32_t uid, uint32_t pid,
		       const char *name, struct stat *st)
{
	struct reading r = { .name = name };

	if (!reader_perform(rd, run_stat, uid, pid, &r) || !r.number)
		return false;
	*st = r.st;
	return true;
}

/* Appends the text that was read. */
static size_t perform_text(struct quark_reader *rd,
			   void (*fn)(struct reading *), uint32_t uid,
			   uint32_t pid, struct reading *r, struct strbuf *sb)
{
	size_t len = reader_perform(rd, fn, uid, pid, r) ? r->sb.len : 0;

	if (len)
		strbuf_add(sb, r->sb.data, len);
	strbuf_fini(&r->sb);
	return len;
}

static void run_link(struct reading *r)
{
	quark_procfs_link(r->pid, r->name, &r->sb);
}

size_t quark_reader_link(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			 const char *name, struct strbuf *sb)
{
	struct reading r = { .name = name };

	return perform_text(rd, run_link, uid, pid, &r, sb);
}

static void run_cgroup(struct reading *r)
{
	quark_procfs_cgroup(r->pid, r->start, &r->sb);
}

size_t quark_reader_cgroup(struct quark_reader *rd, uint32_t uid, uint32_t pid,
			   uint64_t start, struct strbuf *sb)
{
	struct reading r = { .start = start };

	return perform_text(rd, run_cgroup, uid, pid, &r, sb);
}

/* --- strings of several processes ----------------------------------------- */

struct batch {
	struct patience_job job;
	size_t max_env;
	size_t n;
	struct quark_text texts[QUARK_TEXTS_MAX];
	struct strbuf sb;
};

static void batch_run(struct patience_job *job)
{
	struct batch *b = container_of(job, struct batch, job);
	size_t i;

	for (i = 0; i < b->n; i++) {
		struct quark_text *t = &b->texts[i];

		t->at = b->sb.len;
		t->known = quark_procfs_strings(t->pid, t->start, b->max_env,
						&b->sb, &t->args, &t->env);
		patience_step(job);
	}
}

static void batch_release(struct patience_job *job)
{
	struct batch *b = container_of(job, struct batch, job);

	strbuf_fini(&b->sb);
	free(b);
}

/* Of the texts that may be read: which[] has their indices. NULL: none, no memory. */
static struct batch *batch_new(struct quark_reader *rd,
			       const struct quark_text *texts, size_t n,
			       size_t max_env, size_t *which)
{
	struct batch *b = calloc(1, sizeof(*b));
	size_t i;

	if (!b)
		return NULL;
	b->job.run = batch_run;
	b->job.release = batch_release;
	b->max_env = max_env;
	for (i = 0; i < n; i++) {
		if (!may_read(rd, texts[i].pid, texts[i].uid))
			continue;
		which[b->n] = i;
		b->texts[b->n++] = texts[i];
	}
	if (b->n)
		return b;
	free(b);
	return NULL;
}

/* Without memory for the strings nothing is known. Frees the batch. */
static size_t take_batch(struct batch *b, struct quark_text *texts,
			 const size_t *which, struct strbuf *sb)
{
	size_t i, n = b->sb.failed ? 0 : b->n;

	for (i = 0; i < n; i++)
		texts[which[i]] = b->texts[i];
	strbuf_fini(sb);
	*sb = b->sb;
	free(b);
	return n;
}

void quark_reader_strings(struct quark_reader *rd, struct quark_text *texts,
			  size_t n, size_t max_env, struct strbuf *sb)
{
	size_t which[QUARK_TEXTS_MAX], at, count, done = 0;
	const struct quark_text *hung;
	struct batch *b;
	int err;

	/* If one read blocks, the others are repeated, which takes little time. */
	while ((b = batch_new(rd, texts, n, max_env, which))) {
		count = b->n;
		err = patience_run(&rd->patience, &b->job, &at);
		if (!err)
			done = take_batch(b, texts, which, sb);
		else if (err != -ETIMEDOUT)
			batch_release(&b->job);
		if (err != -ETIMEDOUT)
			break;
		hung = &texts[which[MIN(at, count - 1)]];
		note_hung(rd, hung->pid, hung->uid);
	}
	rd->unread += n - done;
}

/* --- what the backend reads without blocking ------------------------------ */

static bool show_one(struct quark_queue_priv *qq, uint32_t pid,
		     struct abi_quark_image *im)
{
	return qq->backend->look && qq->backend->look(qq->b, pid, im);
}

bool quark_exists(struct quark_queue_priv *qq, const struct quark_process *p)
{
	struct abi_quark_image im;

	if (show_one(qq, p->pid, &im))
		return im.head.key.start_boottime == p->key.start_boottime;
	/* The iterator may hide a process that is in /proc. */
	return quark_reader_exists(&qq->reader, p->proc_uid, p->pid,
				   p->key.start_boottime);
}

uint32_t quark_parent_of(struct quark_queue_priv *qq,
			 const struct quark_process *p)
{
	struct abi_quark_image im;

	if (show_one(qq, p->pid, &im))
		return im.head.key.start_boottime == p->key.start_boottime
			       ? im.parent.tgid
			       : 0;
	return quark_reader_parent(&qq->reader, p->proc_uid, p->pid,
				   p->key.start_boottime);
}

/* The start is in /proc/PID/stat, the read that blocks most easily. */
void quark_read_strings(struct quark_queue_priv *qq, struct quark_text *texts,
			size_t n, struct strbuf *sb)
{
	uint64_t starts[QUARK_TEXTS_MAX];
	struct abi_quark_image im;
	size_t i;

	for (i = 0; i < n; i++) {
		starts[i] = texts[i].start;
		if (qq->backend->look && !texts[i].hidden)
			texts[i].start = 0;
	}
	quark_reader_strings(&qq->reader, texts, n, qq->attr.max_env, sb);
	for (i = 0; i < n; i++) {
		if (texts[i].known && !texts[i].start)
			texts[i].known =
				show_one(qq, texts[i].pid, &im) &&
				im.head.key.start_boottime == starts[i];
		texts[i].start = starts[i];
	}
}

void quark_text_spans(const struct quark_text *t, const struct strbuf *sb,
		      struct quark_spans *out)
{
	if (t->known && t->args)
		out->cmdline = (struct quark_span){ sb->data + t->at, t->args };
	if (t->known && t->env)
		out->env = (struct quark_span){ sb->data + t->at + t->args,
						t->env };
}
