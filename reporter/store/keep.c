// SPDX-License-Identifier: Apache-2.0
/*
 * keep: retention. Before a window is created, the oldest ones are removed until all
 * limits hold with it: the bytes of all, their age, and the free space of the disk.
 *
 * Any user can fill a disk, so for free space neither the windows of the newest 24
 * hours nor the newest 256 MB are removed; writing stops instead, and resumes with the
 * first window for which there is room.
 *
 * The store knows how many bytes it has, not which windows: those are read from the
 * oldest day, KEEP_BATCH at a time. The bytes are counted at the first window and
 * again each hour, in case a user removed files. Names that are not ours, what is not
 * a regular file, and files of other users are never removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/store/internal.h"

#define KEEP_STEPS 1024 /* windows removed for a new one, at most */
#define KEEP_SCAN_NS (3600 * CLOCK_NSEC_PER_SEC)
#define KEEP_FREE_AGE (24 * 3600)
#define KEEP_FREE_BYTES (256ULL << 20)
#define KEEP_FIRST (64 << 10) /* a window, while none was written */
/* Files that are neither windows nor strange: the lock, the catalog. */
#define KEEP_LOCK ".lock"
#define KEEP_CATALOG "catalog."

static bool keep_is_ours(int dirfd, const char *name, struct stat *st)
{
	return !fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st->st_mode) && st->st_uid == geteuid();
}

/* --- the count ------------------------------------------------------------- */

static void keep_count(struct store *s, int dirfd, const char *file, bool top)
{
	struct store_stats *st = &s->stats;
	struct store_name name;
	struct stat at;

	if (file[0] == '.' && (!file[1] || !strcmp(file, "..") ||
			       (top && !strcmp(file, KEEP_LOCK))))
		return;
	if (top && (store_day_parse(file) ||
		    !strncmp(file, KEEP_CATALOG, strlen(KEEP_CATALOG))))
		return;
	if (!store_name_parse(file, &name) || !keep_is_ours(dirfd, file, &at)) {
		st->archive_unexpected++;
		return;
	}
	if (name.tmp)
		return;
	st->archive_bytes += at.st_size;
	st->archive_windows += name.kind < STORE_TIMES;
	s->newest = MAX(s->newest, name.begin + (int64_t)name.seconds);
}

static void keep_count_dir(struct store *s, const char *day)
{
	int fd = store_open_day(s->dirfd, day);
	DIR *dir = fd < 0 ? NULL : store_read_dir(fd);
	struct dirent *de;

	if (!dir)
		s->stats.archive_unexpected++;
	while (dir && (de = readdir(dir)))
		keep_count(s, fd, de->d_name, !*day);
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
}

static void keep_scan(struct store *s)
{
	char(*days)[STORE_DAY_MAX] = NULL;
	uint64_t now = clock_awake_ns();
	size_t i, n;

	/* Windows being written would be counted twice. */
	if (s->scanned && (s->writers || now - s->scanned < KEEP_SCAN_NS))
		return;
	if (store_days(s->dirfd, &days, &n))
		return;
	s->scanned = now;
	s->stats.archive_windows = s->stats.archive_bytes = 0;
	s->stats.archive_unexpected = 0;
	s->at = s->n = 0;
	memset(&s->stuck, 0, sizeof(s->stuck));
	keep_count_dir(s, "");
	for (i = 0; i < n; i++)
		keep_count_dir(s, days[i]);
	free(days);
}

uint64_t keep_estimate(const struct store *s)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < STORE_SIZES; i++)
		most = MAX(most, s->sizes[i]);
	return most ? most + most / 4 : KEEP_FIRST;
}

/* --- the oldest windows ---------------------------------------------------- */

static int keep_compare(const struct keep_item *a, const struct keep_item *b)
{
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return strcmp(a->stem, b->stem);
}

