/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name: the names of files in the archive. DIR/2026-11-23/STEM.pb.gz is a window,
 * STEM.times.zst its side file, STEM is cpu-HOST-20261123T110000Z-60s, or that and
 * "-1" if the name was taken. The waits of the same time are in a profile with "wait"
 * in place of "cpu", and so is its side file. Nothing else in DIR is touched.
 */
#ifndef REPORTER_STORE_NAME_H
#define REPORTER_STORE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"

#define STORE_STEM_MAX 160 /* with the NUL */
#define STORE_FILE_MAX (STORE_STEM_MAX + 16)
#define STORE_DAY_MAX 11 /* "2026-11-23" and the NUL */
#define STORE_TIMES_ENDING ".times.zst"

enum store_kind {
/* The first ones as in enum reporter_format. */
#define X(name, ending) STORE_##name,
	REPORTER_FORMATS(X)
#undef X
	STORE_TIMES,
/* These likewise. */
#define X(name, ending) STORE_WAIT_##name,
	REPORTER_FORMATS(X)
#undef X
	STORE_WAIT_TIMES, /* the side file of waits */
	STORE_KINDS,
};

/* The kind of a profile of waits. */
static inline enum store_kind store_wait(int format)
{
	return (enum store_kind)(STORE_WAIT_RAW + format);
}

struct store_name {
	int64_t begin; /* seconds since the epoch */
	uint64_t seconds; /* duration */
	unsigned int copy; /* of a name that was taken; 0: none */
	enum store_kind kind;
	size_t stem; /* bytes before the ending */
	bool tmp; /* a file that was not completed */
};

/* False: no name of profd's. */
bool store_name_parse(const char *name, struct store_name *out);
bool store_day_parse(const char *name);
/* The stem of the window that the file is, or belongs to. */
void store_name_stem(const struct store_name *n, const char *name,
		     char stem[STORE_STEM_MAX]);
/* The name of a file of the window with that stem. */
void store_file(char name[STORE_FILE_MAX], const char *stem,
		enum store_kind kind);
/* The UTC day of a time. */
void store_day(char day[STORE_DAY_MAX], int64_t wall_ns);
/* "HOST" may have any bytes. HTTP names downloads by it, too. */
void store_stem(char stem[STORE_STEM_MAX], const char *host, int64_t wall_ns,
		uint64_t duration_ns);

#endif /* REPORTER_STORE_NAME_H */
