/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: lists of the archive, windows or processes, that come in several answers: from
 * a running profd (/api/windows, /api/processes), or from a directory (--archive).
 */
#ifndef PROFILER_PAGES_H
#define PROFILER_PAGES_H

#include <jansson.h>

#include "profiler/view/ask.h"
#include "reporter/reporter.h"

/*
 * Reads all objects of 'kind', the newest first, of the times and terms of 'a', and
 * passes each, borrowed, to 'item', which returns an exit status; other than 0 ends it.
 * An exit status, after a message.
 */
int pages_read(struct ask *a, enum reporter_list_kind kind,
	       int (*item)(void *arg, json_t *o), void *arg);
/* An object as a line of JSON with ASCII characters only. */
void pages_json(struct strbuf *out, const json_t *o);

#endif /* PROFILER_PAGES_H */
