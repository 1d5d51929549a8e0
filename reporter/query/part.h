/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part: the samples of a window of the archive that lie in a span of time, by its side
 * file (reporter/store/times_file.h).
 */
#ifndef REPORTER_QUERY_PART_H
#define REPORTER_QUERY_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "reporter/query/query.h"

struct store_times;

/* What is taken of a profile. */
struct query_part {
	struct reporter_query_span span;
	/* Of a profile that is only partly in the span; NULL: there is none. */
	int (*times)(void *arg, struct store_times **tp); /* 0 or -errno */
	void *arg;
	int64_t begin, end; /* of the profile */
	bool outside; /* nothing of it is in the span */
	bool whole; /* taken whole, because times are missing */
	bool untraced; /* the ids of traces are missing, for the same reason */
};

/*
 * The sums of the records of [from, to) of wall time, by Sample message and, of each,
 * by value: 'nsamples' times 'nvalues', to be freed. -EBADMSG: the events are not
 * those of a profile with so many values; -ENODATA: some records have no time;
 * -ENOMEM.
 */
int query_part_sums(const struct store_times *t,
		    struct reporter_query_span span, size_t nsamples,
		    size_t nvalues, int64_t **sums);

/*
 * The records of a Sample message with the same trace and span, summed up: these are
 * samples of their own.
 */
struct query_split {
	struct hash_node node;
	struct query_split *next; /* of the same Sample message */
	uint32_t sample, ids; /* as in struct store_times_record */
	int64_t values[];
};

struct query_splits {
	struct arena arena;
	struct hash by_ids;
	struct query_split **by_sample;
	struct store_times *times; /* has the ids */
};

/*
 * The same as query_part_sums(), apart by ids; 't' is taken over, also on an error.
 * Freed by query_splits_free(), which allows NULL.
 */
int query_part_split(struct store_times *t, struct reporter_query_span span,
		     size_t nsamples, size_t nvalues,
		     struct query_splits **out);
void query_splits_free(struct query_splits *s);

#endif /* REPORTER_QUERY_PART_H */
