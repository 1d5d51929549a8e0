/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: the images that terms choose by what only the catalog of an archive knows
 * (descendants, exit status, arguments), and the windows that have samples of them.
 * The catalog is described in profd-catalog(5).
 */
#ifndef REPORTER_REQUEST_SELECT_H
#define REPORTER_REQUEST_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "reporter/query/query.h"

struct request_select;

struct request_select_opts {
	const char *path; /* of the archive */
	const struct reporter_query_terms *terms;
	struct reporter_query_span span;
	/* Terms that samples decide too: those of names and numbers of images. */
	bool labels;
	int version; /* of the catalog: set here */
	/* Called now and then; false ends the selection (-ECANCELED). Or NULL. */
	bool (*go_on)(void *arg);
	void *arg;
};

/* Whether these terms need fewer windows than all, though samples alone decide them. */
bool request_select_helps(const struct reporter_query_terms *terms);
/*
 * 0; -ENOENT: the archive has no catalog; -EPROTONOSUPPORT: it is of a later version;
 * -EBADMSG: damaged, or no catalog; -EBUSY; -ECANCELED; -ENOMEM.
 */
int request_select_new(struct request_select **sp,
		       const struct request_select_opts *opts);
void request_select_free(struct request_select *s);
/* As reporter_query_opts.image. */
bool request_select_image(void *arg, const char *image);
/* Whether a window, by its path, may have such samples. */
bool request_select_window(const struct request_select *s, const char *file);

/*
 * The span from the start of a process, "PID" (the latest one) or its id, to its end;
 * of one that runs, to now. 0; -ESRCH: no such process; or as above.
 */
int request_select_life(const char *path, const char *process, int64_t now,
			struct reporter_query_span *span);

/*
 * Runs 'sql', in which "$TERMS" stands for the condition of the terms on "image i" and
 * "process p", ?1 and ?2 for the span, and calls 'row' with its first two columns, a
 * number and a text; false ends it. 0; -EINVAL: a term that says nothing about
 * processes, 'wrong' is its key; or as above.
 */
struct request_select_rows {
	const char *sql;
	int version; /* in older catalogs there are no rows */
	int64_t values[2]; /* ?3 and ?4 */
	const char *text; /* ?5; may be NULL */
	bool (*row)(void *arg, int64_t number, const char *text);
	void *arg;
	const char *wrong;
};
int request_select_rows(const struct request_select_opts *opts,
			struct request_select_rows *rows);

#endif /* REPORTER_REQUEST_SELECT_H */
