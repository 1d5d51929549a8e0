/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: the archive on disk. Windows are in directories of a day (UTC), each with a
 * side file of the times of its samples (times_file.h):
 *
 *	DIR/2026-11-23/cpu-HOST-20261123T110000Z-60s.pb.gz
 *	DIR/2026-11-23/cpu-HOST-20261123T110000Z-60s.times.zst
 *
 * and, if waits are recorded, a profile of them, with a side file of the long ones,
 *
 *	DIR/2026-11-23/wait-HOST-20261123T110000Z-60s.pb.gz
 *	DIR/2026-11-23/wait-HOST-20261123T110000Z-60s.times.zst
 *
 * Windows of versions before that, directly in DIR, are found and removed as well.
 * A lock on a file in DIR keeps other instances of profd out.
 *
 * A window's file appears complete or not at all. Its side file and its waits, with theirs, follow,
 * and are removed before it, so that none ever lies beside another window of the same
 * name. Waits without their window, which a profd that was killed may have left, are
 * removed at the start.
 *
 * Any thread. Calls that wait for the disk belong on pool threads.
 */
#ifndef REPORTER_STORE_H
#define REPORTER_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "reporter/outfile.h"
#include "reporter/reporter.h"
#include "reporter/store/name.h"

struct store;

/* A window on disk. */
struct store_window {
	char day[STORE_DAY_MAX]; /* its directory; "": DIR itself */
	char stem[STORE_STEM_MAX];
	int64_t begin_ns; /* of the name: whole seconds since the epoch */
	uint64_t duration_ns; /* likewise */
	enum reporter_format format;
	uint64_t bytes;
	uint64_t times_bytes; /* of the side file; 0: there is none */
	uint64_t wait_bytes; /* of the profile of waits, likewise */
	uint64_t wait_times_bytes; /* of its side file, likewise */
};

/* The bytes of its profiles. */
static inline uint64_t store_window_bytes(const struct store_window *w)
{
	return w->bytes + w->wait_bytes;
}

/* The bytes of all its files. */
static inline uint64_t store_window_all(const struct store_window *w)
{
	return store_window_bytes(w) + w->times_bytes + w->wait_times_bytes;
}

struct store_opts {
	const char *path;
	struct reporter_keep keep;
	/*
	 * A window was removed by retention. From the pool thread that did,
	 * under the store's lock: must not call the store. May be NULL.
	 */
	void (*removed)(void *arg, const struct store_window *w);
	void *arg;
};

/* X(name): the counts, as in REPORTER_STATS. */
#define STORE_STATS(X)            \
	X(archive_windows)        \
	X(archive_bytes)          \
	X(archive_oldest_seconds) \
	X(archive_unexpected)     \
	X(archive_stopped)        \
	X(windows_removed)        \
	X(removed_bytes)          \
	X(remove_errors)          \
	X(times_failed)           \
	X(waits_failed)

struct store_stats {
#define X(name) uint64_t name;
	STORE_STATS(X)
#undef X
};

/*
 * Creates the directory if missing, locks it (-EBUSY), removes temporary files of
 * a killed profd and waits without a window, whose number is added to '*swept'. -EPERM: it belongs to
 * another user than the caller, or others can write to it; a symbolic link is
 * -ENOTDIR. 0 or -errno.
 */
int store_new(struct store **sp, const struct store_opts *opts,
	      uint64_t *swept);
void store_free(struct store *s);
/* The process that locked it, as its own pid namespace has it; 0: not known. */
pid_t store_holder(const char *path);
const char *store_dir(const struct store *s);

/* A window that is being written. */
struct store_write {
	struct store *store;
	struct reporter_outfile file; /* what is open, to write to file.fd */
	int dirfd; /* of the day */
	struct store_window window; /* its stem is final after the commit */
	uint64_t reserved; /* bytes that its room was made for */
	bool waits; /* it should have a profile of waits, ... */
	bool wait_times; /* ... and a side file of it */
};

#define STORE_WRITE_NONE \
	((struct store_write){ .dirfd = -1, .file = REPORTER_OUTFILE_NONE })

/*
 * Removes what is beyond the limits, so that there is room for the window, and
 * creates its file. Creates the directories again if they were removed. -ENOSPC:
 * too little free space, or another -errno. store_write_end() is due either way.
 */
int store_write_begin(struct store_write *w, struct store *s, const char *host,
		      int64_t wall_ns, uint64_t duration_ns,
		      enum reporter_format format);
/* Gives the file its name. 0, or -errno: nothing remains. */
int store_write_commit(struct store_write *w);
/*
 * Then: creates a file of another kind, STORE_TIMES, store_wait() of the window's
 * format or STORE_WAIT_TIMES, and gives it its name. 0 or -errno: there is none, the window stays.
 */
int store_write_beside(struct store_write *w, enum store_kind kind);
int store_write_commit_beside(struct store_write *w, enum store_kind kind);
/* Removes what was not committed, releases all. A copy of the store's counts. */
void store_write_end(struct store_write *w, struct store_stats *stats);

/* Windows in the order of wall time. */
struct store_list {
	struct store_window *windows;
	size_t n, cap;
};

#define STORE_LIST_MAX 200000

/*
 * The windows of a directory that overlap [from, to) of wall time, in nanoseconds;
 * with or without a running profd. '*list' is to be freed. -E2BIG: more than
 * STORE_LIST_MAX files; 0 or -errno.
 */
int store_list(struct store_list *list, const char *path, int64_t from,
	       int64_t to);
void store_list_free(struct store_list *list);
/* The path of a window's file of this kind, below the archive. */
#define STORE_PATH_MAX (STORE_DAY_MAX + STORE_FILE_MAX)
void store_window_path(const struct store_window *w, enum store_kind kind,
		       char path[STORE_PATH_MAX]);
/*
 * The bytes of the profile of waits of a window, by its path in the directory; 0: it has
 * none, or 'file' is no path of a window. 'file' may be NULL.
 */
uint64_t store_wait_bytes(const char *path, const char *file);
/*
 * Opens a window's file of this kind, below 'dirfd', which is the archive. A
 * descriptor of a regular file, or -errno.
 */
int store_window_open(const struct store_window *w, int dirfd,
		      enum store_kind kind);

#endif /* REPORTER_STORE_H */
