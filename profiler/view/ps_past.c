// SPDX-License-Identifier: Apache-2.0
/* ps_past: see profiler/view/ps_past.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/lines.h"
#include "profiler/view/pages.h"
#include "profiler/view/ps_past.h"

#define PS_PAST_MAX 100000 /* of a table, which is sorted: some 1.5 KB each */
#define PS_PAST_OUTPUT 65536 /* bytes collected before they are written */

struct ps_past {
	bool (*line)(void *arg, json_t *o);
	void *arg;
	size_t n;
	struct strbuf out;
};

/* --- members of the catalog to those of /processes ---------------------------- */

/* Those that the table does not use take memory only. */
static const char *const ps_past_unused[] = {
	"seen",	   "end",	"entry",	"entry_pid", "session",	 "pgid",
	"user_ns", "system_ns", "maxrss_bytes", "minflt",    "majflt",	 "exe",
	"cwd",	   "gid",	"cgroup",	"pod",	     "build_id",
};

/* Integers, 0 or 1, that are booleans there. */
static const char *const ps_past_booleans[] = { "core", "kernel_thread",
						"args_cut" };

static void ps_past_nulls(json_t *o)
{
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe(o, next, key, v)
	{
		if (json_is_null(v))
			json_object_del(o, key);
	}
}

/*
 * The deviation is 1 / sqrt(samples expected), and the share is samples / samples
 * expected: of a process without samples it is not known.
 */
static int ps_past_coverage(json_t *o)
{
	double share = json_number_value(json_object_get(o, "coverage"));
	uint64_t samples = lines_int(o, "samples");

	json_object_del(o, "coverage");
	if (!samples || !(share > 0))
		return 0;
	return json_object_set_new(o, "coverage", json_real(share)) ||
	       json_object_set_new(o, "coverage_deviation",
				   json_real(sqrt(share / (double)samples)));
}

/* By which --sort start goes: of the wall clock here. */
static int ps_past_start(json_t *o)
{
	const char *fraction = strchr(lines_str(o, "start"), '.');
	double ns = (double)lines_time(o, "start") * CLOCK_NSEC_PER_SEC;

	if (fraction)
		ns += strtod(fraction, NULL) * CLOCK_NSEC_PER_SEC;
	return json_object_set_new(o, "start_boot_ns",
				   json_integer((json_int_t)ns));
}

static int ps_past_convert(json_t *o)
{
	const char *name = sigabbrev_np((int)lines_int(o, "signal"));
	size_t i;
	int err = 0;

	ps_past_nulls(o);
	for (i = 0; i < ARRAY_SIZE(ps_past_unused); i++)
		json_object_del(o, ps_past_unused[i]);
	for (i = 0; i < ARRAY_SIZE(ps_past_booleans); i++)
		if (lines_has(o, ps_past_booleans[i]))
			err |= json_object_set_new(
				o, ps_past_booleans[i],
				json_boolean(
					lines_int(o, ps_past_booleans[i])));
	if (lines_has(o, "argv"))
		err |= json_object_set(o, "args", json_object_get(o, "argv"));
	json_object_del(o, "argv");
	if (name && lines_has(o, "signal"))
		err |= json_object_set_new(o, "signal_name", json_string(name));
	return err | ps_past_coverage(o) | ps_past_start(o);
}

/* --- the list -------------------------------------------------------------------- */

static int ps_past_row(void *arg, json_t *o)
{
	struct ps_past *p = arg;

	if (p->n++ == PS_PAST_MAX)
		return cmd_fail(
			"more than %d processes: give a shorter time (--from, --to, --last), or --json",
			PS_PAST_MAX);
	return ps_past_convert(o) || !p->line(p->arg, o)
		       ? cmd_fail("%s", strerror(ENOMEM))
		       : 0;
}

static int ps_past_print(void *arg, json_t *o)
{
	struct ps_past *p = arg;

	p->n++;
	pages_json(&p->out, o);
	return p->out.len > PS_PAST_OUTPUT ? cmd_print(&p->out) : 0;
}

static int ps_past_none(const struct ps_past *p, int status)
{
	return status || p->n
		       ? status
		       : cmd_fail(
				 "no such process in the archive at that time");
}

int ps_past_read(struct ask *a, bool (*line)(void *arg, json_t *o), void *arg)
{
	struct ps_past p = { .line = line, .arg = arg };
	int status = pages_read(a, REPORTER_LIST_PROCESSES, ps_past_row, &p);

	return ps_past_none(&p, status);
}

int ps_past_json(struct ask *a)
{
	struct ps_past p = { 0 };
	int status = pages_read(a, REPORTER_LIST_PROCESSES, ps_past_print, &p);

	if (!status)
		status = cmd_print(&p.out);
	strbuf_fini(&p.out);
	return ps_past_none(&p, status);
}
