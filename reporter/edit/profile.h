/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: a pprof profile in memory, whose locations get other functions and
 * lines. All else stays as it is in the file, with its order: samples, labels,
 * comments, and fields that are not known here.
 *
 * A profile may come from anywhere: sizes and counts are limited, and all ids and
 * strings used here are checked.
 */
#ifndef REPORTER_PROFILE_H
#define REPORTER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reporter_line;
struct reporter_profile;

#define REPORTER_PROFILE_MAX (256U << 20) /* bytes, compressed and not */
#define REPORTER_PROFILE_MAPPINGS (1U << 16)
#define REPORTER_PROFILE_LOCATIONS (1U << 20)
#define REPORTER_PROFILE_FUNCTIONS (1U << 20)
#define REPORTER_PROFILE_STRINGS (1U << 22)

/*
 * Reads a profile in raw, gzip or zstd form. 0, or -errno: -EBADMSG, '*what'
 * (static) is what is wrong with it; -EFBIG, '*what' is the limit; of read(2).
 */
int reporter_profile_read(int fd, struct reporter_profile **pp,
			  const char **what);
/* The same with (data, len), not compressed: malloc'd, owned in any case. */
int reporter_profile_parse(void *data, size_t len, struct reporter_profile **pp,
			   const char **what);
void reporter_profile_free(struct reporter_profile *p);

/* Time of its begin in nanoseconds since the epoch; 0: unknown. */
int64_t reporter_profile_time(const struct reporter_profile *p);
/* Copies its i-th comment, cut to 'size'. False: there is none. */
bool reporter_profile_comment(const struct reporter_profile *p, size_t i,
			      char *out, size_t size);

struct reporter_profile_mapping {
	/* "" if there is none, or if it is longer or has a NUL. */
	char path[4096];
	char build_id[129]; /* text; hexadecimal by convention */
	uint64_t start; /* of the addresses */
	uint64_t offset; /* in the file, of 'start' */
};

size_t reporter_profile_mappings(const struct reporter_profile *p);
void reporter_profile_mapping(const struct reporter_profile *p, size_t i,
			      struct reporter_profile_mapping *out);

#define REPORTER_PROFILE_NONE SIZE_MAX

struct reporter_profile_location {
	size_t mapping; /* its index, or NONE */
	uint64_t address;
	/*
	 * Each function has a name that is not invented: not empty, not an
	 * address, not "FILE+0x12" with the name of the mapping's file.
	 */
	bool named;
	bool lined; /* a source line is known */
};

size_t reporter_profile_locations(const struct reporter_profile *p);
void reporter_profile_location(const struct reporter_profile *p, size_t i,
			       struct reporter_profile_location *out);
/*
 * Replaces the lines of a location, innermost first; at least one. Copied. 0,
 * -ENOMEM, -EFBIG.
 */
int reporter_profile_set(struct reporter_profile *p, size_t i,
			 const struct reporter_line *lines, size_t n);

/* Writes it to 'fd', in an enum reporter_format. 0 or -errno. */
int reporter_profile_write(struct reporter_profile *p, int fd, int format);

#endif /* REPORTER_PROFILE_H */
