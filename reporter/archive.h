/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: the directory that windows are written to. A lock on a file in it
 * keeps other instances of profd out.
 */
#ifndef REPORTER_ARCHIVE_H
#define REPORTER_ARCHIVE_H

#include <stdint.h>

#include "reporter/outfile.h"

struct archive;

/*
 * Creates the directory if missing, locks it (-EBUSY), removes temporary files of
 * a killed profd, whose number is added to '*swept'. -EPERM: it belongs to
 * another user than the caller, or others can write to it; a symbolic link is
 * -ENOTDIR. 0 or -errno.
 */
int archive_new(struct archive **ap, const char *path, uint64_t *swept);
void archive_free(struct archive *a);
/*
 * Creates a file for a window: cpu-HOST-20260821T075900Z-60s.pb.gz, with this
 * ending. Creates the directory again if it was removed. Any thread. 0 or
 * -errno.
 */
int archive_create(struct archive *a, struct reporter_outfile *f,
		   const char *host, int64_t wall_ns, uint64_t duration_ns,
		   const char *ending);
const char *archive_dir(const struct archive *a);

#define ARCHIVE_NAME_MAX 160
/* The name without its ending: HTTP uses it, too. */
void archive_stem(char buf[ARCHIVE_NAME_MAX], const char *host, int64_t wall_ns,
		  uint64_t duration_ns);

#endif /* REPORTER_ARCHIVE_H */
