/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: the directory that windows are written to. One profd holds it at a
 * time, by a lock that goes with the process.
 */
#ifndef REPORTER_ARCHIVE_H
#define REPORTER_ARCHIVE_H

#include <stdint.h>

#include "reporter/outfile.h"

struct archive;

/*
 * Makes it if missing, locks it (-EBUSY), sweeps it. -EPERM: it belongs to
 * another user than the caller, or others can write to it; a symbolic link is
 * -ENOTDIR. 0 or -errno.
 */
int archive_new(struct archive **ap, const char *path);
void archive_free(struct archive *a);
/* Unfinished files of a killed run that were removed. */
uint64_t archive_swept(const struct archive *a);
/*
 * A file for a window: cpu-HOST-20260821T075900Z-60s.pb.gz, of this ending.
 * Where the directory was removed it is made again.
 * From any thread. 0 or -errno.
 */
int archive_create(struct archive *a, struct reporter_outfile *f,
		   const char *host, int64_t wall_ns, uint64_t duration_ns,
		   const char *ending);
const char *archive_dir(const struct archive *a);
/* malloc'd path of a file of the archive; NULL without memory. */
char *archive_path(const struct archive *a, const char *name);

#define ARCHIVE_NAME_MAX 160
/* The name's stem, without ".pb" and so on: also for what HTTP hands out. */
void archive_stem(char buf[ARCHIVE_NAME_MAX], const char *host, int64_t wall_ns,
		  uint64_t duration_ns);

#endif /* REPORTER_ARCHIVE_H */
