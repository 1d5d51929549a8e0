/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quarantine: files that workers failed on, by device, inode, size and mtime; a
 * file that was changed since counts as another. A failure that may have
 * another cause counts as a third: three of them quarantine a file. After a
 * time the file is tried again; each further failure doubles that time. Times
 * are in ms, of any clock.
 *
 * With QUARANTINE_MAX files the oldest of the user with the most is forgotten.
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
		enum symbolizer_reason why;
		uint32_t uid; /* that it was opened for */
		char *path;
	} files[QUARANTINE_MAX]; /* the oldest first */
	size_t n;
	uint64_t retry_ms;
	uint64_t counts[SYMBOLIZER_N_REASONS]; /* of quarantines, ever */
};

void quarantine_fini(struct quarantine *a);
/* Adds a failure on 'f'. True: 'f' is quarantined. */
bool quarantine_add(struct quarantine *a, const struct symbolizer_file *f,
		    unsigned int thirds, enum symbolizer_reason why,
		    uint64_t now);
/* It was read: forgets its thirds, unless it is quarantined. */
void quarantine_clear(struct quarantine *a, const struct symbolizer_file *f);
/* Whether it must not be read now. */
bool quarantine_has(struct quarantine *a, const struct symbolizer_file *f,
		    uint64_t now);
/* The file with this identity. False: it is not quarantined. */
bool quarantine_get(const struct quarantine *a,
		    const struct symbolizer_ident *id,
		    struct symbolizer_quarantined *out);
/* How many files are quarantined. */
size_t quarantine_count(const struct quarantine *a);
/* The i-th of them, the newest first. False: no more. */
bool quarantine_at(const struct quarantine *a, size_t i,
		   struct symbolizer_quarantined *out);
/* The sentence for a reason. */
const char *quarantine_text(enum symbolizer_reason why);

#endif /* SYMBOLIZE_QUARANTINE_H */
