/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: a JSON object while it is made, and its members. Text that processes control
 * is bounded by the line, and has no byte that is not UTF-8.
 */
#ifndef REPORTER_LEDGER_LINE_H
#define REPORTER_LEDGER_LINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Limits for the text in a line that processes control (arguments, paths and
 * names), in bytes of JSON: no line is longer than 32 KiB.
 */
#define LINE_TEXT_MAX (12 << 10)

struct line {
	json_t *o;
	int64_t wall; /* from boot time to wall clock time */
	size_t room; /* for text that processes control */
	bool event; /* its members have the names of events */
	bool cut; /* some text did not fit */
	bool failed; /* out of memory: members are missing */
};

/*
 * Measured once per answer and rounded to its accuracy, so that equal times are
 * equal in two answers.
 */
int64_t line_wall(void);
struct line line_new(int64_t wall);
/* Appends the line and drops its reference. */
void line_end(struct line *l, struct strbuf *sb);

/* 'value' passes to the line. */
void line_put(struct line *l, const char *key, json_t *value);
void line_int(struct line *l, const char *key, uint64_t value);
/* The bytes of (s, len) that fit, in whole characters; reduces '*room'. */
size_t line_fits(size_t *room, const char *s, size_t len);
void line_text(struct line *l, const char *key, const char *s, size_t len);
/* "" and NULL are left out. */
void line_str(struct line *l, const char *key, const char *s);
/* RFC 3339 in UTC, to the nanosecond; 0 is left out. */
void line_time(struct line *l, const char *key, uint64_t boottime);
/* The time by both clocks: ids contain boot time, which never steps. */
void line_moment(struct line *l, const char *key, uint64_t boottime);
/* The path, and what it shows; NULL is left out. */
void line_cgroup(struct line *l, const char *cgroup);

#endif /* REPORTER_LEDGER_LINE_H */
