/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: the profile's wire format, written as a stream.
 *
 * The fields of a protobuf message may come in any order, and those of a
 * repeated field each by itself. So the profile never exists as a tree: every
 * sample, location, function, mapping and string is one small message, packed
 * alone into one buffer that is used again, with the field's number and its
 * length in front. Ids are the caller's: 1, 2, 3... in the order of writing;
 * strings are numbered from 0, and the first one written must be "".
 */
#ifndef REPORTER_PPROF_H
#define REPORTER_PPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/sink.h"

struct pprof;

/* 'sink' is borrowed; its errors are its own. 0 or -ENOMEM. */
int pprof_new(struct pprof **pp, struct sink *sink);
void pprof_free(struct pprof *p);

struct pprof_type {
	uint32_t type, unit; /* strings */
};

struct pprof_header {
	int64_t time_ns; /* since the epoch */
	int64_t duration_ns;
	const struct pprof_type *types; /* sample types */
	size_t ntypes;
	struct pprof_type period_type;
	int64_t period;
	uint32_t default_type; /* string */
	const int64_t *comments; /* strings */
	size_t ncomments;
};

void pprof_header(struct pprof *p, const struct pprof_header *h);

struct pprof_label {
	uint32_t key; /* string */
	uint32_t str; /* string; 0: a number */
	int64_t num;
};

#define PPROF_LABELS_MAX 16

struct pprof_sample {
	const uint32_t *locations; /* ids, leaf first */
	size_t nlocations;
	const int64_t *values; /* one a sample type */
	size_t nvalues;
	const struct pprof_label *labels;
	size_t nlabels; /* <= PPROF_LABELS_MAX */
};

void pprof_sample(struct pprof *p, const struct pprof_sample *s);

struct pprof_mapping {
	uint64_t id;
	uint64_t start, limit, offset;
	uint32_t filename, build_id; /* strings */
	/* Of its functions some have such. */
	bool filenames, line_numbers, inline_frames;
};

void pprof_mapping(struct pprof *p, const struct pprof_mapping *m);

struct pprof_line {
	uint32_t function; /* id */
	uint32_t line; /* 0: unknown */
};

struct pprof_location {
	uint64_t id, mapping_id, address;
	const struct pprof_line *lines; /* innermost inlined function first */
	size_t nlines;
};

void pprof_location(struct pprof *p, const struct pprof_location *l);

struct pprof_function {
	uint64_t id;
	uint32_t name, system_name, filename; /* strings */
	uint32_t start_line;
};

void pprof_function(struct pprof *p, const struct pprof_function *f);
/* Bytes that are not UTF-8 become U+FFFD, one each. */
void pprof_string(struct pprof *p, const char *s);

/* 0, or -ENOMEM if anything was left out for lack of memory. */
int pprof_error(const struct pprof *p);

/* Length of the valid UTF-8 sequence at 's', which is not at its end; or 0. */
size_t pprof_utf8(const unsigned char *s);

#endif /* REPORTER_PPROF_H */
