/* SPDX-License-Identifier: Apache-2.0 */
/* put: what the commands of this room print of JSON lines in the same way. */
#ifndef PROFILER_TIMELINE_PUT_H
#define PROFILER_TIMELINE_PUT_H

#include <jansson.h>

#include "base/base.h"

/* "process 1234, recorded since ..., 7 steps, lost since then: none", with the newline. */
void timeline_put_header(struct strbuf *sb, const json_t *o, const char *what);
/* A member that is nanoseconds in a string; 0 if there is none. */
uint64_t timeline_ns(const json_t *o, const char *key);
/* Likewise as text; "" if there is none. */
void timeline_put_ns(struct strbuf *sb, const json_t *o, const char *key);
/* " futex in futex; woken by redis-server 12/14" */
void timeline_put_why(struct strbuf *sb, const json_t *o);

#endif /* PROFILER_TIMELINE_PUT_H */
