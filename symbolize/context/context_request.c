// SPDX-License-Identifier: Apache-2.0
/*
 * context_request: symbolizer_context(), on the loop; the worker has context.c. The
 * payload goes to it as a file, like all that workers read: a memfd, which the job owns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/internal.h"

struct context_job {
	struct file_job job;
	symbolizer_context_fn fn;
	void *arg;
	struct symbolizer_context context;
};

static struct context_job *context_of(struct file_job *j)
{
	return container_of(j, struct context_job, job);
}

static int context_on_answer(struct worker_job *j, struct worker_in *in)
{
	struct file_job *f = container_of(j, struct file_job, remote);
	const struct worker_context *a = worker_context(in);

	if (!a)
		return -EPROTO;
	context_of(f)->context = a->context;
	return WORKER_DONE;
}

static void context_count(struct file_job *j)
{
}

static void context_answer(struct file_job *j, int err)
{
	struct context_job *c = context_of(j);

	c->fn(c->arg, err, err ? NULL : &c->context);
}

static void context_free(struct file_job *j)
{
	symbolizer_file_free(j->remote.file);
	free(context_of(j));
}

static const struct file_job_kind context_kind = {
	.remote = { WORKER_CONTEXT, NULL, context_on_answer,
		    symbolizer_job_done },
	.count = context_count,
	.answer = context_answer,
	.free = context_free,
};

/* NULL: no memory, or no descriptor. */
static struct symbolizer_file *context_file(struct symbolizer *s,
					    const void *payload, size_t len,
					    uint32_t uid)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct stat st;

	if (!f)
		return NULL;
	f->fd = worker_table_make(payload, len);
	if (f->fd < 0 || fstat(f->fd, &st)) {
		symbolizer_file_free(f);
		return NULL;
	}
	f->id = ++s->last_id;
	f->uid = f->owner = uid;
	/* By these a quarantined one is known. */
	f->ident.dev = st.st_dev;
	f->ident.ino = st.st_ino;
	f->ident.size = len;
	f->ident.mtime_ns =
		(int64_t)st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	return f;
}

int symbolizer_context(struct symbolizer *s, const void *payload, size_t len,
		       uint32_t uid, symbolizer_context_fn fn, void *arg)
{
	struct context_job *c;
	int err;

	if (len > SYMBOLIZER_CONTEXT_MAX)
		return -EFBIG;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->fn = fn;
	c->arg = arg;
	c->job.s = s;
	c->job.kind = &context_kind;
	c->job.remote.kind = &context_kind.remote;
	c->job.remote.file = context_file(s, payload, len, uid);
	err = c->job.remote.file ? workers_submit(s->workers, &c->job.remote)
				 : -ENOMEM;
	if (err)
		context_free(&c->job);
	return err;
}
