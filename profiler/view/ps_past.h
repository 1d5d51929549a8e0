/* SPDX-License-Identifier: Apache-2.0 */
/* ps_past: the processes of the archive that a query chooses, for profd ps. */
#ifndef PROFILER_PS_PAST_H
#define PROFILER_PS_PAST_H

#include <jansson.h>

#include "profiler/view/ask.h"

/*
 * Passes each process, with the members of /processes that the table shows, to 'line'
 * as struct lines does; false is a lack of memory. An exit status, after a message; one
 * if there is no such process.
 */
int ps_past_read(struct ask *a, bool (*line)(void *arg, json_t *o), void *arg);
/* Prints them as /api/processes has them, one object a line, the newest first. */
int ps_past_json(struct ask *a);

#endif /* PROFILER_PS_PAST_H */
