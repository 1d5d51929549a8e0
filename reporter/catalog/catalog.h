/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalog: the table of contents of the archive, an SQLite file beside the windows:
 * processes, their images, windows, and which images have samples in which window.
 * For people, with sqlite3(1), and for queries that open few windows of many. The
 * tables are documented in profd-catalog(5).
 *
 * The loop makes batches of rows in memory; pool threads write them. A batch is
 * written with the next window, or earlier when it is large. What does not fit into
 * the memory for batches is dropped and counted: nothing ever waits for the disk.
 *
 * Calls are on the loop's thread, but for those that say so.
 */
#ifndef REPORTER_CATALOG_H
#define REPORTER_CATALOG_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "processmanager/processmanager.h"
#include "reporter/store/store.h"
#include "reporter/store/times_file.h"
#include "reporter/window.h"

#define CATALOG_FILE "catalog.sqlite"
/* A file that is no catalog, or is damaged, gets this name; one is kept. */
#define CATALOG_BAD "catalog.bad.sqlite"
#define CATALOG_APPLICATION 0x70726664 /* PRAGMA application_id: "prfd" */
#define CATALOG_VERSION 5 /* PRAGMA user_version */

struct catalog;

struct catalog_opts {
	uv_loop_t *loop;
	struct pm *pm;
	const char *dir; /* the archive's, which exists and belongs to profd */
	uint8_t boot_id[STORE_BOOT_ID];
	unsigned int freq_hz;
	const char *version; /* of profd; outlives the catalog */
	enum reporter_args args;
	uint64_t bytes; /* of the whole archive; 0: no limit */
	/* A job was queued, or has ended: the reporter must exist until then. */
	void (*job)(void *arg, bool ended);
	/* A process gets no row, because the user has too many (budget.h). */
	void (*limited)(void *arg, uint32_t uid);
	void *arg;
};

/* X(name): the counts, as in REPORTER_STATS. */
#define CATALOG_STATS(X)           \
	X(catalog_processes)       \
	X(catalog_windows)         \
	X(catalog_dropped)         \
	X(catalog_skipped)         \
	X(catalog_changes_skipped) \
	X(catalog_texts_skipped)   \
	X(catalog_failed)          \
	X(catalog_set_aside)       \
	X(catalog_rebuilt)         \
	X(catalog_missing)         \
	X(catalog_pending)         \
	X(catalog_bytes)           \
	X(catalog_wal_bytes)       \
	X(catalog_stopped)

struct catalog_stats {
#define X(name) uint64_t name;
	CATALOG_STATS(X)
#undef X
};

/* Queues the job that opens the file. 0 or -ENOMEM. */
int catalog_new(struct catalog **cp, const struct catalog_opts *opts);
/* Queues the job that closes the file; only catalog_free() may follow. */
void catalog_stop(struct catalog *c);
/* When no job is left. */
void catalog_free(struct catalog *c);

/* A process has ended, given its newest image; from pm_opts.ended. */
void catalog_ended(struct catalog *c, const struct pm_image *last);
/* Of all events, those that change a process, and gaps, get a row. */
void catalog_event(struct catalog *c, const struct quark_event *ev);
/*
 * A window closes: adds the living processes that are new or had samples since the
 * last call, and hands the batch over to the next catalog_add_window(); or, with
 * 'alone', to a job of its own, because no window is written.
 */
void catalog_snapshot(struct catalog *c, bool alone);

/* A window that is in the archive. */
struct catalog_window {
	const struct store_window *file;
	const struct window *tables; /* sealed */
	int64_t begin_ns; /* since the epoch; time_nanos of the profile */
	uint64_t begin_boot_ns, duration_ns;
	/* Strings one behind the other with their NUL; losses are "CAUSE: N". */
	const char *comments;
	size_t comments_len;
};

/* Writes what is pending, then the window (NULL: none). On a pool thread. */
void catalog_add_window(struct catalog *c, const struct catalog_window *w);
/* A window's file was removed. Any thread; takes no lock that waits for a disk. */
void catalog_removed(struct catalog *c, const struct store_window *w);

void catalog_get_stats(struct catalog *c, struct catalog_stats *out);
/* Why nothing is written, valid until the next call; NULL: it is. On the loop. */
const char *catalog_problem(struct catalog *c);

#endif /* REPORTER_CATALOG_H */
