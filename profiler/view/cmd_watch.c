// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_watch: profd watch. Prints events of the kernel as they happen, one a line, by a
 * running profd; or the names of events and where they come from on this host.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/view/ask.h"
#include "profiler/view/pages.h"

static volatile sig_atomic_t watch_signal;

static void watch_on_signal(int signum)
{
	watch_signal = signum;
}

static bool watch_cancelled(void *arg)
{
	return watch_signal;
}

#define WATCH_TOLD_MAX 12 /* names in a line of standard error */
#define WATCH_COST_CALLS 500

struct view_watch {
	const struct options *o;
	double call_ns; /* a system call takes, before */
	struct ask ask;
	struct lines lines;
	struct strbuf path; /* of the request */
};

/* --- the list of names ---------------------------------------------------------- */

static void watch_list_json(struct strbuf *out, size_t i)
{
	struct strbuf hooks = STRBUF_INIT, arguments = STRBUF_INIT;
	const char *call = watch_name_call(i, &arguments);
	const struct watch_name *n = watch_name(i);
	json_t *line;

	watch_name_hooks(i, &hooks);
	line = json_pack(
		"{s:s, s:s, s:s, s:b, s:s, s:s, s:s*, s:s*, s:s*, s:s*}",
		"name", n->name, "published", n->published, "category",
		n->category, "by_fd", n->by_fd, "text", n->text, "hooks",
		hooks.data ?: "", "call", call, "arguments",
		call ? arguments.data ?: "" : NULL, "lack", watch_name_lack(i),
		"needs", watch_name_needs(i));
	pages_json(out, line);
	json_decref(line);
	strbuf_fini(&hooks);
	strbuf_fini(&arguments);
}

static void watch_list_event(struct strbuf *out, size_t i)
{
	const struct watch_name *n = watch_name(i);
	const char *lack = watch_name_lack(i), *needs = watch_name_needs(i);
	struct strbuf hooks = STRBUF_INIT;

	watch_name_hooks(i, &hooks);
	strbuf_printf(out, "%-20s %-9s %s\n", n->name, n->category, n->text);
	strbuf_printf(out, "%-30s %s%s%s%s%s\n", "", needs ? "needs " : "",
		      needs ?: "", hooks.data ?: "",
		      hooks.len && lack ? "; " : "", lack ?: "");
	strbuf_fini(&hooks);
}

/* Both events of a call in a line; false: the i-th is no enter of one. */
static bool watch_list_call(struct strbuf *out, size_t i)
{
	struct strbuf arguments = STRBUF_INIT, next = STRBUF_INIT;
	const struct watch_name *n = watch_name(i);
	const char *call = watch_name_call(i, &arguments);
	const char *after = watch_name_call(i + 1, &next);
	const char *lack = watch_name_lack(i);
	bool both = call && after && !strcmp(call, after);

	if (call && !strcmp(n->name + strlen("syscall_enter-"), call)) {
		strbuf_printf(out, "%-24s %-9s %-11s%s%s", call,
			      n->by_fd ? "by fd" : n->category,
			      both ? "enter, exit" : "enter",
			      arguments.len ? "  " : "", arguments.data ?: "");
		if (*n->published)
			strbuf_printf(out, " (also %s)", n->published);
		strbuf_printf(out, "%s%s\n", lack ? "; " : "", lack ?: "");
	}
	strbuf_fini(&arguments);
	strbuf_fini(&next);
	return call;
}

static void watch_list(struct strbuf *out)
{
	struct strbuf hooks = STRBUF_INIT;
	size_t i = 0;

	strbuf_printf(out, "%-20s %-9s %s\n", "NAME", "CATEGORY",
		      "WHAT; TRACEPOINTS");
	for (; watch_name(i) && !watch_name_call(i, &hooks); i++)
		watch_list_event(out, i);
	strbuf_puts(out,
		    "\nsyscall_enter-NAME, syscall_exit-NAME: a system call "
		    "begins, and ended; sys_enter, sys_exit\n"
		    "by fd: file, net, ipc or other, by the kind of the "
		    "descriptor\n\n");
	strbuf_printf(out, "%-24s %-9s %-12s %s\n", "NAME", "CATEGORY",
		      "EVENTS", "ARGUMENTS");
	while (watch_name(i) && watch_list_call(out, i))
		i++;
	strbuf_fini(&hooks);
}

