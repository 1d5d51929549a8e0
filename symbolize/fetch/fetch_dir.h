/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_dir: the directory of downloaded debug files, ".build-id/xx/yyyy.debug" as
 * below /usr/lib/debug. Its calls may block; one thread at a time. Anyone with the
 * right to may delete a file at any time.
 */
#ifndef SYMBOLIZE_FETCH_DIR_H
#define SYMBOLIZE_FETCH_DIR_H

#include "symbolize/fetch/fetch_queue.h"

/* A host's file system keeps so much free: one part in so many. */
#define FETCH_DIR_FREE 20

struct fetch_dir {
	int fd; /* ".build-id" */
	uint64_t max; /* bytes */
	uint64_t bytes, evicted;
	bool scanned; /* 'bytes' is known */
	char tmp[32]; /* the file being written */
};

/*
 * Creates what is missing. -EPERM: it belongs to another user, or others may write
 * to it; -ELOOP: a symlink; or another -errno.
 */
int fetch_dir_open(struct fetch_dir *d, const char *path, uint64_t max);
void fetch_dir_close(struct fetch_dir *d);

/* An empty file to write to; -ENOSPC: too little is free; or -errno. */
int fetch_dir_create(struct fetch_dir *d);
/* What was written to it is the debug file of 'id'. Others may go. 0 or -errno. */
int fetch_dir_take(struct fetch_dir *d, const struct fetch_id *id);
/* It is nothing. */
void fetch_dir_drop(struct fetch_dir *d);

#endif /* SYMBOLIZE_FETCH_DIR_H */
