/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines: answers of a running profd that are JSON, one object a line, and their
 * members as text. Watched processes choose many of the strings, so control
 * characters are escaped (base/text.h).
 */
#ifndef PROFILER_LINES_H
#define PROFILER_LINES_H

#include <jansson.h>
#include <time.h>

#include "base/base.h"

/*
 * Longer lines, in bytes, are skipped. profd's are much shorter: this protects
 * from other servers.
 */
#define LINES_LONGEST (64 << 20)

struct lines {
	/* One object, borrowed; false ends the request. */
	bool (*line)(void *arg, json_t *o);
	void *arg;
	bool events; /* keys of events become those of processes */
	/* During line(): the object as received, without the newline. */
	const char *text;
	size_t len;
	uint64_t skipped; /* lines that were too long */
	struct strbuf part; /* the line that is not complete yet */
	bool skipping; /* the rest of a line that is too long */
	const char *bad; /* why the answer cannot be used; or NULL */
};

/* A piece of the body; of struct client_request, with a struct lines. */
bool lines_body(void *arg, const void *data, size_t len);
/* At the end of the body: false if the last line is not complete. */
bool lines_end(struct lines *l);

/* Writes text to standard output and frees it. False: it cannot be written. */
bool lines_print(struct strbuf *sb);
/*
 * Prints the current line as received; to a terminal as JSON with ASCII characters
 * only. False: standard output cannot be written.
 */
bool lines_print_json(const struct lines *l);

/* A member's value; "" or 0 if there is none. */
const char *lines_str(const json_t *o, const char *key);
uint64_t lines_int(const json_t *o, const char *key);
bool lines_has(const json_t *o, const char *key);

/* Appends text for a terminal: see base/text.h. */
void lines_text(struct strbuf *sb, const char *s);
/* The arguments, or the name in brackets like ps(1). */
void lines_command(struct strbuf *sb, const json_t *o);
/* The container, with twelve digits of an id, or else the systemd unit, or "". */
void lines_where(struct strbuf *sb, const json_t *o);
/* "98%±3%"; "" if less than one sample was expected. */
void lines_coverage(struct strbuf *sb, const json_t *o);
/* The exit status: "0", "3", "SIGSEGV", "SIGSEGV core"; "" if not known. */
void lines_status(struct strbuf *sb, const json_t *o);
/*
 * The local time, to the microsecond, of a member that has RFC 3339 in UTC;
 * 'dated': with the date.
 */
void lines_clock(struct strbuf *sb, const json_t *o, const char *key,
		 bool dated);
/* Whether a time is on the current day, in local time. */
bool lines_is_today(time_t t);
/* The time of such a member; 0 if there is none. */
time_t lines_time(const json_t *o, const char *key);
/* Nanoseconds, short: "812us", "3.2ms", "12.34s". */
void lines_duration(struct strbuf *sb, uint64_t ns);
/* Characters of a UTF-8 text, which may be NULL. */
size_t lines_width(const char *s);
/* Keeps at most 'width' characters after byte 'start'. */
void lines_cut(struct strbuf *sb, size_t start, size_t width);

#endif /* PROFILER_LINES_H */
