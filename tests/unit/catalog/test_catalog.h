/* SPDX-License-Identifier: Apache-2.0 */
/* A catalog without a reporter, and its tables. Included once per test program. */
#ifndef TESTS_UNIT_TEST_CATALOG_H
#define TESTS_UNIT_TEST_CATALOG_H

#include "tests/unit/reporter/test_reporter_common.h"

#include <sqlite3.h>

#include "reporter/catalog/catalog.h"

static struct catalog *catalog;
static int catalog_jobs;
static enum reporter_args catalog_args;

static inline void on_job(void *arg, bool ended)
{
	catalog_jobs += ended ? -1 : 1;
}

static inline const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", t.archive, name);
	return path;
}

static inline void make_archive(void)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "mkdir -p -m 750 %s", t.archive);
	assert_int_equal(system(cmd), 0);
}

static inline void open_catalog_of(uint64_t bytes)
{
	const struct catalog_opts o = {
		.loop = &t.loop,
		.dir = t.archive,
		.boot_id = { 1, 2, 3 },
		.freq_hz = 100,
		.version = "1.2.3",
		.args = catalog_args,
		.bytes = bytes,
		.job = on_job,
	};

	make_archive();
	assert_int_equal(catalog_new(&catalog, &o), 0);
	settle();
}

static inline void open_catalog(void)
{
	open_catalog_of(0);
}

static inline void close_catalog(void)
{
	catalog_stop(catalog);
	settle();
	assert_int_equal(catalog_jobs, 0);
	catalog_free(catalog);
	catalog = NULL;
}

static inline struct catalog_stats stats_of(void)
{
	struct catalog_stats s;

	catalog_get_stats(catalog, &s);
	return s;
}

/* The rows of a query, "a|b" each, joined by spaces; as sqlite3(1) prints them. */
static inline const char *ask_file(const char *file, const char *sql)
{
	static char out[4][8192];
	static unsigned int last;
	char *text = out[last++ % 4];
	sqlite3_stmt *s;
	sqlite3 *db;
	size_t n = 0;
	int i, rc;

	*text = '\0';
	assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE,
					 NULL),
			 SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		for (i = 0; i < sqlite3_column_count(s); i++) {
			const unsigned char *v = sqlite3_column_text(s, i);

			n += snprintf(text + n, sizeof(out[0]) - n, "%s%s",
				      i	  ? "|"
				      : n ? " "
					  : "",
				      v ? (const char *)v : "");
			assert_true(n < sizeof(out[0]));
		}
	}
	if (rc != SQLITE_DONE)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_finalize(s);
	sqlite3_close(db);
	return text;
}

static inline const char *rows(const char *sql)
{
	return ask_file(path_of(CATALOG_FILE), sql);
}

#define assert_rows(sql, want) assert_string_equal(rows(sql), want)

/* A process; its newest image is its only one. */
static inline struct pm_image process(uint32_t pid, uint32_t parent,
				      enum pm_end end)
{
	struct pm_image img = image(pid, pid, EXE_A);

	img.info.begin = 5 * SEC;
	img.info.key.start_boottime = 5 * SEC + pid;
	img.process = (struct pm_process_info){
		.pid = pid,
		.ppid = parent,
		.start = 5 * SEC + pid,
		.end = end,
		.wait_status = PM_STATUS_UNKNOWN,
	};
	if (end != PM_ALIVE)
		img.process.exit = 6 * SEC;
	snprintf(img.process.process_id, sizeof(img.process.process_id),
		 "%u-%llx", pid, 5 * SEC + pid);
	if (parent)
		snprintf(img.process.parent_id, sizeof(img.process.parent_id),
			 "%u-%llx", parent, 5 * SEC + parent);
	snprintf(img.info.image_id, sizeof(img.info.image_id), "%s-1",
		 img.process.process_id);
	snprintf(img.info.process_id, sizeof(img.info.process_id), "%s",
		 img.process.process_id);
	return img;
}

static inline int catalog_setup(void **state)
{
	memset(processes, 0, sizeof(processes));
	memset(older, 0, sizeof(older));
	catalog = NULL;
	return setup(state);
}

#endif /* TESTS_UNIT_TEST_CATALOG_H */
