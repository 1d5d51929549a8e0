/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine: files that workers failed on, by device, inode, size and mtime; a
 * file that was changed since counts as another. A failure that may have
 * another cause counts as a third: three of them quarantine a file. After a
 * time the file is tried again; each further failure doubles that time. Times
 * are in ms, of any clock.
 */
#ifndef SYMBOLIZE_QUARANTINE_H
#define SYMBOLIZE_QUARANTINE_H

#include "symbolize/file.h"

#define QUARANTINE_MAX 64
#define QUARANTINE_WHOLE 3 /* thirds */

struct quarantine {
	struct {
		struct symbolizer_ident ident;
		unsigned int thirds, times;
		uint64_t until; /* when it is tried again */
		const char *why;
		char *path;
	} files[QUARANTINE_MAX]; /* the oldest first */
	size_t n;
	uint64_t retry_ms;
};

void quarantine_fini(struct quarantine *a);
/* Adds a failure on 'f'; 'why' is a constant. True: 'f' is quarantined. */
bool quarantine_add(struct quarantine *a, const struct symbolizer_file *f,
		    unsigned int thirds, const char *why, uint64_t now);
/* It was read: forgets its thirds, unless it is quarantined. */
void quarantine_clear(struct quarantine *a, const struct symbolizer_file *f);
/* Whether it must not be read now. */
bool quarantine_has(struct quarantine *a, const struct symbolizer_file *f,
		    uint64_t now);
/* Why the file with this identity is quarantined, or NULL. */
const char *quarantine_why(const struct quarantine *a,
			   const struct symbolizer_ident *id);
/* The path of the i-th quarantined file; NULL: no more. */
const char *quarantine_at(const struct quarantine *a, size_t i,
			  const char **why);

#endif /* SYMBOLIZE_QUARANTINE_H */
