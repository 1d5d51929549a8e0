// SPDX-License-Identifier: Apache-2.0
/*
 * past: see reporter/request/past.h. Each list is read in the order of an index from
 * where the last page ended, so that a page costs the same wherever it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "reporter/ledger/ledger.h"
#include "reporter/request/internal.h"
#include "reporter/request/past.h"

/* Of one list, of one page. */
#define PAST_ROWS 512
#define PAST_BYTES (1U << 20)

#define PAST_IDS                                               \
	"'pid', p.pid, 'ppid', p.ppid, 'process', p.process, " \
	"'parent', p.parent, 'image', i.image, 'comm', i.comm"

#define PAST_PROGRAM                                                   \
	"'exe', i.exe, 'build_id', i.build_id, "                       \
	"'args', json(i.argv), 'args_cut', "                           \
	"iif(i.args_cut, json('true'), NULL), 'cwd', i.cwd, "          \
	"'uid', i.uid, 'gid', i.gid, 'cgroup', i.cgroup, "             \
	"'container', i.container, 'engine', i.engine, 'pod', i.pod, " \
	"'unit', i.unit, 'service', $SERVICE, "                        \
	"'entry', p.entry, 'entry_pid', p.entry_pid"

#define PAST_ACCOUNT                                               \
	"'state', p.state, 'start', rfc3339(p.start_ns), "         \
	"'exit', rfc3339(p.end_ns), 'reap', rfc3339(p.reap_ns), "  \
	"'exit_code', p.exit_code, 'signal', p.signal, "           \
	"'core', iif(p.signal IS NULL, NULL, "                     \
	"json(iif(p.core, 'true', 'false'))), "                    \
	"'session', p.session, 'group', p.pgid, 'cpu', p.cpu, "    \
	"'cpu_ns', p.cpu_ns, 'user_ns', p.user_ns, "               \
	"'system_ns', p.system_ns, 'samples', p.samples, "         \
	"'coverage', p.coverage, 'maxrss_bytes', p.maxrss_bytes, " \
	"'minflt', p.minflt, 'majflt', p.majflt"

/* ?3 and ?5 are where the last page ended; the row is taken off again. */
#define PAST_SELECT(TIME, ROW, EVENTS, MEMBERS)                              \
	"SELECT " TIME ", json_object('row', " ROW ", 'time', rfc3339(" TIME \
	"), 'events', json(" EVENTS "), " MEMBERS ") "

#define PAST_AFTER(TIME, ROW) \
	"(" TIME ", " ROW ") > (?3, CAST(?5 AS INTEGER)) AND " TIME " < ?2 "

#define PAST_ORDER(TIME, ROW) " ORDER BY " TIME ", " ROW " LIMIT ?4"

#define PAST_IMAGE(ORDER)                                    \
	"i.id = (SELECT id FROM image WHERE process = p.id " \
	"ORDER BY start_ns " ORDER ", id " ORDER " LIMIT 1)"

#define PAST_CHANGED                                           \
	"'pid', p.pid, 'ppid', p.ppid, 'process', c.process, " \
	"'parent', p.parent, 'image', c.image"

#define PAST_CHANGE_FROM                                                      \
	"FROM change c JOIN process p ON p.pid = CAST(c.process AS INTEGER) " \
	"AND p.boot = c.boot AND p.process = c.process "                      \
	"LEFT JOIN image i ON i.process = p.id AND i.image = c.image "

#define PAST_CHANGE_SELECT(KIND, MEMBERS)                    \
	PAST_SELECT("c.time_ns", "c.id", "'[\"" KIND "\"]'", \
		    PAST_CHANGED ", " MEMBERS)

#define PAST_CHANGE_WHERE(KIND)                                           \
	"WHERE c.kind = '" KIND                                           \
	"' AND " PAST_AFTER("c.time_ns", "c.id") "AND $TERMS" PAST_ORDER( \
		"c.time_ns", "c.id")

