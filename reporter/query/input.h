/* SPDX-License-Identifier: Apache-2.0 */
/* input: one profile while it is added to the merged one; see reporter/query/query.h. */
#ifndef REPORTER_QUERY_INPUT_H
#define REPORTER_QUERY_INPUT_H

#include "reporter/edit/edit.h"
#include "reporter/times.h"
#include "reporter/query/model.h"
#include "reporter/query/part.h"

/* Tables by id; strings are ids of the input; 'index' is of the merged profile. */
struct input_mapping {
	uint64_t id;
	uint64_t start, limit, offset, file, build_id;
	bool flags[4];
	uint32_t index;
};

struct input_function {
	uint64_t id;
	uint64_t name, system_name, file, start_line;
	uint32_t index;
};

struct input_location {
	uint64_t id;
	uint64_t mapping, address, folded;
	uint32_t first, nlines; /* of 'lines' */
	uint32_t index;
};

struct input_line {
	uint64_t function, line, column;
};

struct input_type {
	uint64_t type, unit;
};

struct input_label {
	uint64_t key, str, unit;
	int64_t num;
};

struct input {
	struct reporter_query *q;
	const char *what;
	bool base, ours; /* ours: by profd */
	/* Of a part: what replaces the values of samples; NULL: nothing does. */
	struct query_part *part;
	int64_t *sums;
	/* The same, apart by traces: each is a sample; and the current one. */
	struct query_splits *splits;
	const struct query_split *split;
	size_t nsamples, sample; /* Sample messages, and the current one */
	struct edit_bytes *strings;
	uint32_t *string_ids; /* of the merged profile; NONE: not yet */
	size_t nstrings, strings_cap;
	struct input_mapping *mappings;
	size_t nmappings, mappings_cap;
	uint64_t main_mapping; /* id of the first one */
	struct input_function *functions;
	size_t nfunctions, functions_cap;
	struct input_location *locations;
	size_t nlocations, locations_cap;
	struct input_line *lines;
	size_t nlines, lines_cap;
	uint64_t *comments;
	size_t ncomments, comments_cap;
	struct input_type types[QUERY_TYPES_MAX], period_type;
	size_t ntypes;
	size_t columns[QUERY_TYPES_MAX]; /* of the merged profile, by type */
	uint64_t time, duration, period;
	uint64_t default_type, drop_frames, keep_frames, doc_url;
	/* The current sample. */
	uint32_t *stack;
	size_t depth, stack_cap;
	int64_t values[QUERY_TYPES_MAX + 1]; /* the last: of no column */
	size_t nvalues;
	/* The labels of its set, and all sets. */
	struct input_label raw[QUERY_LABELS_MAX + 1];
	struct query_label labels[QUERY_LABELS_MAX + 3]; /* and ids, and base */
	char ids_text[2][IDS_HEX];
	size_t nraw;
	bool nomem;
	struct hash sets;
	struct arena arena;
};

int input_bad(struct input *in, const char *what);
/* The tables of a profile. 0, -EBADMSG, -EFBIG, -ENOMEM. */
int input_parse(struct input *in, struct edit_bytes data);
/* Frees what input_parse() has made. */
void input_tables_fini(struct input *in);
/* The element with an id of a table sorted by it, which each element begins with. */
void *input_find(void *table, size_t n, size_t size, uint64_t id);
/* The merged profile's id of a string. */
int input_string(struct input *in, uint64_t string, uint32_t *id);
/* The labels of a sample; NULL: it is not taken. */
int input_labels(struct input *in, struct edit_bytes msg,
		 const struct query_labels **out);
/* Adds a frame to the current stack, from the leaf to the root. */
int input_push(struct input *in, uint32_t location);
/* Then those that labels and the tree of processes put below the root. */
int input_roots(struct input *in, const struct query_labels *labels);
/* The samples, added to the merged profile. */
int input_samples(struct input *in, struct edit_bytes data);
/* reporter_query_add() of a part, or NULL: of all. */
int input_add(struct reporter_query *q, struct edit_bytes data, bool base,
	      struct query_part *part, const char **what);

#endif /* REPORTER_QUERY_INPUT_H */
