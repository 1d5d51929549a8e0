/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what the files of the store share. All under the store's mutex. */
#ifndef REPORTER_STORE_INTERNAL_H
#define REPORTER_STORE_INTERNAL_H

#include <dirent.h>
#include <pthread.h>

#include "reporter/store/store.h"

#define KEEP_BATCH 64
#define STORE_SIZES 4

/* A window that retention may remove. */
struct keep_item {
	char day[STORE_DAY_MAX];
	char stem[STORE_STEM_MAX];
	int64_t begin;
	uint64_t seconds;
};

#define STORE_SPARE 4

struct store {
	pthread_mutex_t mutex;
	struct store_opts opts;
	char *path;
	int dirfd, lockfd;
	struct store_stats stats;
	uint64_t reserved; /* bytes of windows being written */
	uint32_t writers;
	/*
	 * Held back at the limit of descriptors, closed when a window begins: its
	 * directory, its file, and two while old ones are removed.
	 */
	int spare[STORE_SPARE];
	uint32_t nspare;
	/* Retention. */
	uint64_t sizes[STORE_SIZES]; /* of the last windows, with side files */
	uint32_t nsizes;
	uint64_t scanned; /* clock_awake_ns() of the last count; 0: never */
	int64_t newest; /* end of the newest window, seconds */
	struct keep_item oldest[KEEP_BATCH]; /* by age; from 'at' to 'n' */
	uint32_t at, n;
	struct keep_item stuck; /* up to here nothing can be removed */
};

/* The day's directory, opened. -EPERM: of another user, or open to others. */
int store_open_day(int dirfd, const char *day);
/* A directory to read; the descriptor is duplicated. NULL: errno. */
DIR *store_read_dir(int dirfd);
/* The days of an archive in their order, malloc'd; '*n' of them. 0 or -errno. */
int store_days(int dirfd, char (**daysp)[STORE_DAY_MAX], size_t *n);
/*
 * Removes windows until there is room for 'need' bytes more. 0, or -ENOSPC: too
 * little free space.
 */
int keep_make_room(struct store *s, uint64_t need);
/* The room that a window needs, by the last ones. */
uint64_t keep_estimate(const struct store *s);

#endif /* REPORTER_STORE_INTERNAL_H */