/* Changes of a kind. Catalogs before version 3 have none. */
#define PAST_CHANGE(KIND, MEMBERS)                                 \
	{ KIND },                                                  \
		PAST_CHANGE_SELECT(KIND, MEMBERS) PAST_CHANGE_FROM \
		PAST_CHANGE_WHERE(KIND),                           \
		3

#define PAST_NOW(COMM, UID, GID)                                             \
	"'comm', " COMM ", 'exe', i.exe, 'args', json(i.argv), 'args_cut', " \
	"iif(i.args_cut, json('true'), NULL), 'cwd', i.cwd, "                \
	"'uid', " UID ", 'gid', " GID ", "

static const struct {
	const char *words[3]; /* types of its lines */
	const char *sql;
	int version; /* of the catalogs that have it, and of later ones */
} past_lists[] = {
	[PAST_FORKS] = {
		{ "fork" },
		PAST_SELECT("p.start_ns", "p.id", "'[\"fork\"]'", PAST_IDS)
		"FROM process p LEFT JOIN image i ON " PAST_IMAGE("ASC")
		" WHERE " PAST_AFTER("p.start_ns", "p.id") "AND $TERMS"
		PAST_ORDER("p.start_ns", "p.id"),
	},
	/* The first image of a process is that of its fork. */
	[PAST_EXECS] = {
		{ "exec" },
		PAST_SELECT("i.start_ns", "i.id", "'[\"exec\"]'",
			    PAST_IDS ", " PAST_PROGRAM)
		"FROM image i JOIN process p ON p.id = i.process WHERE "
		PAST_AFTER("i.start_ns", "i.id")
		"AND ifnull(i.start_ns > p.start_ns, 1) AND $TERMS"
		PAST_ORDER("i.start_ns", "i.id"),
	},
	[PAST_ENDS] = {
		{ "exit", "reap", "end" },
		PAST_SELECT("p.end_ns", "p.id",
			    "CASE p.state WHEN 'reaped' THEN "
			    "'[\"exit\",\"reap\",\"end\"]' WHEN 'exited' THEN "
			    "'[\"exit\",\"end\"]' ELSE '[\"end\"]' END",
			    PAST_IDS ", " PAST_PROGRAM ", " PAST_ACCOUNT)
		"FROM process p LEFT JOIN image i ON " PAST_IMAGE("DESC")
		" WHERE " PAST_AFTER("p.end_ns", "p.id") "AND $TERMS"
		PAST_ORDER("p.end_ns", "p.id"),
	},
	[PAST_RENAMES] = { PAST_CHANGE("rename", "'comm', c.comm") },
	[PAST_ID_CHANGES] = { PAST_CHANGE("id_change",
		PAST_NOW("i.comm", "c.uid", "c.gid") "'cgroup', i.cgroup") },
	[PAST_CGROUPS] = { PAST_CHANGE("cgroup",
		PAST_NOW("i.comm", "i.uid", "i.gid") "'cgroup', c.cgroup") },
	/* Of no process: where terms choose processes there is none. */
	[PAST_GAPS] = {
		{ "gap" },
		PAST_SELECT("c.time_ns", "c.id", "'[\"gap\"]'",
			    "'from', rfc3339(json_extract(c.detail, '$.from_ns')), "
			    "'to', rfc3339(json_extract(c.detail, '$.to_ns')), "
			    "'lost', json_extract(c.detail, '$.lost'), "
			    "'kinds', json(json_extract(c.detail, '$.kinds'))")
		"FROM change c LEFT JOIN process p ON 0 "
		"LEFT JOIN image i ON 0 WHERE c.kind = 'gap' AND "
		PAST_AFTER("c.time_ns", "c.id") "AND $TERMS"
		PAST_ORDER("c.time_ns", "c.id"),
		3,
	},
};

struct past_row {
	int64_t at, row;
	size_t text, len; /* in the texts of the list */
};

struct past_page {
	struct past_row rows[PAST_ROWS];
	size_t n, next;
	struct strbuf texts;
	bool full; /* there may be more rows */
	const char *host;
	int err;
};

