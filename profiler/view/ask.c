// SPDX-License-Identifier: Apache-2.0
/* ask: see profiler/view/ask.h. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/view/ask.h"
#include "profiler/cmd/client.h"
#include "profiler/view/load.h"

/* A query that takes longer shows its progress. */
#define ASK_QUIET_NS CLOCK_NSEC_PER_SEC

/* --- the request -------------------------------------------------------------- */

static int ask_put(struct strbuf *url, const char *key, const char *value)
{
	strbuf_printf(url, "&%s=", key);
	client_escape(url, value);
	return url->failed ? cmd_fail("%s", strerror(ENOMEM)) : 0;
}

/* 'option': as the user knows it. */
static int ask_set(struct ask *a, const char *option, const char *key,
		   const char *value)
{
	const char *want;
	int err = reporter_request_set(a->request, key, value, &want);

	if (err == -EINVAL)
		return cmd_usage(a->command, "--%s '%s': must be %s", option,
				 value, want);
	return err ? cmd_usage(a->command, "--%s: %s", option,
			       err == -E2BIG ? "too many" : strerror(-err))
		   : 0;
}

#define ASK_MOMENT_MAX 48

/* The server takes times with a zone only. 'value' has been checked. */
static void ask_seconds(const struct ask *a, const char *value,
			char text[ASK_MOMENT_MAX])
{
	int64_t at = 0;

	reporter_moment_parse(value, a->now, true, &at);
	snprintf(text, ASK_MOMENT_MAX, "%" PRId64 ".%09" PRId64,
		 at / (int64_t)CLOCK_NSEC_PER_SEC,
		 at % (int64_t)CLOCK_NSEC_PER_SEC);
}

static int ask_moment(struct ask *a, const char *key, const char *value)
{
	int status = ask_set(a, key, key, value);
	char text[ASK_MOMENT_MAX];

	if (status)
		return status;
	ask_seconds(a, value, text);
	return ask_put(&a->url, key, text);
}

/* FROM..TO */
static int ask_diff(struct ask *a, const char *value)
{
	char from[ASK_MOMENT_MAX], to[ASK_MOMENT_MAX];
	char text[2 * ASK_MOMENT_MAX + 2];
	int status = ask_set(a, "diff", "diff", value);
	char *first = status ? NULL : strdup(value);

	if (!first)
		return status ? status : cmd_fail("%s", strerror(ENOMEM));
	*strstr(first, "..") = '\0';
	ask_seconds(a, first, from);
	ask_seconds(a, strstr(value, "..") + 2, to);
	free(first);
	snprintf(text, sizeof(text), "%s..%s", from, to);
	return ask_put(&a->url, "diff", text);
}

int ask_term(struct ask *a, const char *key, const char *value)
{
	int status = ask_set(a, key, key, value);

	return status ? status : ask_put(&a->url, key, value);
}

static int ask_times(struct ask *a)
{
	const struct options *o = a->o;
	int status = 0;

	if (o->query_from)
		status = ask_moment(a, "from", o->query_from);
	if (!status && o->query_to)
		status = ask_moment(a, "to", o->query_to);
	if (!status && o->query_diff)
		status = ask_diff(a, o->query_diff);
	if (!status && o->query_last)
		status = ask_term(a, "last", o->query_last);
	if (!status && o->query_life)
		status = ask_term(a, "life", o->query_life);
	if (!status && o->query_type)
		status = ask_term(a, "type", o->query_type);
	return status;
}

/* The uid of a user's name; anything else as it is. */
static const char *ask_uid(const char *value, char text[32])
{
	const char *name = value + (*value == '!');
	const struct passwd *pw = getpwnam(name);

	if (!pw)
		return value;
	snprintf(text, 32, "%.*s%u", (int)(name - value), value, pw->pw_uid);
	return text;
}

static int ask_terms_of(struct ask *a, const char *key, bool negated,
			const struct options_strings *values)
{
	bool user = !strcmp(key, "user");
	char option[32], uid[32];
	const char *value;
	int status = 0;

	snprintf(option, sizeof(option), "%s%s", negated ? "not-" : "", key);
	for (size_t i = 0; i < values->n && !status; i++) {
		value = values->items[i];
		if (user)
			value = ask_uid(value, uid);
		status = ask_term(a, option, value);
	}
	return status;
}

