// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_status: profd status. What a running profd says of itself, first what
 * matters: whether it works, how much of the CPU time it has samples of, how many
 * stacks are whole, what was lost. Counts that are zero are one line.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"

/* Longer keys do not move the column of the values. */
#define STATUS_COLUMN 32
/* An answer beyond it is no profd's. */
#define STATUS_LONGEST (16 << 20)

enum status_group {
	STATUS_HEAD, /* printed as a part of the first lines */
	STATUS_STACKS, /* counts of stacks, by how they ended */
	STATUS_LOSSES, /* counts of what was lost */
	STATUS_OTHER,
};

struct status_line {
	char *key, *value; /* into the text */
	enum status_group group;
	bool number;
};

struct status {
	struct strbuf text;
	struct status_line *lines;
	size_t n;
};

static bool status_body(void *arg, const void *data, size_t len)
{
	struct strbuf *sb = arg;

	strbuf_add(sb, data, len);
	return !sb->failed && sb->len <= STATUS_LONGEST;
}

/* --- the server's lines ---------------------------------------------------- */

static bool is_number(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/* "key: value"; where the value is a number, the key may have colons. */
static bool status_split(struct status_line *l, char *line)
{
	char *at = strstr(line, ": "), *next;

	if (!at)
		return false;
	for (next = at; next; next = strstr(next + 1, ": "))
		if (is_number(next + 2))
			at = next;
	*at = '\0';
	l->key = line;
	l->value = at + 2;
	l->number = is_number(l->value);
	return true;
}

static enum status_group status_group(const struct status_line *l)
{
	static const char *const head[] = { "sampling", "source", "samples" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(head); i++)
		if (!strcmp(l->key, head[i]))
			return STATUS_HEAD;
	if (!l->number)
		return STATUS_OTHER;
	if (!strncmp(l->key, "user stacks ", 12) ||
	    !strncmp(l->key, "samples inside ", 15))
		return STATUS_STACKS;
	return STATUS_LOSSES;
}

static int status_parse(struct status *st)
{
	char *p, *eol, *end = st->text.data + st->text.len;
	size_t n = 0;

	for (p = st->text.data; p < end; p++)
		n += *p == '\n';
	st->lines = calloc(n + 1, sizeof(*st->lines));
	if (!st->lines)
		return -ENOMEM;
	for (p = st->text.data; p < end && (eol = memchr(p, '\n', end - p));
	     p = eol + 1) {
		*eol = '\0';
		if (!status_split(&st->lines[st->n], p))
			continue;
		st->lines[st->n].group = status_group(&st->lines[st->n]);
		st->n++;
	}
	return 0;
}

static const struct status_line *status_find(const struct status *st,
					     const char *key)
{
	size_t i;

	for (i = 0; i < st->n; i++)
		if (!strcmp(st->lines[i].key, key))
			return &st->lines[i];
	return NULL;
}

static uint64_t status_count(const struct status *st, const char *key)
{
	const struct status_line *l = status_find(st, key);

	return l && l->number ? strtoull(l->value, NULL, 10) : 0;
}

/* --- for people ------------------------------------------------------------ */

static void status_put(struct strbuf *sb, const char *key, const char *value)
{
	size_t start = sb->len, width;

	lines_text(sb, key);
	width = sb->failed ? 0 : lines_width(sb->data + start);
	strbuf_printf(sb, "%*s",
		      width < STATUS_COLUMN ? (int)(STATUS_COLUMN - width) : 1,
		      "");
	lines_text(sb, value);
	strbuf_puts(sb, "\n");
}

static void status_putf(struct strbuf *sb, const char *key, const char *fmt,
			...) __attribute__((format(printf, 3, 4)));

static void status_putf(struct strbuf *sb, const char *key, const char *fmt,
			...)
{
	char value[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	status_put(sb, key, value);
}

static double status_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void status_sampling(const struct status *st, struct strbuf *sb)
{
	const struct status_line *how = status_find(st, "sampling");
	const struct status_line *by = status_find(st, "source");

	if (how)
		status_putf(sb, "sampling", "%s%s%s", how->value,
			    by ? ", by " : "", by ? by->value : "");
}

static void status_coverage(const struct status *st, struct strbuf *sb)
{
	uint64_t samples = status_count(st, "samples");
	uint64_t missing =
		status_count(st, "samples missing against busy CPU time x Hz");

	if (samples)
		status_putf(sb, "coverage",
			    "%.1f %% of the busy CPU time: %" PRIu64
			    " samples, "
			    "%" PRIu64 " missing",
			    status_percent(samples, samples + missing), samples,
			    missing);
	else
		status_put(sb, "coverage", "no samples yet");
}

static void status_stacks(const struct status *st, struct strbuf *sb)
{
	uint64_t whole =
		status_count(st, "user stacks that reached their root");
	uint64_t all = 0;
	size_t i;

	for (i = 0; i < st->n; i++)
		if (st->lines[i].group == STATUS_STACKS)
			all += strtoull(st->lines[i].value, NULL, 10);
	if (all)
		status_putf(sb, "user stacks",
			    "%.1f %% whole: %" PRIu64 " of %" PRIu64,
			    status_percent(whole, all), whole, all);
	for (i = 0; i < st->n; i++)
		if (st->lines[i].group == STATUS_STACKS &&
		    strcmp(st->lines[i].value, "0") &&
		    strcmp(st->lines[i].key,
			   "user stacks that reached their root"))
			status_putf(sb, "", "%s: %s", st->lines[i].key,
				    st->lines[i].value);
}

/* What is missing was said with the coverage. */
static bool is_loss(const struct status_line *l)
{
	return l->group == STATUS_LOSSES && strcmp(l->value, "0") &&
	       strncmp(l->key, "samples missing ", 16);
}

static void status_losses(const struct status *st, struct strbuf *sb)
{
	size_t i, n = 0;

	for (i = 0; i < st->n; i++)
		if (is_loss(&st->lines[i]))
			status_putf(sb, n++ ? "" : "losses", "%s: %s",
				    st->lines[i].key, st->lines[i].value);
	if (!n)
		status_put(sb, "losses", "none");
}

static void status_others(const struct status *st, struct strbuf *sb)
{
	size_t i, zeros = 0;

	for (i = 0; i < st->n; i++) {
		const struct status_line *l = &st->lines[i];

		if (l->group == STATUS_OTHER && strcmp(l->key, "health"))
			status_put(sb, l->key, l->value);
		zeros += l->number && !strcmp(l->value, "0");
	}
	if (zeros)
		status_putf(sb, "zero",
			    "%zu more counts of losses and cut stacks "
			    "(profd status --json names them)",
			    zeros);
}

static void status_text(const struct status *st, const char *health,
			struct strbuf *sb)
{
	status_put(sb, "health", health);
	status_sampling(st, sb);
	status_coverage(st, sb);
	status_stacks(st, sb);
	status_losses(st, sb);
	status_others(st, sb);
}

/* --- in all ---------------------------------------------------------------- */

/*
 * "ok", "degraded: ..." or, when it is not well, what it says of that: then the
 * answer is an error, and says 503. -errno otherwise.
 */
static int status_health(const struct options *o, struct strbuf *health,
			 char *msg, size_t len)
{
	struct client_request req = {
		.server = o->server,
		.path = "/healthz",
		.body = status_body,
		.arg = health,
	};
	int err = client_get(&req, msg, len);
	const char *why;

	if (err == -EBADMSG && (why = strstr(msg, ": 503: "))) {
		strbuf_reset(health);
		strbuf_printf(health, "failing: %s", why + 7);
		return 0;
	}
	if (!err && health->len && health->data[health->len - 1] == '\n')
		health->data[--health->len] = '\0';
	return err;
}

/* What the server has for programs, as it is. */
static int status_json(const struct options *o, struct strbuf *out, char *msg,
		       size_t len)
{
	struct client_request req = {
		.server = o->server,
		.path = "/status?format=json",
		.body = status_body,
		.arg = out,
	};

	return client_get(&req, msg, len);
}

static int status_people(const struct options *o, struct strbuf *out, char *msg,
			 size_t len)
{
	struct strbuf health = STRBUF_INIT;
	struct status st = { .n = 0 };
	struct client_request req = {
		.server = o->server,
		.path = "/status",
		.body = status_body,
		.arg = &st.text,
	};
	int err;

	err = status_health(o, &health, msg, len);
	if (!err)
		err = client_get(&req, msg, len);
	if (!err)
		err = st.text.failed ? -ENOMEM : status_parse(&st);
	if (!err)
		status_text(&st, strbuf_str(&health), out);
	strbuf_fini(&health);
	strbuf_fini(&st.text);
	free(st.lines);
	return err;
}

int cmd_status(const struct options *o)
{
	struct strbuf out = STRBUF_INIT;
	char msg[768] = "out of memory";
	int err, status = 0;

	err = o->json ? status_json(o, &out, msg, sizeof(msg))
		      : status_people(o, &out, msg, sizeof(msg));
	if (err || out.failed)
		status = cmd_fail("%s", msg);
	else if (fputs(strbuf_str(&out), stdout) < 0 || fflush(stdout))
		status = cmd_fail("standard output cannot be written");
	strbuf_fini(&out);
	return status;
}
