// SPDX-License-Identifier: Apache-2.0
/* find_request: symbolizer_find(), on the loop; the worker has find.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/internal.h"

struct find_job {
	struct file_job job;
	symbolizer_find_fn fn;
	void *arg;
	uint64_t vaddr, size;
	uint32_t n; /* words of the name, which ends with a NUL */
	uint64_t name[];
};

static struct find_job *find_of(struct file_job *j)
{
	return container_of(j, struct find_job, job);
}

static struct find_job *find_of_remote(struct worker_job *j)
{
	return find_of(container_of(j, struct file_job, remote));
}

static void find_question(struct worker_job *j, struct worker_question *q)
{
	const struct find_job *f = find_of_remote(j);

	q->object = j->file->object;
	q->n = f->n;
	memcpy(q + 1, f->name, f->n * sizeof(*f->name));
}

static int find_on_answer(struct worker_job *j, struct worker_in *in)
{
	const struct worker_found *a = worker_found(in);
	struct find_job *f = find_of_remote(j);

	if (!a)
		return -EPROTO;
	f->vaddr = a->vaddr;
	f->size = a->size;
	return WORKER_DONE;
}

static void find_count(struct file_job *j)
{
}

static void find_answer(struct file_job *j, int err)
{
	struct find_job *f = find_of(j);

	f->fn(f->arg, err, f->vaddr, f->size);
}

static void find_free(struct file_job *j)
{
	free(find_of(j));
}

static const struct file_job_kind find_kind = {
	.remote = { WORKER_FIND, find_question, find_on_answer,
		    symbolizer_job_done },
	.count = find_count,
	.answer = find_answer,
	.free = find_free,
};

int symbolizer_find(struct symbolizer *s, struct symbolizer_file *file,
		    const char *name, symbolizer_find_fn fn, void *arg)
{
	size_t len = strlen(name) + 1, n = (len + 7) / 8;
	struct find_job *f;
	int err;

	/* These are not read by workers. */
	if (file == s->kernel || file == s->vdso)
		return -EOPNOTSUPP;
	if (n > WORKER_NAMES_MAX)
		return -ENAMETOOLONG;
	f = calloc(1, sizeof(*f) + n * sizeof(*f->name));
	if (!f)
		return -ENOMEM;
	f->fn = fn;
	f->arg = arg;
	f->n = (uint32_t)n;
	memcpy(f->name, name, len);
	f->job.s = s;
	f->job.kind = &find_kind;
	f->job.remote.file = file;
	f->job.remote.kind = &find_kind.remote;
	err = workers_submit(s->workers, &f->job.remote);
	if (err)
		free(f);
	return err;
}
