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

#endif /* REPORTER_QUERY_PART_H */
