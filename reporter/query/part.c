// SPDX-License-Identifier: Apache-2.0
/* part: see reporter/query/part.h. */
#include <errno.h>
#include <stdlib.h>

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

static int part_add(const struct store_times *t,
		    const struct store_times_record *rec, size_t nvalues,
		    int64_t *sums)
{
	const struct store_times_event *e = store_times_event(t, rec->event);
	int64_t *at = sums + rec->sample * nvalues;

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
			err = part_add(t, &rec, nvalues, *sums);
	}
	if (err) {
		free(*sums);
		*sums = NULL;
	}
	return err;
}
