/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile: a file that appears whole or not at all: written under a random
 * temporary name beside its own, synced, renamed, and its directory synced.
 * The temporary file is made with O_EXCL and O_NOFOLLOW, so nothing that stands
 * there is opened, followed or truncated. A process that is killed in between
 * leaves NAME.RANDOM.tmp behind and nothing under the final name.
 */
#ifndef REPORTER_OUTFILE_H
#define REPORTER_OUTFILE_H

#include <stdbool.h>

#define REPORTER_OUTFILE_TMP ".tmp"

struct reporter_outfile {
	int dirfd;
	int fd; /* to write to; -1: none */
	char *name; /* final, within the directory */
	char *tmp; /* NULL: written in place, as it is no regular file */
	bool keep; /* another file of that name is not replaced */
};

/* What is not open; abort and fini of it do nothing. */
#define REPORTER_OUTFILE_NONE \
	((struct reporter_outfile){ .dirfd = -1, .fd = -1 })

/*
 * Below a directory, which may be closed meanwhile; beside a file of that name.
 * reporter_outfile_commit() then finds the name that is free. Mode 0640.
 * From any thread. 0 or -errno.
 */
int reporter_outfile_open_at(struct reporter_outfile *f, int dirfd,
			     const char *name);
/*
 * At a path, replacing what is there; mode 0666 less the umask. Something that
 * is not a regular file (a pipe, /dev/null) is written to in place; a pipe
 * without a reader is -ENXIO. 0 or -errno.
 */
int reporter_outfile_open(struct reporter_outfile *f, const char *path);
/* 0 or -errno, and then nothing is left of it. Closes the file either way. */
int reporter_outfile_commit(struct reporter_outfile *f);
/* Removes what was written and releases all. */
void reporter_outfile_abort(struct reporter_outfile *f);
/* Releases what reporter_outfile_commit() left: the names and the directory. */
void reporter_outfile_fini(struct reporter_outfile *f);

/*
 * Whether 'path' is a regular file that a profile may replace without asking:
 * it is empty, or a profile (pprof, raw or as gzip or zstd). What lies in it is
 * looked at up to 64 KiB. False also if it cannot be read.
 */
bool reporter_is_profile(const char *path);

#endif /* REPORTER_OUTFILE_H */
