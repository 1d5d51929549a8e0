// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_export: profd export DIR. Profiles of a time from the archive of this host, with
 * side files and rows of the catalog, as an archive in DIR. A running profd says where
 * its archive is, and writes what it has up to now first.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/view/ask.h"
#include "profiler/view/load.h"
#include "reporter/reporter.h"

/* The archive of a running profd, to be freed. An exit status, after a message. */
static int export_server(struct ask *a, char **dir)
{
	struct load_get get = { .o = a->o };
	struct strbuf path = STRBUF_INIT;
	const char *text = NULL;
	json_t *answer;
	int err = -ENOMEM;

	if (strncmp(a->o->server, "unix:", 5))
		return cmd_usage("export", "the archive has to be on this "
					   "host: --archive DIR");
	strbuf_puts(&path, "/api/windows?limit=1");
	strbuf_puts(&path, strbuf_str(&a->url));
	get.path = strbuf_str(&path);
	if (get.path)
		err = load_get(&get);
	strbuf_fini(&path);
	answer = err ? NULL : json_loadb(get.body.data, get.body.len, 0, NULL);
	text = json_string_value(json_object_get(answer, "archive"));
	*dir = text ? strdup(text) : NULL;
	json_decref(answer);
	strbuf_fini(&get.body);
	if (err)
		return cmd_fail("%s", *get.msg ? get.msg : strerror(-err));
	return *dir ? 0
		    : cmd_fail("%s: its answer does not have the archive",
			       a->o->server);
}

static void export_report(const struct options *o,
			  const struct reporter_export *to)
{
	if (!to->catalog)
		fprintf(stderr,
			"profd: the archive has no catalog: nothing of "
			"processes is in %s\n",
			to->path);
	if (to->times < to->windows)
		fprintf(stderr,
			"profd: %zu of %zu windows have no times of samples\n",
			to->windows - to->times, to->windows);
	if (!o->quiet)
		fprintf(stderr, "profd: %zu windows, %" PRIu64 " bytes, %s\n",
			to->windows, to->bytes, to->path);
}

int cmd_export(const struct options *o)
{
	struct reporter_export to = { .force = o->export_force };
	struct reporter_request_run run = { .progress = ask_progress };
	struct ask ask;
	char *dir = NULL;
	int status;

	if (o->nargs != 1)
		return cmd_usage("export", "one directory is needed");
	to.path = o->args[0];
	status = ask_init(&ask, "export", o);
	if (!status && !o->query_archive)
		status = export_server(&ask, &dir);
	if (!status) {
		run.archive = o->query_archive ? o->query_archive : dir;
		run.arg = &ask;
		status =
			ask_result(&ask, &run,
				   reporter_export_run(ask.request, &run, &to));
	}
	if (!status)
		export_report(o, &to);
	ask_fini(&ask);
	free(dir);
	return status;
}
