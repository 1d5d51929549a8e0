/* SPDX-License-Identifier: Apache-2.0 */
/* edit: what the files of this directory share; see reporter/edit/profile.h. */
#ifndef REPORTER_EDIT_H
#define REPORTER_EDIT_H

#include "base/base.h"
#include "reporter/edit/profile.h"
#include "reporter/reporter.h"

/* --- wire format: https://protobuf.dev/programming-guides/encoding/ --------- */

/* Field numbers, as in profile.proto. */
enum {
	EDIT_SAMPLE_TYPE = 1,
	EDIT_SAMPLE = 2,
	EDIT_MAPPING = 3,
	EDIT_LOCATION = 4,
	EDIT_FUNCTION = 5,
	EDIT_STRING = 6,
	EDIT_DROP_FRAMES = 7,
	EDIT_KEEP_FRAMES = 8,
	EDIT_TIME = 9,
	EDIT_DURATION = 10,
	EDIT_PERIOD_TYPE = 11,
	EDIT_PERIOD = 12,
	EDIT_COMMENT = 13,
	EDIT_DEFAULT_TYPE = 14,
	EDIT_DOC_URL = 15,

	EDIT_TYPE_TYPE = 1,
	EDIT_TYPE_UNIT = 2,
	EDIT_SAMPLE_LOCATION = 1,
	EDIT_SAMPLE_VALUE = 2,
	EDIT_SAMPLE_LABEL = 3,
	EDIT_LABEL_KEY = 1,
	EDIT_LABEL_STR = 2,
	EDIT_LABEL_NUM = 3,
	EDIT_LABEL_UNIT = 4,
	EDIT_ID = 1, /* of the three tables */
	EDIT_MAPPING_START = 2,
	EDIT_MAPPING_LIMIT = 3,
	EDIT_MAPPING_OFFSET = 4,
	EDIT_MAPPING_PATH = 5,
	EDIT_MAPPING_BUILD_ID = 6,
	EDIT_MAPPING_FLAGS = 7, /* the first of four */
	EDIT_LOCATION_MAPPING = 2,
	EDIT_LOCATION_ADDRESS = 3,
	EDIT_LOCATION_LINE = 4,
	EDIT_LOCATION_FOLDED = 5,
	EDIT_LINE_FUNCTION = 1,
	EDIT_LINE_LINE = 2,
	EDIT_LINE_COLUMN = 3,
	EDIT_FUNCTION_NAME = 2,
	EDIT_FUNCTION_SYSTEM = 3,
	EDIT_FUNCTION_FILE = 4,
	EDIT_FUNCTION_START = 5,
};

enum {
	EDIT_VARINT = 0,
	EDIT_FIXED64 = 1,
	EDIT_LEN = 2,
	EDIT_FIXED32 = 5,
};

struct edit_bytes {
	const uint8_t *p;
	size_t len;
};

struct edit_field {
	uint64_t number;
	unsigned int wire;
	uint64_t value; /* VARINT */
	struct edit_bytes bytes; /* LEN */
	struct edit_bytes whole; /* the field with its tag */
};

/* The next field of *msg, which is advanced. 1; 0: the end; -EBADMSG. */
int edit_next(struct edit_bytes *msg, struct edit_field *out);
/* The next number of a packed field, likewise. */
int edit_next_packed(struct edit_bytes *msg, uint64_t *out);

/* --- the profile ------------------------------------------------------------- */

struct edit_mapping {
	uint64_t id, start, limit, offset;
	uint64_t path, build_id; /* strings */
	bool flags[4]; /* has_functions and so on */
	/* Locations, those with names, and whether any was set. */
	uint32_t locations, named;
	bool set;
};

struct edit_location {
	uint64_t id, address;
	struct edit_bytes msg;
	uint32_t mapping; /* index + 1; 0: none */
	bool named, lined;
	uint32_t nlines; /* new ones; 0: as in the message */
	struct edit_line *lines;
};

struct edit_line {
	uint32_t function; /* index of a new one */
	uint32_t line;
};

struct edit_function {
	uint64_t id, name;
};

/* A function that the profile does not have yet; strings by their new ids. */
struct edit_new {
	struct hash_node node;
	uint32_t index;
	uint32_t name, system_name, file;
	uint32_t start_line;
};

struct reporter_profile {
	uint8_t *data;
	size_t len;
	int64_t time;
	struct edit_bytes *strings;
	size_t nstrings, strings_cap;
	struct edit_mapping *mappings; /* in the order of the file */
	size_t nmappings, mappings_cap;
	struct edit_location *locations; /* likewise */
	size_t nlocations, locations_cap;
	struct edit_function *functions; /* by id, once parsed */
	size_t nfunctions, functions_cap;
	uint64_t *comments;
	size_t ncomments, comments_cap;
	/* New ones. Id n of 'texts' is the string nstrings + n - 1; 0 is "". */
	struct strtab texts;
	struct hash known;
	struct edit_new **added;
	size_t nadded, added_cap;
	struct arena arena;
};

/* The bytes of a string. */
struct edit_bytes edit_text(const struct reporter_profile *p, uint64_t string);

/*
 * Reads a file that may be compressed; *out is malloc'd, and NULL on error. 0 or -errno,
 * *what.
 */
int edit_read(int fd, uint8_t **out, size_t *outlen, const char **what);
/* Decompresses or takes over 'data', malloc'd, by its first bytes; likewise. */
int edit_unpack(uint8_t *data, size_t len, uint8_t **out, size_t *outlen,
		const char **what);

#endif /* REPORTER_EDIT_H */
