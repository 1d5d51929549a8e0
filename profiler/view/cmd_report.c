// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_report: profd report. Profiles as a table and a tree of calls, or in the format of
 * another program; several are added up, and one can be subtracted. They are files, or
 * come from an archive: of a running profd, or of a directory.
 */
#include "profiler/view/ask.h"
#include "profiler/view/load.h"
#include "profiler/view/show.h"
#include "reporter/reporter.h"

static int report_files(struct ask *a, struct reporter_query **qp)
{
	const char *past = reporter_request_past(a->request);

	if (past)
		return cmd_usage("report",
				 "--%s: only of an archive, not of a FILE",
				 past);
	return load_files(a->request, a->o->args, a->o->nargs, qp);
}

static int report_open(struct ask *a, struct reporter_query **qp)
{
	const struct options *o = a->o;
	const char *catalog = reporter_request_catalog(a->request);
	int status;

	if (o->base.n && catalog)
		return cmd_usage("report",
				 "--%s: only of an archive, not of the FILE "
				 "of --base",
				 catalog);
	if (o->normalize && !o->base.n && !o->query_diff)
		return cmd_usage("report", "--normalize needs --base or "
					   "--diff");
	status = o->nargs ? report_files(a, qp) : ask_open(a, qp);
	for (size_t i = 0; i < o->base.n && !status; i++)
		status = load_add(*qp, o->base.items[i], true);
	if (!status)
		status = load_end(*qp);
	if (!status && o->normalize)
		reporter_query_normalize(*qp);
	return status;
}

int cmd_report(const struct options *o)
{
	struct reporter_query *q = NULL;
	struct ask ask;
	int status;

	if (o->nargs && o->query_archive)
		return cmd_usage("report", "a FILE or --archive, not both");
	if (o->report_output && !o->export)
		return cmd_usage("report", "-o needs --format");
	status = ask_init(&ask, "report", o);
	if (!status)
		status = report_open(&ask, &q);
	if (!status)
		status = show_select(q, o);
	if (!status)
		status = o->export ? show_export(q, o->export, o->report_output,
						 o->report_force)
				   : show_text(q, o);
	reporter_query_free(q);
	ask_fini(&ask);
	return status;
}