void request_past_init(struct request_past *p)
{
	for (size_t i = 0; i < PAST_LISTS; i++) {
		p->done[i].at = p->span.from;
		p->done[i].row = -1;
	}
}

static bool past_wanted(const struct request_past *p, size_t list)
{
	const char *word;
	bool any = !p->types;

	for (size_t i = 0; i < ARRAY_SIZE(past_lists[list].words); i++) {
		word = past_lists[list].words[i];
		any |= word && ledger_type(word, strlen(word)) & p->types;
	}
	return any;
}

/* Of request_select_rows: the text of a row as a line of an event. */
static bool past_row(void *arg, int64_t at, const char *text)
{
	struct past_page *page = arg;
	struct past_row *r = &page->rows[page->n];
	json_t *o = json_loads(text, 0, NULL);

	r->at = at;
	r->row = json_integer_value(json_object_get(o, "row"));
	r->text = page->texts.len;
	json_object_del(o, "row");
	if (!o || json_object_set_new(o, "host", json_string(page->host)))
		page->err = -ENOMEM;
	if (!page->err)
		page->err = ledger_event_of(o, &page->texts);
	json_decref(o);
	r->len = page->texts.len - r->text;
	page->n++;
	page->full = page->n == PAST_ROWS || page->texts.len >= PAST_BYTES;
	return !page->err && !page->full;
}

static int past_fetch(struct request_run *x, const struct request_past *p,
		      size_t list, struct past_page *page)
{
	const struct request_select_opts opts = {
		.path = x->out->archive,
		.terms = p->terms,
		.span = p->span,
		.go_on = request_go_on,
		.arg = x,
	};
	char row[24];
	struct request_select_rows rows = {
		.sql = past_lists[list].sql,
		.version = past_lists[list].version,
		.values = { p->done[list].at, PAST_ROWS },
		.text = row,
		.row = past_row,
		.arg = page,
	};
	int err;

	page->host = p->host;
	snprintf(row, sizeof(row), "%" PRId64, p->done[list].row);
	err = request_select_rows(&opts, &rows);
	if (page->err)
		return page->err;
	if (rows.wrong)
		return request_fail(x, err, "%s: not known of processes",
				    rows.wrong);
	return err && err != -ECANCELED ? request_catalog_error(x, err) : err;
}

/* The list whose next row is the earliest; -1: none, or it is not known. */
static int past_next(const struct past_page *pages)
{
	int64_t at, least = INT64_MAX;
	int best = -1;

	for (int i = 0; i < PAST_LISTS; i++) {
		const struct past_page *page = &pages[i];

		if (page->next == page->n) {
			if (page->full)
				return -1;
			continue;
		}
		at = page->rows[page->next].at;
		if (best < 0 || at < least) {
			best = i;
			least = at;
		}
	}
	return best;
}

static void past_merge(struct request_past *p, struct past_page *pages,
		       struct strbuf *out)
{
	const struct past_row *r;
	int i;

	while ((i = past_next(pages)) >= 0) {
		r = &pages[i].rows[pages[i].next++];
		strbuf_add(out, pages[i].texts.data + r->text, r->len);
		p->done[i].at = r->at;
		p->done[i].row = r->row;
	}
}

int request_past_read(struct request_past *p, struct reporter_request_run *run,
		      struct strbuf *out, bool *more)
{
	struct past_page *pages = calloc(PAST_LISTS, sizeof(*pages));
	struct request_run x = { .out = run };
	int err = pages ? 0 : -ENOMEM;

	*run->why = '\0';
	*more = false;
	for (size_t i = 0; i < PAST_LISTS && !err; i++) {
		if (!past_wanted(p, i))
			continue;
		err = past_fetch(&x, p, i, &pages[i]);
		*more |= pages[i].full;
	}
	if (!err)
		past_merge(p, pages, out);
	for (size_t i = 0; i < PAST_LISTS && pages; i++)
		strbuf_fini(&pages[i].texts);
	free(pages);
	return !err && out->failed ? -ENOMEM : err;
}
