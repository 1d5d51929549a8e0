/* SPDX-License-Identifier: Apache-2.0 */
/* show: a profile as a table and a tree of calls, by the options of report and diff. */
#ifndef PROFILER_SHOW_H
#define PROFILER_SHOW_H

#include "profiler/cmd/cmd.h"

/* Chooses --sample-type. An exit status, after a message with those there are. */
int show_select(struct reporter_query *q, const struct options *o);
/* An exit status, after a message. */
int show_text(struct reporter_query *q, const struct options *o);
/*
 * Writes 'format' to 'path', whole or not at all; NULL: to standard output. An exit
 * status, after a message.
 */
int show_export(struct reporter_query *q, enum reporter_query_format format,
		const char *path, bool force);

#endif /* PROFILER_SHOW_H */
