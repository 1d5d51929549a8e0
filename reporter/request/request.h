/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: a query of an archive as its clients write it. Parameters of HTTP and options
 * of commands have the same names and are parsed here.
 *
 *	from, to	moments (reporter_moment_parse())
 *	last		a duration that ends now
 *	life		a process, by pid or id: from its start to its end
 *	pid, comm ...	terms (REPORTER_QUERY_TERMS), each as often as wanted
 *	by		a label whose values become root frames, several times; or
 *			"tree": the names of the ancestors of the process
 *	diff		FROM..TO: minus the samples of the same query in that span
 *	type		what it is of (REPORTER_QUERY_KINDS); cpu by default
 *	drop_marks	1: without frames that are no code
 *	inline		"expand": a location for each inlined frame
 *	traces		1: with the labels trace_id and span_id; so it is, too, with
 *			terms of traces
 *	format		of the answer (REPORTER_QUERY_FORMATS)
 *	sample_type	for formats with one value a stack
 *
 * Without a time it is the last hour; of a process or an image, all of the archive.
 */
#ifndef REPORTER_REQUEST_H
#define REPORTER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "reporter/query/query.h"

struct reporter_request;

/*
 * 'now': wall time, in nanoseconds; 'local': times without a zone are in that of this
 * process, else they are refused. -ENOMEM.
 */
int reporter_request_new(struct reporter_request **rp, int64_t now, bool local);
void reporter_request_free(struct reporter_request *r);
/*
 * 0; -ENOENT: no such key; -EEXIST: given twice; -EINVAL, and '*want' (static) is what
 * the value has to be; -E2BIG: too many; -ENOMEM.
 */
int reporter_request_set(struct reporter_request *r, const char *key,
			 const char *value, const char **want);
/* Its key number 'i', terms aside; NULL: there are not so many. */
const char *reporter_request_key(size_t i);
/* The first key that asks for the past, which only an archive has; NULL: none. */
const char *reporter_request_past(const struct reporter_request *r);
/* The first one that only a catalog can answer; NULL: none. */
const char *reporter_request_catalog(const struct reporter_request *r);
/* What it is of. */
enum reporter_query_kind
reporter_request_kind(const struct reporter_request *r);
/*
 * A key that cannot be combined with its type, because waits are sums of images and
 * their frames are no code; NULL: all can.
 */
const char *reporter_request_wrong(const struct reporter_request *r);
/* Whether samples have the labels of their traces, as roots too need them. */
bool reporter_request_traces(const struct reporter_request *r);
/* Whether the roots of stacks are of a catalog, so that its reader makes them. */
bool reporter_request_tree(const struct reporter_request *r);
/* The end of its span, as far as it is known before the request runs. */
int64_t reporter_request_end(const struct reporter_request *r);
/* Its format; pprof by default. */
enum reporter_query_format
reporter_request_format(const struct reporter_request *r);

/*
 * A query without an input yet, for other profiles than those of an archive; 'r' must
 * outlive it. -ENOMEM.
 */
int reporter_request_empty(const struct reporter_request *r,
			   struct reporter_query **qp);

struct reporter_request_run {
	const char *archive; /* its directory */
	/* Called before each window is read, and now and then; false: -ECANCELED. */
	bool (*progress)(void *arg, size_t done, size_t all);
	void *arg;
	struct reporter_query_archive found; /* set */
	char why[512]; /* a line about an error */
};

/*
 * The merged profile, to be freed before 'r', with the sample type chosen. On an error run->why
 * says what is wrong: -EINVAL: the request, as a whole; -ESRCH: there is no such
 * process; -ENODATA: the archive has no window of that time; -ENOENT: no archive, or
 * no catalog; -ECANCELED; others. Any thread.
 */
int reporter_request_run(const struct reporter_request *r,
			 struct reporter_request_run *run,
			 struct reporter_query **qp);

/*
 * A query for the answer of a server to this request: what only a catalog can answer is
 * done. -ENOMEM.
 */
int reporter_request_answer(const struct reporter_request *r,
			    struct reporter_query **qp);

/* --- export: windows as an archive of their own ------------------------------------ */

struct reporter_export {
	const char *path; /* the directory, which is made */
	bool force; /* it may have files, which are replaced */
	/* Set. */
	size_t windows, times; /* copied, and side files of them */
	uint64_t bytes;
	bool catalog; /* the archive has one */
};

/*
 * Copies the windows of the request's time with their side files, and the rows of the
 * catalog that they need: those of the processes that have samples in them, and their
 * ancestors. Each file appears whole or not at all, the catalog at the end. -EEXIST: the
 * directory is not empty; -EBUSY: a profd writes to it; -EPERM: others could; else as
 * reporter_request_run(). Any thread.
 */
int reporter_export_run(const struct reporter_request *r,
			struct reporter_request_run *run,
			struct reporter_export *to);

/* --- paths: where the time of a span of a thread went ----------------------------- */

struct reporter_why {
	struct abi_key
		key; /* without start_boottime: of the last one with that pid */
	uint32_t tid; /* 0: the first thread of the process */
	int64_t from, to; /* wall time, ns */
};

/* "PID", or the id of a process. 0 or -EINVAL. */
int reporter_why_process(struct reporter_why *why, const char *text);
/*
 * The path of a thread (reporter/ledger/why.h) by the long waits that the archive has, as
 * lines of JSON, see reporter/ledger/step.h. Errors as of reporter_request_run(). Any
 * thread.
 */
int reporter_why_run(const struct reporter_why *why,
		     struct reporter_request_run *run, struct strbuf *out);

/* --- lists: what the catalog knows, as JSON --------------------------------------- */

enum reporter_list_kind {
	REPORTER_LIST_WINDOWS,
	REPORTER_LIST_PROCESSES,
	REPORTER_LIST_PROCESS, /* one, whole */
};

struct reporter_list {
	enum reporter_list_kind kind;
	const char
		*process; /* of LIST_PROCESS: a pid (the last such), or an id */
	unsigned int limit; /* objects; 0: 1,000 */
	int64_t after; /* "next" of the answer before; 0: from the newest on */
};

/*
 * As reporter_request_set(), for a list: times, terms that the catalog knows, and
 *
 *	limit	objects of one answer, 10,000 at most
 *	after	the "next" of the answer before
 */
int reporter_list_set(struct reporter_request *r, struct reporter_list *list,
		      const char *key, const char *value, const char **want);
/* The same for a list. */
const char *reporter_list_key(size_t i);
/*
 * One object of JSON, with an array of objects (the newest first) and "next", null after
 * the last one; or a process with its images, ancestors, children and windows. Errors as
 * of reporter_request_run(). Any thread.
 */
int reporter_list_run(const struct reporter_request *r,
		      const struct reporter_list *list,
		      struct reporter_request_run *run, struct strbuf *out);

#endif /* REPORTER_REQUEST_H */
