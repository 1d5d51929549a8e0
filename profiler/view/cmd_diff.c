// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_diff: profd diff A B. The samples of B minus those of A as a table, sorted by the
 * change, with the numbers of `go tool pprof -top -diff_base A B`. Each is a file, or a
 * time FROM..TO of the archive; options that choose samples apply to both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/view/ask.h"
#include "profiler/view/load.h"
#include "profiler/view/show.h"
#include "reporter/reporter.h"

static int diff_file(struct ask *a, char *path, struct reporter_query **qp)
{
	const char *past = reporter_request_past(a->request);

	return past ? cmd_usage("diff",
				"--%s: only of an archive, not of a FILE", past)
		    : load_files(a->request, &path, 1, qp);
}

/* A file, whatever its name, before a time. */
static bool diff_is_time(const char *what)
{
	return strcmp(what, "-") != 0 && access(what, F_OK) &&
	       strstr(what, "..");
}

/* The profile of a side, raw: one has the terms and roots of the request. */
static int diff_side(const struct options *o, char *what, void **data,
		     size_t *len)
{
	struct options side = *o;
	struct reporter_query *q = NULL;
	bool time = diff_is_time(what);
	char *from = strdup(what);
	struct ask ask;
	int err, status;

	if (!from)
		return cmd_fail("%s", strerror(ENOMEM));
	if (time) {
		side.query_to = strstr(what, "..") + 2;
		*strstr(from, "..") = '\0';
		side.query_from = from;
	}
	status = ask_init(&ask, "diff", &side);
	if (!status)
		status = time ? ask_open(&ask, &q) : diff_file(&ask, what, &q);
	if (!status) {
		err = reporter_query_data(q, REPORTER_QUERY_PPROF, REPORTER_RAW,
					  data, len);
		status = err ? cmd_fail("%s: %s", what, strerror(-err)) : 0;
	}
	reporter_query_free(q);
	ask_fini(&ask);
	free(from);
	return status;
}

static int diff_add(const struct options *o, struct reporter_query *q,
		    char *what, bool base)
{
	const char *why = NULL;
	void *data = NULL;
	size_t len = 0;
	int err, status = diff_side(o, what, &data, &len);

	if (status)
		return status;
	err = reporter_query_add(q, data, len, base, &why);
	free(data);
	return err ? cmd_fail("%s: %s", what, why ? why : strerror(-err)) : 0;
}

int cmd_diff(const struct options *o)
{
	static const struct reporter_query_opts all;
	struct reporter_query *q = NULL;
	int status;

	if (o->nargs != 2)
		return cmd_usage("diff", "two profiles are needed, A and B: "
					 "files or times FROM..TO");
	if (reporter_query_new(&q, &all))
		return cmd_fail("%s", strerror(ENOMEM));
	status = diff_add(o, q, o->args[1], false);
	if (!status)
		status = diff_add(o, q, o->args[0], true);
	if (!status && o->normalize)
		reporter_query_normalize(q);
	if (!status)
		status = show_select(q, o);
	if (!status)
		status = show_text(q, o);
	reporter_query_free(q);
	return status;
}
