// SPDX-License-Identifier: Apache-2.0
/*
 * list: windows and processes of an archive as JSON, see reporter/request/request.h. The
 * statements make it themselves (SQLite's JSON functions), so that an answer is made in
 * one pass, whatever its size.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/request/internal.h"

#define LIST_LIMIT 1000
#define LIST_LIMIT_MAX 10000
/* An answer ends with the object that reaches this. */
#define LIST_BYTES (4U << 20)

/* The columns of a process, with those of its last image. */
#define LIST_PROCESS                                               \
	"'process', p.process, 'pid', p.pid, 'parent', p.parent, " \
	"'ppid', p.ppid, 'start', rfc3339(p.start_ns), "           \
	"'end', rfc3339(p.end_ns), 'seen', rfc3339(p.seen_ns), "   \
	"'state', p.state, 'exit_code', p.exit_code, "             \
	"'signal', p.signal, 'core', p.core, 'entry', p.entry, "   \
	"'entry_pid', p.entry_pid, 'session', p.session, "         \
	"'pgid', p.pgid, 'kernel_thread', p.kernel_thread, "       \
	"'samples', p.samples, 'cpu', p.cpu, 'cpu_ns', p.cpu_ns, " \
	"'user_ns', p.user_ns, 'system_ns', p.system_ns, "         \
	"'coverage', p.coverage, 'maxrss_bytes', p.maxrss_bytes, " \
	"'minflt', p.minflt, 'majflt', p.majflt, " LIST_IMAGE

#define LIST_IMAGE                                             \
	"'comm', i.comm, 'exe', i.exe, 'argv', json(i.argv), " \
	"'args_cut', i.args_cut, 'cwd', i.cwd, 'uid', i.uid, " \
	"'gid', i.gid, 'cgroup', i.cgroup, "                   \
	"'container', i.container, 'engine', i.engine, "       \
	"'pod', i.pod, 'unit', i.unit, 'service', $SERVICE, "  \
	"'build_id', i.build_id"

#define LIST_LAST                                     \
	"(SELECT id FROM image WHERE process = p.id " \
	"ORDER BY start_ns DESC, id DESC LIMIT 1)"

/* A relative, in short. */
#define LIST_RELATIVE                                              \
	"json_object('process', p.process, 'pid', p.pid, 'comm', " \
	"(SELECT comm FROM image WHERE id = " LIST_LAST "), "      \
	"'start', rfc3339(p.start_ns), 'end', rfc3339(p.end_ns), " \
	"'exit_code', p.exit_code, 'signal', p.signal, "           \
	"'cpu_ns', p.cpu_ns, 'samples', p.samples)"

static const char list_windows[] =
	"SELECT w.begin_ns, json_object('file', w.file, "
	"'begin', rfc3339(w.begin_ns), 'end', rfc3339(w.end_ns), "
	"'boot', (SELECT boot_id FROM boot WHERE id = w.boot), "
	"'begin_boot_ns', CAST(w.begin_boot_ns AS TEXT), "
	"'end_boot_ns', CAST(w.begin_boot_ns + w.end_ns - w.begin_ns AS TEXT), "
	"'bytes', w.bytes, 'times_bytes', w.times_bytes, "
	"'wait_bytes', wait_bytes(w.file), "
	"'samples', w.samples, 'losses', json((SELECT "
	"json_group_object(cause, count) FROM loss l "
	"WHERE l.window = w.id))) FROM window w WHERE w.end_ns > ?1 "
	"AND w.begin_ns < ?2 AND (?3 = 0 OR w.begin_ns < ?3) "
	"ORDER BY w.begin_ns DESC LIMIT ?4 + 1";

static const char list_processes[] =
	"SELECT p.id, json_object(" LIST_PROCESS ") FROM process p "
	"LEFT JOIN image i ON i.id = " LIST_LAST " WHERE p.id IN "
	"(SELECT DISTINCT p.id FROM image i JOIN process p "
	"ON p.id = i.process WHERE (?3 = 0 OR p.id < ?3) AND $TERMS "
	"ORDER BY p.id DESC LIMIT ?4 + 1) ORDER BY p.id DESC";

