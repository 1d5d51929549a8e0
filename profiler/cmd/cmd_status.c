// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_status: profd status. The state of a running profd, most important first:
 * its health, the share of the CPU time that has samples, the share of complete
 * stacks, and the losses. Counts that are zero are summed up in one line.
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
#include "profiler/metrics.h"
#include "tracehandler/tracehandler.h"

/* The column of the values; a longer key moves only its own value. */
#define STATUS_COLUMN 32
/* Bytes of an answer; profd's are much shorter. */
#define STATUS_LONGEST (16 << 20)

enum status_group {
	STATUS_HEAD, /* part of the first lines */
	STATUS_STACKS, /* counts of incomplete stacks, by reason */
	STATUS_LOSSES, /* counts of losses, by cause */
	STATUS_OTHER,
};

struct status_line {
	char *key, *value; /* in the text */
	enum status_group group;
	bool number;
	uint64_t count; /* the value, if it is a number */
};

struct status {
	struct strbuf text;
	struct status_line *lines;
	size_t n;
};

/* Keys of the counts of stacks. The first one counts complete stacks. */
static const char *const status_stacks[] = {
#define X(name, gauge, help) help,
	TRACE_STACK_STATS(X)
#undef X
};

/* --- the server's lines ---------------------------------------------------- */

static bool status_body(void *arg, const void *data, size_t len)
{
	struct strbuf *sb = arg;

	strbuf_add(sb, data, len);
	return !sb->failed && sb->len <= STATUS_LONGEST;
}

static int status_get(const struct options *o, const char *path,
		      struct strbuf *out, char *msg, size_t len)
{
	struct client_request req = {
		.path = path,
		.body = status_body,
		.arg = out,
	};

	cmd_use_server(o, &req);
	return client_get(&req, msg, len);
}

static bool is_number(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/*
 * "key: value". The key of a number may contain ": ", except "health", the reasons
 * of which may end in a number.
 */
static bool status_split(struct status_line *l, char *line)
{
	char *at = strstr(line, ": "), *next;

	if (!at)
		return false;
	next = strncmp(line, "health: ", 8) ? at : NULL;
	for (; next; next = strstr(next + 1, ": "))
		if (is_number(next + 2))
			at = next;
	*at = '\0';
	l->key = line;
	l->value = at + 2;
	l->number = is_number(l->value);
	l->count = l->number ? strtoull(l->value, NULL, 10) : 0;
	return true;
}

static enum status_group status_group(const struct status_line *l)
{
	const char *const head[] = {
		"health",  "sampling",	     "source",
		"samples", status_stacks[0], losses_names()[LOSS_MISSED]
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(head); i++)
		if (!strcmp(l->key, head[i]))
			return STATUS_HEAD;
	for (i = 1; i < ARRAY_SIZE(status_stacks); i++)
		if (!strcmp(l->key, status_stacks[i]))
			return STATUS_STACKS;
	return l->number ? STATUS_LOSSES : STATUS_OTHER;
}

static int status_parse(struct status *st)
{
	struct status_line *l;
	size_t cap = 0;
	char *p = st->text.data, *eol;

	for (; p && (eol = strchr(p, '\n')); p = eol + 1) {
		*eol = '\0';
		if (VECTOR_ROOM(st->lines, st->n, cap))
			return -ENOMEM;
		l = &st->lines[st->n];
		if (!status_split(l, p))
			continue;
		l->group = status_group(l);
		st->n++;
	}
	return 0;
}

static const struct status_line *status_find(const struct status *st,
					     const char *key)
{
	static const struct status_line none = { .value = "" };
	size_t i;

	for (i = 0; i < st->n; i++)
		if (!strcmp(st->lines[i].key, key))
			return &st->lines[i];
	return &none;
}

/* --- as text --------------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
status_put(struct strbuf *sb, const char *key, const char *fmt, ...)
{
	int n, width = lines_width(key);
	char *value;
	va_list ap;

	va_start(ap, fmt);
	n = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (n < 0) {
		sb->failed = true;
		return;
	}
	lines_text(sb, key);
	strbuf_printf(sb, "%*s", MAX(STATUS_COLUMN - width, 1), "");
	lines_text(sb, value);
	strbuf_puts(sb, "\n");
	free(value);
}

/* The lines of a group that are not zero, the first after 'title'. */
static size_t status_put_group(const struct status *st, enum status_group group,
			       const char *title, struct strbuf *sb)
{
	const struct status_line *l;
	size_t n = 0;

	for (l = st->lines; l < st->lines + st->n; l++)
		if (l->group == group && l->count)
			status_put(sb, n++ ? "" : title, "%s: %s", l->key,
				   l->value);
	return n;
}

static double status_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void status_put_sampling(const struct status *st, struct strbuf *sb)
{
	const char *how = status_find(st, "sampling")->value;
	const char *by = status_find(st, "source")->value;
	uint64_t samples = status_find(st, "samples")->count;
	uint64_t missing = status_find(st, losses_names()[LOSS_MISSED])->count;

	if (*how)
		status_put(sb, "sampling", "%s%s%s", how, *by ? ", by " : "",
			   by);
	if (samples)
		status_put(sb, "coverage",
			   "%.1f %% of the busy CPU time: %" PRIu64
			   " samples, %" PRIu64 " missing",
			   status_percent(samples, samples + missing), samples,
			   missing);
	else
		status_put(sb, "coverage", "no samples yet");
}

static void status_put_stacks(const struct status *st, struct strbuf *sb)
{
	uint64_t whole = status_find(st, status_stacks[0])->count, all = whole;
	size_t i;

	for (i = 0; i < st->n; i++)
		if (st->lines[i].group == STATUS_STACKS)
			all += st->lines[i].count;
	if (all)
		status_put(sb, "user stacks",
			   "%.1f %% complete: %" PRIu64 " of %" PRIu64,
			   status_percent(whole, all), whole, all);
	status_put_group(st, STATUS_STACKS, "", sb);
}

static void status_text(const struct status *st, struct strbuf *sb)
{
	const struct status_line *l;
	size_t zeros = 0;

	status_put(sb, "health", "%s", status_find(st, "health")->value);
	status_put_sampling(st, sb);
	status_put_stacks(st, sb);
	if (!status_put_group(st, STATUS_LOSSES, "losses", sb))
		status_put(sb, "losses", "none");
	for (l = st->lines; l < st->lines + st->n; l++) {
		if (l->group == STATUS_OTHER)
			status_put(sb, l->key, "%s", l->value);
		zeros += l->number && !l->count;
	}
	if (zeros)
		status_put(sb, "zero",
			   "%zu more counts of losses and incomplete stacks "
			   "(profd status --json lists them)",
			   zeros);
}

/* --- the command ------------------------------------------------------------ */

static int status_summary(const struct options *o, struct strbuf *out,
			  char *msg, size_t len)
{
	struct status st = { .n = 0 };
	int err = status_get(o, "/status", &st.text, msg, len);

	if (!err)
		err = st.text.failed ? -ENOMEM : status_parse(&st);
	if (!err)
		status_text(&st, out);
	strbuf_fini(&st.text);
	free(st.lines);
	return err;
}

int cmd_status(const struct options *o)
{
	struct strbuf out = STRBUF_INIT;
	char msg[768] = "out of memory";
	int err = o->json ? status_get(o, "/status?format=json", &out, msg,
				       sizeof(msg))
			  : status_summary(o, &out, msg, sizeof(msg));

	if (!err)
		return cmd_print(&out);
	strbuf_fini(&out);
	return cmd_fail("%s", msg);
}
