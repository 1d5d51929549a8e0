// SPDX-License-Identifier: Apache-2.0
/* part: see reporter/query/part.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"
#include "reporter/query/part.h"
#include "reporter/store/times_file.h"

/*
 * The step of a time, rounded down: spans that follow each other share no record and
 * leave none out.
 */
static int64_t part_step(const struct store_times_info *i, int64_t time)
{
	int64_t step = (int64_t)MIN(i->step_ns, (uint64_t)INT64_MAX), past;

	if (__builtin_sub_overflow(time, i->wall_ns, &past))
		return time < 0 ? INT64_MIN : INT64_MAX;
	return past / step - (past % step < 0);
}

/* To the values 'at' of its sample. */
static int part_add(const struct store_times *t,
		    const struct store_times_record *rec, size_t nvalues,
		    int64_t *at)
{
	const struct store_times_event *e = store_times_event(t, rec->event);

	if (!e || e->count >= nvalues || e->nvalues > nvalues - e->count)
		return -EBADMSG;
	at[e->count] = query_saturate(at[e->count], 1);
	if (e->nvalues > 1)
		at[e->count + 1] = query_saturate(
			at[e->count + 1],
			(int64_t)MIN(rec->value, (uint64_t)INT64_MAX));
	return 0;
}

int query_part_sums(const struct store_times *t,
		    struct reporter_query_span span, size_t nsamples,
		    size_t nvalues, int64_t **sums)
{
	const struct store_times_info *info = store_times_info(t);
	int64_t from = part_step(info, span.from);
	int64_t to = part_step(info, span.to);
	struct store_times_cursor c;
	struct store_times_record rec;
	int err = 0;

	*sums = NULL;
	if (info->untimed)
		return -ENODATA;
	*sums = calloc(nsamples * nvalues + 1, sizeof(**sums));
	if (!*sums)
		return -ENOMEM;
	store_times_begin(t, &c);
	while (!err && store_times_next(&c, &rec)) {
		if (rec.sample >= nsamples)
			err = -EBADMSG;
		else if (rec.step >= from && rec.step < to)
			err = part_add(t, &rec, nvalues,
				       *sums + rec.sample * nvalues);
	}
	if (err) {
		free(*sums);
		*sums = NULL;
	}
	return err;
}

/* --- by traces ------------------------------------------------------------------ */

/* NULL: out of memory. */
static struct query_split *part_split(struct query_splits *s,
				      const struct store_times_record *rec,
				      size_t nvalues)
{
	uint64_t h = hash_u64((uint64_t)rec->sample << 32 | rec->ids);
	size_t bytes = nvalues * sizeof(int64_t);
	struct query_split *one;

	HASH_FIND(one, &s->by_ids, h, node,
		  one->sample == rec->sample && one->ids == rec->ids);
	if (one)
		return one;
	one = arena_alloc(&s->arena, sizeof(*one) + bytes);
	if (!one)
		return NULL;
	one->sample = rec->sample;
	one->ids = rec->ids;
	one->next = s->by_sample[rec->sample];
	memset(one->values, 0, bytes);
	s->by_sample[rec->sample] = one;
	hash_insert(&s->by_ids, &one->node, h);
	return one;
}

static int part_split_all(struct query_splits *s,
			  struct reporter_query_span span, size_t nsamples,
			  size_t nvalues)
{
	const struct store_times_info *info = store_times_info(s->times);
	int64_t from = part_step(info, span.from);
	int64_t to = part_step(info, span.to);
	struct store_times_record rec;
	struct store_times_cursor c;
	struct query_split *one;
	int err = 0;

	store_times_begin(s->times, &c);
	while (!err && store_times_next(&c, &rec)) {
		if (rec.sample >= nsamples)
			return -EBADMSG;
		if (rec.step < from || rec.step >= to)
			continue;
		one = part_split(s, &rec, nvalues);
		err = one ? part_add(s->times, &rec, nvalues, one->values)
			  : -ENOMEM;
	}
	return err;
}

void query_splits_free(struct query_splits *s)
{
	if (!s)
		return;
	store_times_free(s->times);
	hash_fini(&s->by_ids);
	arena_fini(&s->arena);
	free(s->by_sample);
	free(s);
}

int query_part_split(struct store_times *t, struct reporter_query_span span,
		     size_t nsamples, size_t nvalues, struct query_splits **out)
{
	struct query_splits *s = calloc(1, sizeof(*s));
	int err = 0;

	*out = NULL;
	if (!s) {
		store_times_free(t);
		return -ENOMEM;
	}
	s->times = t;
	arena_init(&s->arena);
	s->by_sample = calloc(nsamples + 1, sizeof(*s->by_sample));
	if (!s->by_sample || hash_init(&s->by_ids, 0))
		err = -ENOMEM;
	else if (store_times_info(t)->untimed)
		err = -ENODATA;
	else
		err = part_split_all(s, span, nsamples, nvalues);
	if (err)
		query_splits_free(s);
	else
		*out = s;
	return err;
}
