/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what request.c, the queries, and list.c, the lists, share. */
#ifndef REPORTER_REQUEST_INTERNAL_H
#define REPORTER_REQUEST_INTERNAL_H

#include "reporter/request/request.h"
#include "reporter/request/select.h"

enum request_key {
	REQUEST_FROM,
	REQUEST_TO,
	REQUEST_LAST,
	REQUEST_LIFE,
	REQUEST_DROP_MARKS,
	REQUEST_INLINE,
	REQUEST_FORMAT,
	REQUEST_SAMPLE_TYPE,
	REQUEST_BY,
	REQUEST_DIFF,
	REQUEST_TYPE,
	REQUEST_TRACES,
	REQUEST_KEYS,
};

struct reporter_request {
	int64_t now;
	bool local;
	unsigned int seen; /* bits by key */
	struct reporter_query_span span, diff;
	int64_t last;
	char *life, *sample_type, *by[REPORTER_QUERY_ROOTS_MAX];
	size_t nby;
	bool tree; /* one of 'by' */
	bool drop_marks, expand, traces;
	enum reporter_query_kind kind;
	enum reporter_query_format format;
	struct reporter_query_terms terms;
};

struct request_run {
	const struct reporter_request *r;
	struct reporter_request_run *out;
	struct request_select *select; /* NULL: the catalog is not needed */
	struct request_lineage *lineage; /* likewise */
	bool stopped;
};

/* Sets out->why. Returns 'err'. */
int request_fail(struct request_run *x, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int request_catalog_error(struct request_run *x, int err);
int request_span(struct request_run *x, struct reporter_query_span *span);
/* As request_select_opts.go_on; 'arg' is the run. */
bool request_go_on(void *arg);

#endif /* REPORTER_REQUEST_INTERNAL_H */
