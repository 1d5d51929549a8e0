/* SPDX-License-Identifier: Apache-2.0 */
/* past: events that only the catalog of an archive still knows, in order of time. */
#ifndef REPORTER_REQUEST_PAST_H
#define REPORTER_REQUEST_PAST_H

#include <stdbool.h>
#include <stdint.h>

#include "reporter/query/query.h"
#include "reporter/request/request.h"

/* Each a list by itself, of which lines are taken in turn. */
enum request_past_list {
	PAST_FORKS,
	PAST_EXECS,
	PAST_ENDS,
	PAST_RENAMES,
	PAST_ID_CHANGES,
	PAST_CGROUPS,
	PAST_GAPS,
	PAST_LISTS,
};

struct request_past {
	const struct reporter_query_terms *terms;
	struct reporter_query_span span;
	uint64_t types; /* as of struct ledger_filter */
	const char *host;
	/* What was read up to: time and row. */
	struct {
		int64_t at, row;
	} done[PAST_LISTS];
};

/* A span that begins at 'from'; the terms and the host are borrowed. */
void request_past_init(struct request_past *p);
/*
 * Appends the next lines, which are bounded; '*more': there may be others. Errors as
 * of reporter_list_run(). Any thread.
 */
int request_past_read(struct request_past *p, struct reporter_request_run *run,
		      struct strbuf *out, bool *more);

#endif /* REPORTER_REQUEST_PAST_H */
