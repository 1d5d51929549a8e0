// SPDX-License-Identifier: Apache-2.0
/* show: see profiler/view/show.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "profiler/view/show.h"
#include "reporter/reporter.h"

#define SHOW_LEAST 0.005 /* share of the total that a row needs */
#define SHOW_TABLE_ROWS 20
#define SHOW_TREE_ROWS 40

int show_select(struct reporter_query *q, const struct options *o)
{
	struct strbuf types = STRBUF_INIT;
	int status = 0;

	if (reporter_query_select(q, o->sample_type)) {
		reporter_query_types(q, &types);
		status = cmd_fail("no sample type '%s'; there are: %s",
				  o->sample_type ? o->sample_type : "",
				  strbuf_str(&types));
	}
	strbuf_fini(&types);
	return status;
}

static size_t show_width(const struct options *o)
{
	struct winsize ws;

	if (o->wide || !isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}

int show_text(struct reporter_query *q, const struct options *o)
{
	struct reporter_query_table t = {
		.by = o->rows ? o->rows : "function",
		.cum = o->report_sort == OPTIONS_COLUMN_CUM,
		/* A program sorts and cuts by itself. */
		.least = o->json ? 0 : SHOW_LEAST,
		.top = o->top || o->json ? o->top : SHOW_TABLE_ROWS,
		.width = show_width(o),
		.json = o->json,
	};
	struct strbuf out = STRBUF_INIT;
	int err = 0;

	if (!o->report_tree)
		err = reporter_query_table(q, &t, &out);
	if (!err && (o->report_tree || (!o->rows && !o->json))) {
		t.top = o->top ? o->top : SHOW_TREE_ROWS;
		strbuf_puts(&out, out.len ? "\n" : "");
		err = reporter_query_tree(q, &t, &out);
	}
	if (err) {
		strbuf_fini(&out);
		return cmd_fail("%s", strerror(-err));
	}
	err = cmd_print(&out);
	strbuf_fini(&out);
	return err;
}

int show_export(struct reporter_query *q, enum reporter_query_format format,
		const char *path, bool force)
{
	struct reporter_outfile file;
	int err;

	if (!path) {
		if (format == REPORTER_QUERY_PPROF && isatty(STDOUT_FILENO))
			return cmd_fail("standard output is a terminal: -o "
					"FILE writes to a file");
		err = reporter_query_write(q, STDOUT_FILENO, format,
					   REPORTER_GZIP);
		return err ? cmd_fail("standard output: %s", strerror(-err))
			   : 0;
	}
	if (!force && !access(path, F_OK))
		return cmd_fail("%s: exists (--force replaces it)", path);
	err = reporter_outfile_open(&file, path);
	if (!err) {
		err = reporter_query_write(q, file.fd, format, REPORTER_GZIP);
		if (!err)
			err = reporter_outfile_commit(&file);
		if (err)
			reporter_outfile_abort(&file);
		else
			reporter_outfile_fini(&file);
	}
	return err ? cmd_fail("%s: %s", path, strerror(-err)) : 0;
}