/* Adds a window to the sorted batch; the newest one gives way. */
static void keep_add(struct store *s, const struct keep_item *item)
{
	uint32_t i;

	VECTOR_SEARCH(i, s->n, keep_compare(&s->oldest[i], item) < 0);
	if (i == KEEP_BATCH || (i < s->n && !keep_compare(&s->oldest[i], item)))
		return;
	if (s->n == KEEP_BATCH)
		s->n--;
	memmove(&s->oldest[i + 1], &s->oldest[i],
		(s->n - i) * sizeof(*s->oldest));
	s->oldest[i] = *item;
	s->n++;
}

/* Of a directory, but no windows that begin at 'limit' or later. */
static void keep_collect(struct store *s, const char *day, int64_t limit)
{
	int fd = store_open_day(s->dirfd, day);
	DIR *dir = fd < 0 ? NULL : store_read_dir(fd);
	struct store_name name;
	struct keep_item item;
	struct dirent *de;
	struct stat st;

	while (dir && (de = readdir(dir))) {
		if (!store_name_parse(de->d_name, &name) || name.tmp ||
		    name.begin >= limit)
			continue;
		item = (struct keep_item){ .begin = name.begin,
					   .seconds = name.seconds };
		store_name_stem(&name, de->d_name, item.stem);
		snprintf(item.day, sizeof(item.day), "%s", day);
		if (keep_compare(&item, &s->stuck) > 0 &&
		    keep_is_ours(fd, de->d_name, &st))
			keep_add(s, &item);
	}
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
}

static int64_t keep_end_of_day(const char *day)
{
	struct tm tm = { 0 };

	if (sscanf(day, "%4d-%2d-%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday) !=
	    3)
		return INT64_MIN;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm) + 24LL * 3600;
}

/*
 * Removes the directory of a day if it is empty. Not while a window is written: its
 * file may have no name yet, and needs the directory for one.
 */
static bool keep_remove_day(const struct store *s, const char *day)
{
	return !s->writers && !unlinkat(s->dirfd, day, AT_REMOVEDIR);
}

/* Fills the batch from the first day that has windows, and from DIR itself. */
static void keep_refill(struct store *s)
{
	char(*days)[STORE_DAY_MAX] = NULL;
	size_t i, n = 0;

	s->at = s->n = 0;
	if (store_days(s->dirfd, &days, &n))
		return;
	for (i = 0; i < n && !s->n; i++) {
		/* Empty ones, of an earlier profd for example. */
		if (keep_remove_day(s, days[i]))
			continue;
		keep_collect(s, days[i], INT64_MAX);
		keep_collect(s, "", keep_end_of_day(days[i]));
	}
	if (!s->n)
		keep_collect(s, "", INT64_MAX);
	free(days);
}

static const struct keep_item *keep_oldest(struct store *s)
{
	if (s->at == s->n)
		keep_refill(s);
	return s->at < s->n ? &s->oldest[s->at] : NULL;
}

/* --- the removal ----------------------------------------------------------- */

/* One file. Its bytes; 0: there is none, or it cannot be removed. */
static uint64_t keep_unlink(struct store *s, int dirfd, const char *stem,
			    enum store_kind kind)
{
	char name[STORE_FILE_MAX];
	struct stat st;

	store_file(name, stem, kind);
	if (!keep_is_ours(dirfd, name, &st))
		return 0;
	if (unlinkat(dirfd, name, 0)) {
		s->stats.remove_errors++;
		return 0;
	}
	s->stats.archive_bytes -= MIN(s->stats.archive_bytes, st.st_size);
	s->stats.removed_bytes += st.st_size;
	return MAX(st.st_size, 1);
}

