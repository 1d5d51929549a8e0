/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_aside: the files that the worker failed on, by device, inode, size and
 * time of change: changed, it is another file. What may have had another cause
 * counts as one failure of the three that put a file aside. After a time it is
 * tried once more; each time it fails then, that time is twice as long. Times are
 * in ms, of any clock.
 */
#ifndef SYMBOLIZE_WORKER_ASIDE_H
#define SYMBOLIZE_WORKER_ASIDE_H

#include "symbolize/file.h"

#define WORKER_ASIDE_MAX 64
#define WORKER_ASIDE_WHOLE 3

struct worker_aside {
	struct {
		uint64_t dev, ino, size;
		int64_t mtime_ns;
		unsigned int thirds, times;
		uint64_t until; /* then it is tried again */
		const char *why;
		char *path;
	} files[WORKER_ASIDE_MAX]; /* the oldest first */
	size_t n;
	uint64_t retry_ms;
};

void worker_aside_fini(struct worker_aside *a);
/* A failure on 'f' of so many thirds; 'why' is a constant. True: put aside. */
bool worker_aside_add(struct worker_aside *a, const struct symbolizer_file *f,
		      unsigned int thirds, const char *why, uint64_t now);
/* It was read: what was not a whole failure was not its. */
void worker_aside_forgive(struct worker_aside *a,
			  const struct symbolizer_file *f);
/* Whether it is not to be read now. */
bool worker_aside_has(struct worker_aside *a, const struct symbolizer_file *f,
		      uint64_t now);
/* The i-th of those put aside: its path; NULL: there are no more. */
const char *worker_aside_at(const struct worker_aside *a, size_t i,
			    const char **why);

#endif /* SYMBOLIZE_WORKER_ASIDE_H */