/* The arrays of list_process. */
#define LIST_IMAGES                                                \
	"(SELECT json_group_array(json(j)) FROM (SELECT "          \
	"json_object('image', i.image, "                           \
	"'start', rfc3339(i.start_ns), 'end', rfc3339(i.end_ns), " \
	"'samples', i.samples, " LIST_IMAGE ") AS j FROM image i " \
	"WHERE i.process = p.id ORDER BY i.start_ns, i.id))"

#define LIST_ANCESTORS                                          \
	"(WITH RECURSIVE a(id, n) AS (SELECT p.parent_row, 1 "  \
	"UNION ALL SELECT q.parent_row, n + 1 FROM process q "  \
	"JOIN a ON q.id = a.id WHERE n < 64) SELECT "           \
	"json_group_array(json(j)) FROM (SELECT " LIST_RELATIVE \
	" AS j FROM a JOIN process p ON p.id = a.id ORDER BY a.n))"

#define LIST_CHILDREN                                                   \
	"(SELECT json_group_array(json(j)) FROM (SELECT " LIST_RELATIVE \
	" AS j FROM process p "                                         \
	"WHERE p.parent_row = o.id ORDER BY p.start_ns LIMIT ?4))"

#define LIST_WINDOWS                                                \
	"(SELECT json_group_array(json(j)) FROM (SELECT "           \
	"json_object('file', w.file, 'begin', rfc3339(w.begin_ns)," \
	"'samples', sum(x.samples), 'cpu_ns', sum(x.cpu_ns)) AS j " \
	"FROM window_image x JOIN image i ON i.id = x.image "       \
	"JOIN window w ON w.id = x.window WHERE i.process = p.id "  \
	"GROUP BY w.id ORDER BY w.begin_ns DESC LIMIT ?4))"

/* The last process of a pid; ?4: of its children and windows. */
static const char list_process[] =
	"SELECT p.id, json_object(" LIST_PROCESS ", "
	"'images', json(" LIST_IMAGES "), "
	"'ancestors', json(" LIST_ANCESTORS "), "
	"'children', json(" LIST_CHILDREN "), "
	"'windows', json(" LIST_WINDOWS ")) "
	"FROM process o JOIN process p ON p.id = o.id "
	"LEFT JOIN image i ON i.id = " LIST_LAST " "
	"WHERE o.pid = CAST(?5 AS INTEGER) AND "
	"(o.process = ?5 OR o.pid = ?5) ORDER BY o.start_ns DESC LIMIT 1";

static const struct {
	const char *sql, *name; /* of its array; NULL: an object by itself */
} list_kinds[] = {
	[REPORTER_LIST_WINDOWS] = { list_windows, "windows" },
	[REPORTER_LIST_PROCESSES] = { list_processes, "processes" },
	[REPORTER_LIST_PROCESS] = { list_process, NULL },
};

/* --- parameters --------------------------------------------------------------- */

static bool list_number(const char *text, int64_t least, int64_t most,
			int64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	return !errno && !*end && *out >= least && *out <= most;
}

static int list_limit(struct reporter_list *list, const char *value,
		      const char **want)
{
	int64_t v;

	*want = "1 to 10000";
	if (list->limit)
		return -EEXIST;
	if (!list_number(value, 1, LIST_LIMIT_MAX, &v))
		return -EINVAL;
	list->limit = (unsigned int)v;
	return 0;
}

static int list_after(struct reporter_list *list, const char *value,
		      const char **want)
{
	*want = "the \"next\" of an answer";
	if (list->after)
		return -EEXIST;
	return list_number(value, 1, INT64_MAX, &list->after) ? 0 : -EINVAL;
}

static const char *const list_times[] = { "from", "to", "last", "life" };

static const struct {
	const char *key;
	int (*set)(struct reporter_list *list, const char *value,
		   const char **want);
} list_keys[] = {
	{ "limit", list_limit },
	{ "after", list_after },
};

