// SPDX-License-Identifier: Apache-2.0
/* tables: see tracehandler/unwind/tables.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/unwind/tables.h"

/* Entries without rows are small, but hold a reference to their exe. */
#define TABLES_MAX 4096
#define TABLES_RETRY_NS (10 * CLOCK_NSEC_PER_SEC)
/* After -ETIMEDOUT and -EBUSY, which other requests cause. */
#define TABLES_RETRY_BUSY_NS CLOCK_NSEC_PER_SEC

int trace_tables_init(struct trace_tables *t, size_t max_bytes,
		      struct trace_waits *waits, struct trace_rules *rules)
{
	TAILQ_INIT(&t->list);
	t->max_bytes = t->room = max_bytes;
	t->waits = waits;
	t->stats = waits->stats;
	t->rules = rules;
	return hash_init(&t->tables, 0);
}

void trace_table_put(struct trace_table *table)
{
	if (!table || --table->refs)
		return;
	symbolizer_rows_free(table->rows);
	pm_exe_put(table->exe);
	free(table);
}

/* Lookups no longer find it; samples that wait for it see that it is GONE. */
static void trace_tables_drop(struct trace_tables *t, struct trace_table *e)
{
	if (e->state != TRACE_TABLE_ASKED)
		TAILQ_REMOVE(&t->list, e, link);
	if (e->state == TRACE_TABLE_HERE) {
		t->stats->tables--;
		trace_rules_forget(t->rules);
	}
	t->wanted -= e->wanted;
	e->wanted = false;
	t->stats->tables_bytes -= e->bytes;
	symbolizer_rows_free(e->rows);
	e->rows = NULL;
	e->bytes = 0;
	e->owner = NULL;
	e->state = TRACE_TABLE_GONE;
	hash_remove(&t->tables, &e->node);
	trace_table_put(e);
}

void trace_tables_fini(struct trace_tables *t)
{
	struct hash_node *n, *tmp;
	size_t i;

	if (!t->tables.buckets)
		return;
	hash_for_each(&t->tables, i, n, tmp)
		trace_tables_drop(t, container_of(n, struct trace_table, node));
	hash_fini(&t->tables);
}

/* The newest stays whatever its size: a sample waits for it. */
static void trace_tables_limit(struct trace_tables *t)
{
	struct trace_table *e;
	bool large;

	while ((e = TAILQ_FIRST(&t->list)) && TAILQ_NEXT(e, link)) {
		large = t->stats->tables_bytes > t->room;
		if (!large && t->tables.count <= TABLES_MAX)
			break;
		t->stats->tables_evicted +=
			large && e->state == TRACE_TABLE_HERE;
		trace_tables_drop(t, e);
	}
}

void trace_tables_room(struct trace_tables *t, size_t room)
{
	t->room = MIN(room, t->max_bytes);
	trace_tables_limit(t);
}

/* The cause is not the file's content: another request may succeed. */
static bool trace_tables_transient(int err)
{
	return err != -ENODATA && err != -ENOTSUP && err != -ENOEXEC &&
	       err != -SYMBOLIZER_EPLACE && err != -EINVAL && err != -E2BIG &&
	       err != -EFBIG;
}

static void trace_tables_failed(struct trace_table *e, int err)
{
	struct trace_tables *t = e->owner;

	e->state = TRACE_TABLE_NONE;
	e->err = err;
	if (!trace_tables_transient(err))
		e->retry = UINT64_MAX;
	else if (err == -ETIMEDOUT || err == -EBUSY)
		e->retry = t->now + TABLES_RETRY_BUSY_NS;
	else
		e->retry = t->now + TABLES_RETRY_NS;
	if (err == -ENODATA) /* that of memory is asked for often */
		t->stats->tables_none += !e->code;
	else if (err == -EFBIG)
		t->stats->tables_refused++;
	else
		t->stats->tables_failed++;
}

static void trace_tables_here(struct trace_table *e,
			      struct symbolizer_rows *rows)
{
	struct trace_tables *t = e->owner;
	struct symbolizer_rows_info info;

	symbolizer_rows_info(rows, &info);
	if (info.bytes > t->max_bytes) {
		symbolizer_rows_free(rows);
		t->stats->tables_refused++;
		e->state = TRACE_TABLE_NONE;
		e->retry = UINT64_MAX;
		return;
	}
	e->state = TRACE_TABLE_HERE;
	e->rows = rows;
	e->by_code = info.by_code;
	e->bytes = info.bytes;
	t->stats->tables_bytes += e->bytes;
	t->stats->tables++;
	e->from = e->time - MIN(e->time, info.before);
	/* That sample can use it, whatever the worker says. */
	info.after = MAX(info.after, (uint64_t)1);
	e->until = info.after < UINT64_MAX - e->time ? e->time + info.after
						     : UINT64_MAX;
}