static int ask_terms(struct ask *a)
{
	int status = 0;

#define X(key, matcher)                                                   \
	if (!status)                                                      \
		status = ask_terms_of(a, #key, false, &a->o->only_##key); \
	if (!status)                                                      \
		status = ask_terms_of(a, #key, true, &a->o->not_##key);
	REPORTER_QUERY_TERMS(X)
#undef X
	return status;
}

static int ask_form(struct ask *a, const char *option, const char *key,
		    const char *value)
{
	int status = ask_set(a, option, key, value);

	return status ? status : ask_put(&a->form, key, value);
}

static int ask_forms(struct ask *a)
{
	const struct options *o = a->o;
	int status = 0;

	if (o->drop_marks)
		status = ask_form(a, "drop-marks", "drop_marks", "1");
	if (!status && o->traces)
		status = ask_set(a, "traces", "traces", "1");
	if (!status && o->report_inline)
		status = ask_form(a, "inline", "inline", o->report_inline);
	if (!status && o->sample_type)
		status = ask_form(a, "sample-type", "sample_type",
				  o->sample_type);
	for (size_t i = 0; i < o->report_by.n && !status; i++)
		status = ask_form(a, "by", "by", o->report_by.items[i]);
	/* Only the server has them. */
	if (!status && reporter_request_traces(a->request))
		status = ask_put(&a->url, "traces", "1");
	return status;
}

static int ask_check(const struct ask *a)
{
	const char *wrong = reporter_request_wrong(a->request);

	if (!wrong)
		return 0;
	return cmd_usage(a->command, "--%s: not with --type %s",
			 strcmp(wrong, "drop_marks") ? wrong : "drop-marks",
			 a->o->query_type);
}

bool ask_given(const struct options *o)
{
	size_t n = 0;

#define X(key, matcher) n += o->only_##key.n + o->not_##key.n;
	REPORTER_QUERY_TERMS(X)
#undef X
	return n || o->query_archive || o->query_from || o->query_to ||
	       o->query_last || o->query_life;
}

int ask_init(struct ask *a, const char *command, const struct options *o)
{
	int status;

	*a = (struct ask){ .o = o, .command = command };
	a->begin = clock_awake_ns();
	a->now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns();
	if (reporter_request_new(&a->request, a->now, true))
		return cmd_fail("%s", strerror(ENOMEM));
	status = ask_times(a);
	if (!status)
		status = ask_terms(a);
	if (!status)
		status = ask_forms(a);
	return status ? status : ask_check(a);
}

void ask_fini(struct ask *a)
{
	reporter_request_free(a->request);
	strbuf_fini(&a->url);
	strbuf_fini(&a->form);
}

/* --- an archive on this host ---------------------------------------------------- */

bool ask_progress(void *arg, size_t done, size_t all)
{
	struct ask *a = arg;

	if (!all || a->o->quiet || !isatty(STDERR_FILENO) ||
	    clock_awake_ns() - a->begin < ASK_QUIET_NS)
		return true;
	a->drawn = true;
	fprintf(stderr, "\rprofd: %zu of %zu windows\033[K", done, all);
	return true;
}

/* What makes the answer less exact than it seems. */
static void ask_warn(const struct reporter_query_archive *found)
{
	const struct {
		size_t n;
		const char *text;
	} notes[] = {
		{ found->damaged, "cannot be read, and are left out" },
		{ found->whole,
		  "have no times of samples or are of waits, and are taken "
		  "whole" },
		{ found->again,
		  "are of a time that the clock had twice: both are in" },
		{ found->without, "have no waits, and are left out" },
		{ found->untraced,
		  "have no times of samples, so no ids of traces" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		if (notes[i].n)
			fprintf(stderr, "profd: %zu of %zu windows %s\n",
				notes[i].n, found->windows, notes[i].text);
}

int ask_result(struct ask *a, const struct reporter_request_run *run, int err)
{
	if (a->drawn)
		fputs("\r\033[K", stderr);
	a->drawn = false;
	if (err == -EINVAL)
		return cmd_usage(a->command, "%s", run->why);
	return err ? cmd_fail("%s", run->why) : 0;
}

int ask_archive(struct ask *a, struct reporter_query **qp)
{
	struct reporter_request_run run = {
		.archive = a->o->query_archive,
		.progress = ask_progress,
		.arg = a,
	};
	int err = reporter_request_run(a->request, &run, qp);

	err = ask_result(a, &run, err);
	if (err)
		return err;
	if (!a->o->quiet)
		ask_warn(&run.found);
	return 0;
}

/* --- a running profd ---------------------------------------------------------------- */

static void ask_path(const struct ask *a, struct strbuf *path)
{
	strbuf_puts(path, "/api/profile?format=pprof");
	strbuf_puts(path, strbuf_str(&a->url));
	/* What the server can do as well is done here, but for the ancestors. */
	if (reporter_request_tree(a->request))
		strbuf_puts(path, strbuf_str(&a->form));
}

static int ask_server(struct ask *a, struct reporter_query **qp)
{
	struct load_get get = { .o = a->o };
	struct strbuf path = STRBUF_INIT;
	int err = -ENOMEM;

	*qp = NULL;
	ask_path(a, &path);
	get.path = strbuf_str(&path);
	if (get.path)
		err = load_server(&get, a->request, qp);
	strbuf_fini(&get.body);
	strbuf_fini(&path);
	return err ? cmd_fail("%s", *get.msg ? get.msg : strerror(-err)) : 0;
}

int ask_open(struct ask *a, struct reporter_query **qp)
{
	return a->o->query_archive ? ask_archive(a, qp) : ask_server(a, qp);
}
