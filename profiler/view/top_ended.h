/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top_ended: processes that end, as a running profd reports them. A profile has samples
 * of many that /processes has no more when the profile is there.
 */
#ifndef PROFILER_TOP_ENDED_H
#define PROFILER_TOP_ENDED_H

#include <jansson.h>

#include "profiler/view/top.h"

struct top_ended;

/* Begins to follow the server of 'o'; NULL: it cannot. */
struct top_ended *top_ended_new(const struct options *o);
void top_ended_free(struct top_ended *e);
/* Appends copies of the latest ones. 'e' may be NULL. */
void top_ended_add(struct top_ended *e, struct top_processes *ps);

/* top_process.c: of a line of /processes, or of the end of a process. False: no memory. */
bool top_process_read(struct top_process *p, const json_t *o);

#endif /* PROFILER_TOP_ENDED_H */