static int watch_print_list(const struct options *o)
{
	struct strbuf out = STRBUF_INIT;
	int status;

	if (o->json)
		for (size_t i = 0; watch_name(i); i++)
			watch_list_json(&out, i);
	else
		watch_list(&out);
	status =
		out.failed ? cmd_fail("%s", strerror(ENOMEM)) : cmd_print(&out);
	strbuf_fini(&out);
	return status;
}

/* --- what hooks cost ------------------------------------------------------------- */

/* Of a system call that does nothing, in ns: the least of some averages. */
static double watch_call_ns(void)
{
	uint64_t least = UINT64_MAX, from, ns;

	for (int round = 0; round < 20; round++) {
		from = clock_boottime_ns();
		for (int i = 0; i < WATCH_COST_CALLS; i++)
			syscall(SYS_getppid);
		ns = clock_boottime_ns() - from;
		least = MIN(least, ns);
	}
	return (double)least / WATCH_COST_CALLS;
}

/* --- lines ----------------------------------------------------------------------- */

static void watch_put_signal(struct strbuf *sb, int64_t v)
{
	const char *name = sigabbrev_np((int)v);

	if (name)
		strbuf_printf(sb, "SIG%s", name);
	else
		strbuf_printf(sb, "%" PRId64, v);
}

static void watch_put_status(struct strbuf *sb, int64_t v)
{
	if (WIFSIGNALED((int)v))
		watch_put_signal(sb, WTERMSIG((int)v));
	else
		strbuf_printf(sb, "%d", WEXITSTATUS((int)v));
}

static void watch_put_error(struct strbuf *sb, int64_t v)
{
	const char *name = v ? strerrorname_np((int)(v < 0 ? -v : v)) : "ok";

	if (name)
		strbuf_puts(sb, name);
	else
		strbuf_printf(sb, "%" PRId64, v);
}

static void watch_put_us(struct strbuf *sb, int64_t v)
{
	lines_duration(sb, (uint64_t)v * 1000);
}

static void watch_put_ns(struct strbuf *sb, int64_t v)
{
	lines_duration(sb, (uint64_t)v);
}

/* Results of calls that a signal interrupted, which programs see as EINTR: linux/errno.h. */
static const char *watch_restart(int64_t v)
{
	switch (v) {
	case -512:
		return "ERESTARTSYS";
	case -513:
		return "ERESTARTNOINTR";
	case -514:
		return "ERESTARTNOHAND";
	case -516:
		return "ERESTART_RESTARTBLOCK";
	}
	return NULL;
}

static void watch_put_result(struct strbuf *sb, int64_t v)
{
	const char *name =
		v < 0 && v >= -4095 ? strerrorname_np((int)-v) : NULL;

	name = name ?: watch_restart(v);
	if (name)
		strbuf_puts(sb, name);
	else
		strbuf_printf(sb, "%" PRId64, v);
}

/* Numbers that people know by a word. */
static const struct {
	const char *key;
	void (*put)(struct strbuf *sb, int64_t v);
} watch_words[] = {
	{ "sig", watch_put_signal },   { "status", watch_put_status },
	{ "retval", watch_put_error }, { "error", watch_put_error },
	{ "rtt", watch_put_us },       { "res", watch_put_result },
	{ "on", watch_put_ns },
};

static void watch_put_attribute(struct strbuf *sb, const json_t *a)
{
	const json_t *v = json_object_get(a, "value");
	const char *key = lines_str(a, "key");

	strbuf_puts(sb, " ");
	lines_text(sb, key);
	strbuf_puts(sb, "=");
	if (!json_is_integer(v)) {
		lines_text(sb, json_string_value(v) ?: "");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(watch_words); i++)
		if (!strcmp(watch_words[i].key, key)) {
			watch_words[i].put(sb, json_integer_value(v));
			return;
		}
	strbuf_printf(sb, "%" PRId64, (int64_t)json_integer_value(v));
}

static void watch_put_ends(struct strbuf *sb, const json_t *fd)
{
	strbuf_puts(sb, " ");
	lines_text(sb, lines_str(fd, "src"));
	strbuf_puts(sb,
		    strcmp(lines_str(fd, "role"), "server") ? " > " : " < ");
	lines_text(sb, lines_str(fd, "dst"));
}

