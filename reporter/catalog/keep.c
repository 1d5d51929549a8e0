// SPDX-License-Identifier: Apache-2.0
/*
 * keep: what the catalog forgets. Rows of a window go with its file. Processes that
 * ended before the oldest window go, because no profile can be asked for them. And a
 * user who starts processes as fast as possible must not fill the disk, nor displace
 * the processes of others: above its limit, the catalog forgets those of the user with
 * the most that ended first, of those without samples if there are any, but for their
 * number. The same holds for a user whose texts are long: half of the catalog may be
 * texts of one user.
 *
 * Removed rows leave free pages, which are used again; many of them are given back.
 */
#include "reporter/catalog/internal.h"

#define KEEP_CHUNKS 8 /* of 1,000 processes: more than a batch adds */
/* A trace may be late, and in a window that began after its process had ended. */
#define KEEP_SLACK_NS (300 * (int64_t)CLOCK_NSEC_PER_SEC)
#define KEEP_CHANGES 262144 /* rows: some 40 MB */
#define KEEP_FREE_PAGES 1024
#define KEEP_VACUUM "incremental_vacuum(1024)"

/*
 * The first 1,000 processes of 'find', CATALOG_GONE_FIND by the time before which they
 * ended, or CATALOG_GONE_FIND_OF by user; '*n' of them.
 */
static int keep_chunk(struct catalog_db *db, enum catalog_statement find,
		      int64_t value, int *n)
{
	static const enum catalog_statement drops[] = {
		CATALOG_GONE_WINDOWS, CATALOG_GONE_PROGRAMS,
		CATALOG_GONE_ARGS,    CATALOG_GONE_IMAGES,
		CATALOG_GONE_PARENTS, CATALOG_GONE_PROCESSES,
		CATALOG_GONE_CLEAR,
	};
	struct catalog_bind b = catalog_bind(db, find);
	size_t i;
	int err;

	sqlite3_bind_int64(b.s, 1, value);
	err = catalog_bind_run(&b, find, NULL);
	*n = err ? 0 : sqlite3_changes(db->sql);
	if (!err && *n && find == CATALOG_GONE_FIND_OF)
		err = catalog_db_run(db, CATALOG_GONE_REST, NULL);
	for (i = 0; !err && *n && i < ARRAY_SIZE(drops); i++)
		err = catalog_db_run(db, drops[i], NULL);
	if (!err && *n)
		err = catalog_texts_collect(db);
	db->parent_row = 0;
	return err;
}

static int keep_used(struct catalog_db *db, uint64_t *bytes)
{
	int64_t pages = 0, unused = 0, size = 0;
	int err = catalog_db_pragma(db, "page_count", &pages);

	if (!err)
		err = catalog_db_pragma(db, "freelist_count", &unused);
	if (!err)
		err = catalog_db_pragma(db, "page_size", &size);
	*bytes = (pages - unused) * size;
	return err;
}

/*
 * What goes with no window and no process. Changes have numbers by which the oldest
 * are found; of the others there are few.
 */
static int keep_old(struct catalog_db *db, int64_t oldest)
{
	static const enum catalog_statement drops[] = {
		CATALOG_CHANGE_OLD,
		CATALOG_CGROUP_OLD,
		CATALOG_RUN_OLD,
	};
	struct catalog_bind b;
	int err = 0;

	if (oldest == db->oldest)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(drops) && !err; i++) {
		b = catalog_bind(db, drops[i]);
		sqlite3_bind_int64(b.s, 1, oldest);
		if (drops[i] == CATALOG_CHANGE_OLD)
			catalog_bind_int(&b, 2, KEEP_CHANGES);
		err = catalog_bind_run(&b, drops[i], NULL);
	}
	/* Control groups have gone, too. */
	catalog_texts_forget(db);
	if (!err)
		db->oldest = oldest;
	return err;
}

/*
 * Some of the user with the most, which become counts; '*n' of them, 0: none is too
 * many.
 */
static int keep_limit(struct catalog_db *db, uint64_t limit, int *n)
{
	int64_t uid = -1;
	uint64_t used;
	int err = keep_used(db, &used);

	*n = 0;
	if (err || used <= limit)
		return err;
	err = catalog_db_run(db, CATALOG_USER_MOST, &uid);
	return err ? err : keep_chunk(db, CATALOG_GONE_FIND_OF, uid, n);
}

/*
 * Some of a user whose texts are near the limit of texts, so that those to come have
 * room; '*n' of them.
 */
static int keep_texts(struct catalog_db *db, int *n)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_USER_TEXTS);
	const int64_t none = INT64_MIN;
	int64_t uid = none;
	int err;

	*n = 0;
	catalog_bind_int(&b, 1, db->texts_limit - db->texts_limit / 8);
	err = catalog_bind_run(&b, CATALOG_USER_TEXTS, &uid);
	return err || uid == none
		       ? err
		       : keep_chunk(db, CATALOG_GONE_FIND_OF, uid, n);
}

int catalog_keep_prune(struct catalog_db *db, uint64_t limit)
{
	int64_t oldest = INT64_MIN + KEEP_SLACK_NS;
	int i, n = 1, err = catalog_db_run(db, CATALOG_WINDOW_OLDEST, &oldest);

	for (i = 0; !err && n && i < KEEP_CHUNKS; i++)
		err = keep_chunk(db, CATALOG_GONE_FIND, oldest - KEEP_SLACK_NS,
				 &n);
	for (i = 0, n = 1; !err && n && i < KEEP_CHUNKS; i++)
		err = keep_limit(db, limit, &n);
	for (i = 0, n = 1; !err && n && i < KEEP_CHUNKS; i++)
		err = keep_texts(db, &n);
	if (!err && db->loose)
		err = catalog_texts_collect(db);
	return err ? err : keep_old(db, oldest - KEEP_SLACK_NS);
}

void catalog_keep_vacuum(struct catalog_db *db)
{
	int64_t pages = 0, unused = 0;

	if (catalog_db_pragma(db, "page_count", &pages) ||
	    catalog_db_pragma(db, "freelist_count", &unused))
		return;
	/* A few are better used again. */
	if (unused >= KEEP_FREE_PAGES && unused > pages / 4)
		sqlite3_exec(db->sql, "PRAGMA " KEEP_VACUUM, NULL, NULL, NULL);
}
