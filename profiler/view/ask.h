/* SPDX-License-Identifier: Apache-2.0 */
/* ask: the options of queries, which say what is wanted of the past (profd(8), QUERIES). */
#ifndef PROFILER_ASK_H
#define PROFILER_ASK_H

#include "profiler/cmd/cmd.h"

struct ask {
	const struct options *o;
	const char *command;
	struct reporter_request *request;
	/*
	 * The same for the server: "&key=value" each, without times of this zone and
	 * names of users of this host; and what changes the form of the answer.
	 */
	struct strbuf url, form;
	uint64_t begin; /* clock_awake_ns() */
	bool drawn; /* a line of progress is on the terminal */
	int64_t now; /* wall time, ns */
};

/* An exit status, after a message. ask_fini() is due either way. */
int ask_init(struct ask *a, const char *command, const struct options *o);
void ask_fini(struct ask *a);
/* Adds a term, "pid" for example. An exit status, after a message. */
int ask_term(struct ask *a, const char *key, const char *value);
/* Whether there is a time, a term or an archive. */
bool ask_given(const struct options *o);

/*
 * The profile from the archive in o->query_archive; '*qp' is to be freed before 'a'. An
 * exit status, after a message.
 */
int ask_archive(struct ask *a, struct reporter_query **qp);
/* The same, or from a running profd if there is no such option. */
int ask_open(struct ask *a, struct reporter_query **qp);

/* As reporter_request_run.progress, of 'a': a line on the terminal. */
bool ask_progress(void *arg, size_t done, size_t all);
/* Ends that line. An exit status, after a message of 'err'. */
int ask_result(struct ask *a, const struct reporter_request_run *run, int err);

#endif /* PROFILER_ASK_H */
