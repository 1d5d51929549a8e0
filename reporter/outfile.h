/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfile: a file that is there whole or not at all: written under a name that
 * ends in .tmp, synced, renamed, and its directory synced. Who is killed in
 * between leaves the .tmp behind and nothing under the final name.
 */
#ifndef REPORTER_OUTFILE_H
#define REPORTER_OUTFILE_H

#include <stdbool.h>

#define OUTFILE_TMP ".tmp"

struct outfile {
	int dirfd;
	int fd; /* to write to; -1: none */
	char *name; /* final, within the directory */
	char *tmp;
	bool keep; /* another file of that name is not replaced */
};

/*
 * Below a directory that stays the caller's; beside a file of that name.
 * outfile_commit() then finds the name that is free. 0 or -errno.
 */
int outfile_open_at(struct outfile *f, int dirfd, const char *name);
/*
 * At a path, replacing what is there. Something that is not a regular file (a
 * pipe, /dev/null) is written to as it is. 0 or -errno.
 */
int outfile_open(struct outfile *f, const char *path);
/* 0 or -errno, and then nothing is left of it. Closes either way. */
int outfile_commit(struct outfile *f);
void outfile_abort(struct outfile *f);
/* Closes what is open and forgets it. */
void outfile_fini(struct outfile *f);

#endif /* REPORTER_OUTFILE_H */