/* The next of the batch, its side file and its waits first. */
static void keep_remove(struct store *s)
{
	const struct keep_item *item = &s->oldest[s->at++];
	struct store_window w = {
		.begin_ns = item->begin * (int64_t)CLOCK_NSEC_PER_SEC,
		.duration_ns = item->seconds * CLOCK_NSEC_PER_SEC
	};
	uint64_t errors = s->stats.remove_errors, bytes;
	int fd = store_open_day(s->dirfd, item->day), kind;

	if (fd < 0)
		return;
	memcpy(w.day, item->day, sizeof(w.day));
	memcpy(w.stem, item->stem, sizeof(w.stem));
	w.times_bytes = keep_unlink(s, fd, item->stem, STORE_TIMES);
	for (kind = STORE_TIMES + 1; kind < STORE_KINDS; kind++)
		w.wait_bytes += keep_unlink(s, fd, item->stem, kind);
	for (kind = 0; kind < STORE_TIMES; kind++) {
		bytes = keep_unlink(s, fd, item->stem, kind);
		if (!bytes)
			continue;
		w.format = (enum reporter_format)kind;
		w.bytes = bytes;
	}
	close(fd);
	if (s->stats.remove_errors > errors)
		s->stuck = *item;
	if (*item->day)
		keep_remove_day(s, item->day);
	if (!w.bytes)
		return;
	s->stats.archive_windows -= s->stats.archive_windows > 0;
	s->stats.windows_removed++;
	if (s->opts.removed)
		s->opts.removed(s->opts.arg, &w);
}

/* --- the limits ------------------------------------------------------------ */

struct keep_space {
	uint64_t free; /* bytes for profd */
	uint64_t least; /* bytes that have to stay free; 0: no limit */
};

static void keep_measure(const struct store *s, struct keep_space *space)
{
	const struct reporter_keep *keep = &s->opts.keep;
	struct statvfs fs;

	*space = (struct keep_space){ 0 };
	if ((!keep->free_bytes && !keep->free_percent) ||
	    fstatvfs(s->dirfd, &fs))
		return;
	space->free = (uint64_t)fs.f_bavail * fs.f_frsize;
	space->least = keep->free_bytes;
	if (keep->free_percent)
		space->least = (uint64_t)fs.f_blocks * fs.f_frsize / 100 *
			       keep->free_percent;
}

/*
 * Of the catalog's files, which limit themselves to a quarter of the archive; never
 * more than half of it, so that windows remain whatever happens.
 */
static uint64_t keep_catalog(const struct store *s)
{
	static const char *const names[] = {
		KEEP_CATALOG "sqlite",
		KEEP_CATALOG "sqlite-wal",
		KEEP_CATALOG "bad.sqlite",
		KEEP_CATALOG "bad.sqlite-wal",
	};
	struct stat st;
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (keep_is_ours(s->dirfd, names[i], &st))
			n += st.st_size;
	return MIN(n, s->opts.keep.bytes / 2);
}

static bool keep_is_low(const struct keep_space *space, uint64_t removed,
			uint64_t need)
{
	return space->least && space->free + removed < space->least + need;
}

/* Whether a window is one that free space does not cost. */
static bool keep_protects(const struct store *s, const struct keep_item *item)
{
	return item->begin + (int64_t)item->seconds >
		       s->newest - KEEP_FREE_AGE ||
	       s->stats.archive_bytes <= KEEP_FREE_BYTES;
}

int keep_make_room(struct store *s, uint64_t need)
{
	const struct reporter_keep *keep = &s->opts.keep;
	int64_t since =
		keep->age_s ? time(NULL) - (int64_t)keep->age_s : INT64_MIN;
	uint64_t before, other, removed = 0;
	const struct keep_item *item;
	struct keep_space space;
	bool low;
	int n;

	keep_scan(s);
	other = keep_catalog(s);
	keep_measure(s, &space);
	before = s->stats.removed_bytes;
	for (n = 0; n < KEEP_STEPS; n++) {
		removed = s->stats.removed_bytes - before;
		low = keep_is_low(&space, removed, need + s->reserved);
		item = keep_oldest(s);
		if (!item)
			break;
		if (item->begin + (int64_t)item->seconds >= since &&
		    (!keep->bytes ||
		     s->stats.archive_bytes + s->reserved + need + other <=
			     keep->bytes) &&
		    (!low || keep_protects(s, item)))
			break;
		keep_remove(s);
	}
	item = keep_oldest(s);
	s->stats.archive_oldest_seconds = item ? MAX(item->begin, 0) : 0;
	removed = s->stats.removed_bytes - before;
	s->stats.archive_stopped =
		keep_is_low(&space, removed, need + s->reserved);
	return s->stats.archive_stopped ? -ENOSPC : 0;
}