static void watch_put_file(struct strbuf *sb, const json_t *fd)
{
	const char *dir = lines_str(fd, "dir"), *file = lines_str(fd, "file");

	strbuf_puts(sb, json_is_true(json_object_get(fd, "cut")) ? "..." : "");
	lines_text(sb, dir);
	strbuf_puts(sb, *dir && *file && strcmp(dir, "/") != 0 ? "/" : "");
	lines_text(sb, file);
}

/* "3</etc/passwd>", "3<tcp 127.0.0.1:1 > 127.0.0.1:2>", "3,4<pipe>". */
static void watch_put_fd(struct strbuf *sb, const json_t *fd)
{
	const char *kind = lines_str(fd, "kind");

	if (!lines_has(fd, "num")) {
		watch_put_ends(sb, fd);
		return;
	}
	strbuf_printf(sb, " %" PRIu64, lines_int(fd, "num"));
	if (lines_has(fd, "pair"))
		strbuf_printf(sb, ",%" PRIu64, lines_int(fd, "pair"));
	strbuf_puts(sb, "<");
	if (lines_has(fd, "dir")) {
		watch_put_file(sb, fd);
	} else {
		lines_text(sb, lines_has(fd, "protocol")
				       ? lines_str(fd, "protocol")
				       : kind);
		if (lines_has(fd, "file")) {
			strbuf_puts(sb, " ");
			lines_text(sb, lines_str(fd, "file"));
		}
		if (lines_has(fd, "src") || lines_has(fd, "dst"))
			watch_put_ends(sb, fd);
	}
	strbuf_puts(sb, ">");
}

static void watch_put_event(struct strbuf *sb, const json_t *o)
{
	const json_t *fd = json_object_get(o, "fd");
	const json_t *all = json_object_get(o, "attributes");
	size_t start;

	lines_clock(sb, o, "time", false);
	if (lines_has(o, "pid"))
		strbuf_printf(sb, " %7" PRIu64 " ", lines_int(o, "pid"));
	else
		strbuf_printf(sb, " %7s ", "-");
	start = sb->len;
	lines_text(sb, lines_has(o, "comm") ? lines_str(o, "comm") : "-");
	strbuf_printf(sb, "%*s ", (int)(15 - MIN(sb->len - start, 15)), "");
	lines_text(sb, lines_str(o, "name"));
	if (fd)
		watch_put_fd(sb, fd);
	for (size_t i = 0; i < json_array_size(all); i++)
		watch_put_attribute(sb, json_array_get(all, i));
	if (lines_has(o, "latency_ns")) {
		strbuf_puts(sb, " ");
		lines_duration(sb, lines_int(o, "latency_ns"));
	}
	strbuf_puts(sb, "\n");
}

static void watch_put_words(struct strbuf *sb, const json_t *words)
{
	size_t n = json_array_size(words);

	for (size_t i = 0; i < n && i < WATCH_TOLD_MAX; i++) {
		strbuf_puts(sb, i ? ", " : "");
		lines_text(sb, json_string_value(json_array_get(words, i)));
	}
	if (n > WATCH_TOLD_MAX)
		strbuf_printf(sb, " and %zu more", n - WATCH_TOLD_MAX);
}

static void watch_put_lacks(struct strbuf *sb, json_t *lacks)
{
	const char *key;
	size_t n = 0;
	json_t *v;

	json_object_foreach(lacks, key, v)
	{
		if (n++ == WATCH_TOLD_MAX)
			break;
		strbuf_puts(sb, "profd: ");
		lines_text(sb, key);
		strbuf_puts(sb, ": ");
		lines_text(sb, json_string_value(v) ?: "");
		strbuf_puts(sb, "\n");
	}
	if (n > WATCH_TOLD_MAX)
		strbuf_printf(sb,
			      "profd: and %zu more; see profd watch --list\n",
			      json_object_size(lacks) - WATCH_TOLD_MAX);
}

