/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile: a file that appears completely or not at all. It is written without a
 * name in the same directory (O_TMPFILE), synced, linked under a random temporary
 * name, renamed, and the directory is synced. If the process is killed while it
 * writes, nothing remains.
 *
 * Where the file system lacks O_TMPFILE (NFS, vfat), or /proc is not mounted, the file
 * has the temporary name from the start: O_EXCL and O_NOFOLLOW ensure that no existing
 * file is opened, followed or truncated. If the process is killed then,
 * NAME.RANDOM.tmp remains, and nothing under the final name.
 */
#ifndef REPORTER_OUTFILE_H
#define REPORTER_OUTFILE_H

#include <stdbool.h>

#define REPORTER_OUTFILE_TMP ".tmp"

struct reporter_outfile {
	int dirfd;
	int fd; /* to write to; -1: none */
	char *name; /* final, within the directory */
	char *tmp; /* NULL: it has no name yet */
	bool in_place; /* not a regular file */
	bool keep; /* an existing file is not replaced */
};

/* A file that is not open; abort and fini do nothing. */
#define REPORTER_OUTFILE_NONE \
	((struct reporter_outfile){ .dirfd = -1, .fd = -1 })

/*
 * In a directory, whose descriptor is duplicated. An existing file of that name is
 * kept: reporter_outfile_commit() then uses "NAME-1" and so on. Mode 0640. Any
 * thread. 0 or -errno.
 */
int reporter_outfile_open_at(struct reporter_outfile *f, int dirfd,
			     const char *name);
/*
 * At a path, replacing an existing file; mode 0666 less the umask. What is not a
 * regular file (a pipe, /dev/null) is written in place; a pipe without a reader
 * is -ENXIO. 0 or -errno.
 */
int reporter_outfile_open(struct reporter_outfile *f, const char *path);
/* 0, or -errno: no file remains. Closes the file either way. */
int reporter_outfile_commit(struct reporter_outfile *f);
/* Removes the temporary file and releases all. */
void reporter_outfile_abort(struct reporter_outfile *f);
/* After a commit: releases the names and the directory. */
void reporter_outfile_fini(struct reporter_outfile *f);

/*
 * Whether 'path' is a regular file that a profile may replace without asking: an
 * empty one, or a profile (pprof, raw, gzip or zstd) by its first 64 KiB. False
 * if it cannot be read.
 */
bool reporter_is_profile(const char *path);

#endif /* REPORTER_OUTFILE_H */