const char *reporter_list_key(size_t i)
{
	if (i < ARRAY_SIZE(list_times))
		return list_times[i];
	i -= ARRAY_SIZE(list_times);
	return i < ARRAY_SIZE(list_keys) ? list_keys[i].key : NULL;
}

int reporter_list_set(struct reporter_request *r, struct reporter_list *list,
		      const char *key, const char *value, const char **want)
{
	size_t i;

	*want = NULL;
	if (list->kind == REPORTER_LIST_PROCESS)
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(list_keys); i++)
		if (!strcmp(key, list_keys[i].key))
			return list_keys[i].set(list, value, want);
	for (i = 0; i < ARRAY_SIZE(list_times); i++)
		if (!strcmp(key, list_times[i]))
			return reporter_request_set(r, key, value, want);
	return list->kind == REPORTER_LIST_PROCESSES
		       ? reporter_query_terms_parse(&r->terms, key, value, want)
		       : -ENOENT;
}

/* --- answers ------------------------------------------------------------------- */

struct list_answer {
	const struct reporter_list *list;
	struct strbuf *out;
	size_t n, limit;
	int64_t last; /* the number of the last object */
	bool more;
};

static bool list_row(void *arg, int64_t number, const char *text)
{
	struct list_answer *a = arg;

	if (a->n == a->limit || a->out->len >= LIST_BYTES) {
		a->more = true;
		return false;
	}
	strbuf_puts(a->out, a->n++ ? ",\n" : "");
	strbuf_puts(a->out, text);
	a->last = number;
	return true;
}

static int list_select(struct request_run *x, struct list_answer *a,
		       const struct reporter_query_span *span)
{
	const struct request_select_opts opts = {
		.path = x->out->archive,
		.terms = &x->r->terms,
		.span = *span,
		.go_on = request_go_on,
		.arg = x,
	};
	struct request_select_rows rows = {
		.sql = list_kinds[a->list->kind].sql,
		.values = { a->list->after, (int64_t)a->limit },
		.text = a->list->process,
		.row = list_row,
		.arg = a,
	};
	int err = request_select_rows(&opts, &rows);

	if (rows.wrong)
		return request_fail(x, err, "%s: not known of processes",
				    rows.wrong);
	return err && err != -ECANCELED ? request_catalog_error(x, err) : err;
}

/* Of windows with the directory, for clients on this host that read them. */
static void list_begin(const struct request_run *x,
		       const struct reporter_list *list, struct strbuf *out)
{
	strbuf_puts(out, "{");
	if (list->kind == REPORTER_LIST_WINDOWS) {
		strbuf_puts(out, "\"archive\":");
		text_add_json_string(out, x->out->archive);
		strbuf_puts(out, ",");
	}
	strbuf_printf(out, "\"%s\":[", list_kinds[list->kind].name);
}

int reporter_list_run(const struct reporter_request *r,
		      const struct reporter_list *list,
		      struct reporter_request_run *run, struct strbuf *out)
{
	const char *name = list_kinds[list->kind].name;
	struct request_run x = { .r = r, .out = run };
	struct list_answer a = {
		.list = list,
		.out = out,
		.limit = list->limit ? list->limit : LIST_LIMIT,
	};
	struct reporter_query_span span = { INT64_MIN, INT64_MAX };
	int err = 0;

	*run->why = '\0';
	if (name)
		err = request_span(&x, &span);
	if (!err && name)
		list_begin(&x, list, out);
	if (!err)
		err = list_select(&x, &a, &span);
	if (!err && !name && !a.n)
		err = request_fail(&x, -ESRCH, "no process %s", list->process);
	if (!err && name && a.more)
		strbuf_printf(out, "],\"next\":\"%" PRId64 "\"}", a.last);
	else if (!err && name)
		strbuf_puts(out, "],\"next\":null}");
	strbuf_puts(out, "\n");
	if (!err && !strbuf_str(out))
		err = -ENOMEM;
	return err;
}