/* Hooks on system calls run at each one of the host, also at those that are no events. */
static void watch_put_cost(const struct view_watch *w, struct strbuf *sb,
			   const json_t *hooks)
{
	const char *hook;

	for (size_t i = 0; i < json_array_size(hooks); i++) {
		hook = json_string_value(json_array_get(hooks, i));
		if (!hook || strncmp(hook, "sys_", 4) != 0)
			continue;
		strbuf_printf(sb,
			      "profd: a system call (getppid) of this host "
			      "takes %.0f ns now, %.0f ns before\n",
			      watch_call_ns(), w->call_ns);
		return;
	}
}

/* What is watched, and what was lost, go to standard error. */
static bool watch_tell(const struct view_watch *w, const json_t *o)
{
	json_t *lost = json_object_get(o, "lost"), *v;
	const json_t *hooks = json_object_get(o, "hooks");
	struct strbuf sb = STRBUF_INIT;
	const char *key;

	if (json_object_get(o, "watching")) {
		strbuf_puts(&sb, "profd: watching ");
		watch_put_words(&sb, json_object_get(o, "watching"));
		strbuf_puts(&sb, json_array_size(hooks) ? " by " : "");
		watch_put_words(&sb, hooks);
		strbuf_puts(&sb, "\n");
		watch_put_cost(w, &sb, hooks);
	}
	watch_put_lacks(&sb, json_object_get(o, "lacks"));
	json_object_foreach(lost, key, v)
	{
		strbuf_printf(&sb, "profd: lost %" PRId64 " events ",
			      (int64_t)json_integer_value(v));
		lines_text(&sb, key);
		strbuf_puts(&sb, "\n");
	}
	if (lines_has(o, "error")) {
		strbuf_puts(&sb, "profd: ");
		lines_text(&sb, lines_str(o, "error"));
		strbuf_puts(&sb, "\n");
	}
	if (sb.len)
		fputs(strbuf_str(&sb) ?: "", stderr);
	strbuf_fini(&sb);
	return !json_object_get(o, "name");
}

/* Of struct lines. */
static bool watch_line(void *arg, json_t *o)
{
	struct view_watch *w = arg;
	struct strbuf sb = STRBUF_INIT;
	bool told = watch_tell(w, o);

	if (w->o->json)
		return lines_print_json(&w->lines) && !fflush(stdout);
	if (told)
		return true;
	watch_put_event(&sb, o);
	return lines_print(&sb) && !fflush(stdout);
}

/* --- the request ------------------------------------------------------------------ */

static void watch_put_path(struct view_watch *w)
{
	const struct options *o = w->o;

	strbuf_puts(&w->path, "/api/watch?name=");
	for (size_t i = 0; i < o->nargs; i++) {
		strbuf_puts(&w->path, i ? "," : "");
		client_escape(&w->path, o->args[i]);
	}
	strbuf_puts(&w->path, strbuf_str(&w->ask.url) ?: "");
	if (o->watch_slower) {
		strbuf_puts(&w->path, "&slower=");
		client_escape(&w->path, o->watch_slower);
	}
	if (o->watch_failed)
		strbuf_puts(&w->path, "&failed=1");
}

static int watch_ask(struct view_watch *w)
{
	struct client_request req = {
		.endless = true,
		.cancelled = watch_cancelled,
	};
	struct sigaction sa = { .sa_handler = watch_on_signal };
	int64_t ns;

	if (w->o->watch_slower &&
	    reporter_duration_parse(w->o->watch_slower, &ns))
		return cmd_usage("watch",
				 "--slower '%s': must be a duration (10ms, 2s)",
				 w->o->watch_slower);
	w->call_ns = watch_call_ns();
	watch_put_path(w);
	req.path = strbuf_str(&w->path);
	if (!req.path)
		return cmd_fail("%s", strerror(ENOMEM));
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	return cmd_request_lines(w->o, &req, &w->lines);
}

int cmd_watch(const struct options *o)
{
	struct view_watch w = {
		.o = o,
		.lines = { .line = watch_line, .arg = &w },
	};
	int status;

	if (o->watch_list)
		return watch_print_list(o);
	if (!o->nargs)
		return cmd_usage("watch",
				 "no event is named; profd watch --list prints "
				 "the names");
	status = ask_init(&w.ask, "watch", o);
	if (!status)
		status = watch_ask(&w);
	strbuf_fini(&w.path);
	ask_fini(&w.ask);
	return status;
}