static void trace_tables_answer(void *arg, int err,
				struct symbolizer_rows *rows)
{
	struct trace_table *e = arg;
	struct trace_tables *t = e->owner;

	if (!t) {
		symbolizer_rows_free(rows);
		trace_table_put(e);
		return;
	}
	t->wanted -= e->wanted;
	e->wanted = false;
	if (err)
		trace_tables_failed(e, err);
	else
		trace_tables_here(e, rows);
	TAILQ_INSERT_TAIL(&t->list, e, link);
	trace_tables_limit(t);
	trace_table_put(e);
	trace_waits_answered(t->waits);
}

/* Takes over 'e'; NULL: no memory. */
static struct trace_table *trace_tables_ask(struct trace_tables *t,
					    struct pm_exe *exe, uint64_t hash,
					    struct trace_table *e)
{
	int err;

	if (!e)
		return NULL;
	e->state = TRACE_TABLE_ASKED;
	e->refs = 2; /* the hash's and the request's */
	err = e->code ? pm_exe_code_rows(exe, e->time, trace_tables_answer, e)
		      : pm_exe_rows(exe, trace_tables_answer, e);
	if (err) {
		free(e);
		return NULL;
	}
	e->owner = t;
	e->exe = pm_exe_get(exe);
	hash_insert(&t->tables, &e->node, hash);
	t->stats->tables_asked++;
	return e;
}

struct trace_table *trace_tables_want(struct trace_tables *t,
				      struct trace_table *table)
{
	table->refs++;
	if (table->state == TRACE_TABLE_ASKED && !table->wanted) {
		table->wanted = true;
		t->wanted++;
		pm_exe_hurry(table->exe);
	}
	return table;
}

/* Makes it the most recently used one. */
static struct trace_table *trace_tables_use(struct trace_tables *t,
					    struct trace_table *e)
{
	if (e->state != TRACE_TABLE_ASKED && TAILQ_NEXT(e, link)) {
		TAILQ_REMOVE(&t->list, e, link);
		TAILQ_INSERT_TAIL(&t->list, e, link);
	}
	return e;
}

static bool trace_table_is_due(const struct trace_tables *t,
			       const struct trace_table *e)
{
	return e->state == TRACE_TABLE_NONE && t->now >= e->retry;
}

struct trace_table *trace_tables_get(struct trace_tables *t, struct pm_exe *exe)
{
	struct trace_table *e;
	uint64_t hash;

	exe = pm_exe_root(exe);
	hash = hash_u64((uintptr_t)exe);
	HASH_FIND(e, &t->tables, hash, node, e->exe == exe);
	if (e && trace_table_is_due(t, e)) {
		trace_tables_drop(t, e);
		e = NULL;
	}
	if (e)
		return trace_tables_use(t, e);
	return trace_tables_ask(t, exe, hash, calloc(1, sizeof(*e)));
}

/*
 * Its answer is not the one for this version and time. For samples up to that which it
 * was requested for, the growth of the file since then makes no difference; or they would
 * never get one while it grows.
 */
static bool trace_table_is_other(const struct trace_table *e, uint32_t version,
				 uint64_t time)
{
	if (e->state == TRACE_TABLE_ASKED)
		return false;
	if (time > e->time && (int32_t)(version - e->version) > 0)
		return true;
	return e->state == TRACE_TABLE_HERE &&
	       (time < e->from || time >= e->until);
}

struct trace_table *trace_tables_code(struct trace_tables *t,
				      struct pm_exe *exe, uint32_t version,
				      uint64_t time)
{
	uint64_t hash = hash_u64((uintptr_t)exe);
	struct trace_table *e;

	HASH_FIND(e, &t->tables, hash, node, e->exe == exe);
	if (e && (trace_table_is_due(t, e) ||
		  trace_table_is_other(e, version, time))) {
		trace_tables_drop(t, e);
		e = NULL;
	}
	if (e)
		return trace_tables_use(t, e);
	e = calloc(1, sizeof(*e));
	if (e) {
		e->code = true;
		e->version = version;
		e->time = time;
	}
	return trace_tables_ask(t, exe, hash, e);
}
