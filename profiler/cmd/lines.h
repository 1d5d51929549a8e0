/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: answers of a running profd that are JSON, one object a line, and how
 * to print what stands in them: it is what watched processes say of themselves,
 * so nothing that a terminal would obey is printed.
 */
#ifndef PROFILER_LINES_H
#define PROFILER_LINES_H

#include <jansson.h>
#include <time.h>

#include "base/base.h"

/*
 * The longest line that is taken, in bytes. The server bounds a line far below:
 * this is against one that is no profd. A longer one is left out.
 */
#define LINES_LONGEST (64 << 20)

struct lines {
	/* One object, borrowed; false ends it. */
	bool (*line)(void *arg, json_t *o);
	void *arg;
	/* During line(): the object as it came, without its newline. */
	const char *text;
	size_t len;
	uint64_t skipped; /* lines that were too long */
	struct strbuf part; /* of a line, the rest of which has not come */
	bool skipping; /* the rest of a line that is too long */
	const char *bad; /* why the answer is none; NULL: it is one */
};

/* A piece of the body; of struct client_request, with a struct lines. */
bool lines_body(void *arg, const void *data, size_t len);
/* At the end of it: false if a line was not whole. */
bool lines_end(struct lines *l);

/*
 * Prints the line at hand as it came; to a terminal as JSON with nothing beyond
 * ASCII in it. False: standard output cannot be written.
 */
bool lines_print_json(const struct lines *l);

/* A member's value; "" or 0 when there is none. */
const char *lines_str(const json_t *o, const char *key);
uint64_t lines_int(const json_t *o, const char *key);
bool lines_has(const json_t *o, const char *key);

/* Appends as text for a terminal: see base/text.h. */
void lines_text(struct strbuf *sb, const char *s);
/* The arguments, or the name in brackets as ps(1) has it. */
void lines_command(struct strbuf *sb, const json_t *o);
/*
 * Where it belongs, short: its container by twelve digits and its pod or, without
 * one, its unit; "" if none.
 */
void lines_where(struct strbuf *sb, const json_t *o);
/* "98%±3%", if a sample was to be expected at all. */
void lines_coverage(struct strbuf *sb, const json_t *o);
/* How it ended: "0", "3", "SIGSEGV", "SIGSEGV core"; "" if not known. */
void lines_status(struct strbuf *sb, const json_t *o);
/*
 * The time of day in the user's zone, to the microsecond, of a key that has RFC
 * 3339 in UTC; 'dated': with the date in front.
 */
void lines_clock(struct strbuf *sb, const json_t *o, const char *key,
		 bool dated);
/* Whether a time is of this calendar day in the user's zone. */
bool lines_is_today(time_t t);
/* The same as such; 0 when there is none. */
time_t lines_time(const json_t *o, const char *key);
/* Nanoseconds, short: "812us", "3.2ms", "12.34s". */
void lines_duration(struct strbuf *sb, uint64_t ns);
/* Characters of a UTF-8 text. */
size_t lines_width(const char *s);
/* Leaves so many characters behind byte 'start'. */
void lines_cut(struct strbuf *sb, size_t start, size_t width);

#endif /* PROFILER_LINES_H */
