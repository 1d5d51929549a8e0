// SPDX-License-Identifier: Apache-2.0
/* rows_request: requests for unwind rows; see symbolize/internal.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbolize/internal.h"
#include "symbolize/rows/rows_hand.h"

struct rows_job {
	struct file_job job;
	symbolizer_rows_fn fn;
	void *arg;
	uint64_t at; /* of a jitdump */
	struct symbolizer_rows *rows;
	struct cache_block *block; /* its memory, if a worker made it */
};

static struct rows_job *rows_of(struct file_job *j)
{
	return container_of(j, struct rows_job, job);
}

static void rows_unmap(void *arg, const void *map, size_t len)
{
	munmap((void *)map, len);
}

static void rows_free(void *arg, const void *map, size_t len)
{
	free((void *)map);
}

static void rows_question(struct worker_job *j, struct worker_question *q)
{
	struct file_job *f = container_of(j, struct file_job, remote);
	struct symbolizer_code *code = (void *)(q + 1);

	if (!j->file->code)
		return;
	q->written = j->file->written;
	*code = (struct symbolizer_code){ .at = rows_of(f)->at };
	q->n = 2;
	q->code = 1;
}

/* A small table is in the message, perhaps not aligned, and is copied. */
static int rows_on_answer(struct worker_job *j, struct worker_in *in)
{
	const struct worker_rows *a = worker_rows(in);
	struct file_job *f = container_of(j, struct file_job, remote);
	symbolizer_rows_release_fn release = rows_unmap;
	void *map;
	int err;

	if (!a)
		return -EPROTO;
	if (a->a.err)
		return WORKER_DONE;
	if (in->fd >= 0) {
		map = worker_table_map(in->fd, a->bytes);
		if (!map)
			return -EPROTO;
	} else {
		release = rows_free;
		map = malloc(a->bytes);
		if (!map) {
			f->err = -ENOMEM;
			return WORKER_DONE;
		}
		memcpy(map, a + 1, a->bytes);
	}
	err = cache_block_adopt(&rows_of(f)->block, map, a->bytes, release,
				&rows_of(f)->rows);
	if (err)
		release(NULL, map, a->bytes);
	if (err == -ENOMEM)
		f->err = err;
	return err == -EINVAL ? -EPROTO : WORKER_DONE;
}

static void rows_count(struct file_job *j)
{
	struct symbolizer_rows_info info;

	if (!rows_of(j)->rows)
		return;
	symbolizer_rows_info(rows_of(j)->rows, &info);
	symbolizer_job_damaged(j, info.damage != NULL);
}

/* A worker is done with it. */
static void rows_job_done(struct worker_job *r, int err)
{
	struct file_job *j = container_of(r, struct file_job, remote);

	rows_count(j);
	if (!r->file->closed && !r->file->code)
		cache_keep_rows(j->s->cache, r->file, err ? err : j->err,
				rows_of(j)->block);
	symbolizer_job_done(r, err);
}

static void rows_found(struct file_job *j, struct cache_found *found)
{
	rows_of(j)->rows = found->rows;
	found->rows = NULL;
}

static void rows_work(struct file_job *j)
{
	j->err = symbolizer_file_rows(j->remote.file, NULL, &rows_of(j)->rows);
}

static void rows_answer(struct file_job *j, int err)
{
	struct rows_job *r = rows_of(j);
	struct symbolizer_rows *rows = err ? NULL : r->rows;

	if (rows)
		r->rows = NULL;
	if (!j->remote.file->code)
		err = symbolizer_hand_apply(j->s->hand, &j->remote.file->ident,
					    err, &rows);
	r->fn(r->arg, err, rows);
}

static void rows_job_free(struct file_job *j)
{
	symbolizer_rows_free(rows_of(j)->rows);
	cache_block_put(rows_of(j)->block);
	free(rows_of(j));
}

static const struct file_job_kind rows_kind = {
	{ WORKER_ROWS, rows_question, rows_on_answer, rows_job_done },
	rows_work,
	ENTRY_ROWS,
	rows_found,
	rows_count,
	rows_answer,
	rows_job_free,
};

int symbolizer_code_rows(struct symbolizer *s, struct symbolizer_file *file,
			 uint64_t at, symbolizer_rows_fn fn, void *arg)
{
	struct rows_job *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	r->at = at;
	if (symbolizer_job_request(s, &r->job, file, &rows_kind, NULL, 0)) {
		free(r);
		return -ENOMEM;
	}
	return 0;
}

int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg)
{
	return symbolizer_code_rows(s, file, 0, fn, arg);
}

int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *id, size_t len,
			    struct symbolizer_rows *rows)
{
	return symbolizer_hand_add(&s->hand, id, len, rows);
}
