/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dir: the directory of the cache on disk: OWNER-KEY.rows, OWNER-KEY.names and
 * OWNER-KEY.units of files that belong to user OWNER, and DIR_KNOWN. Anyone may delete any of them at
 * any time. A file is written whole under another name, then renamed; nothing is
 * synced: after a crash of the host, its checksum shows whether it is whole.
 *
 * The time of its last change is the time of its last use, to within an hour.
 * When they need more than the byte budget, the owner with the most bytes loses
 * the file that was not used for longest. Those of root have half of the budget
 * in any case.
 */
#ifndef SYMBOLIZE_DIR_H
#define SYMBOLIZE_DIR_H

#include <sys/queue.h>

#include "symbolize/cache/entry.h"

#define DIR_NAME_MAX 64
#define DIR_KNOWN "known"

struct dir_owner;

struct dir {
	int fd;
	uint64_t max; /* bytes */
	/* The writer's: */
	bool scanned;
	struct hash files;
	TAILQ_HEAD(dir_owners, dir_owner) owners;
	uint64_t bytes, evicted;
};

/*
 * Opens or creates it. -EPERM: it belongs to another user, or others may write to
 * it; -ELOOP: it is a symlink; or another -errno.
 */
int dir_open(struct dir *d, const char *path, uint64_t max);
void dir_close(struct dir *d);

/* "OWNER-KEY.KIND" */
void dir_name(char name[DIR_NAME_MAX], const struct entry_id *id,
	      uint32_t owner);

/*
 * A whole file, malloc'd. Any thread. -ENOENT; -EBADMSG: no file of profd's; or
 * another -errno.
 */
int dir_read(const struct dir *d, const char *name, uint8_t **bytes,
	     size_t *len);
/* A descriptor for reading a file of 'max' bytes at most. Likewise. */
int dir_open_file(const struct dir *d, const char *name, uint64_t max,
		  uint64_t *size);
/* Reads 'len' bytes at 'at' of such a file. 0, -EBADMSG (they are not there), -errno. */
int dir_read_part(int fd, uint64_t at, void *bytes, size_t len);
/* What changes when a file is replaced. */
struct dir_stamp {
	uint64_t ino, size;
	int64_t mtime_s;
};

/* Of a file; zeros: there is none. Any thread. */
struct dir_stamp dir_stamp(const struct dir *d, const char *name);
/* Removes a damaged or old file. Any thread. */
void dir_remove(const struct dir *d, const char *name);

/* A part of a payload: in memory, or if 'p' is NULL in a file, at 'at'. */
struct dir_part {
	const void *p;
	size_t len;
	int fd;
	uint64_t at;
};

/*
 * Writes an entry of 'head', which is sealed, and evicts others. One thread at a
 * time. 0 or -errno.
 */
int dir_write(struct dir *d, const char *name, uint32_t owner,
	      const struct entry_head *head, const void *witness,
	      const struct dir_part *payload, size_t n);

#endif /* SYMBOLIZE_DIR_H */
