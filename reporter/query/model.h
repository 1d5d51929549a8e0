/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: the merged profile, and what the files of this directory share; see
 * reporter/query/query.h. Each table has each of its elements once; indices begin
 * at 0, those of locations that samples hold are plain indices too.
 */
#ifndef REPORTER_QUERY_MODEL_H
#define REPORTER_QUERY_MODEL_H

#include "reporter/query/query.h"
#include "reporter/reporter.h"

#define QUERY_TYPES_MAX 32
#define QUERY_DEPTH_MAX (1U << 16) /* locations of a sample */
#define QUERY_LABELS_MAX 256 /* of a sample */
#define QUERY_SAMPLES_MAX (1U << 22)
#define QUERY_LOCATIONS_MAX (1U << 20)
#define QUERY_FUNCTIONS_MAX (1U << 20)
#define QUERY_MAPPINGS_MAX (1U << 16)
#define QUERY_STRINGS_MAX (1U << 22)
#define QUERY_BYTES_MAX ((size_t)1 << 30) /* of the merged profile */
#define QUERY_COMMENTS_MAX 1024
#define QUERY_NONE UINT32_MAX

/* How a term is decided: up to QUERY_SPAN by labels, the others by the catalog. */
enum query_matcher {
	QUERY_NUMBER,
	QUERY_NAME,
	QUERY_TRACE,
	QUERY_SPAN,
	QUERY_USER,
	QUERY_SUBTREE,
	QUERY_UNDER,
	QUERY_EXIT,
	QUERY_ENTRY,
	QUERY_ARGV,
	QUERY_MATCHERS,
};

enum query_exit {
	QUERY_EXIT_OK,
	QUERY_EXIT_FAIL,
	QUERY_EXIT_SIGNAL,
	QUERY_EXIT_CODE, /* by number */
	QUERY_EXIT_BY, /* a signal, by number */
};

struct reporter_query_term {
	size_t kind; /* index of the rows of REPORTER_QUERY_TERMS */
	bool negated;
	enum query_exit exit;
	int64_t num; /* -1 where the text is none */
	char *text;
};

/* All strings are ids of struct reporter_query.strings. */
struct query_type {
	uint32_t type, unit;
};

struct query_mapping {
	struct hash_node node;
	uint64_t start, limit, offset;
	uint32_t id;
	uint32_t file, build_id;
	bool flags[4]; /* has_functions and so on */
	bool widened; /* as wide as its addresses: any width is equal */
};

struct query_function {
	struct hash_node node;
	uint32_t id;
	uint32_t name, system_name, file;
	int64_t start_line;
};

struct query_line {
	uint32_t function; /* index, or NONE */
	int64_t line, column;
};

struct query_location {
	struct hash_node node;
	uint64_t address;
	uint32_t id;
	uint32_t mapping; /* index, or NONE */
	uint32_t nlines;
	bool folded;
	struct query_line lines[];
};

struct query_stack {
	struct hash_node node;
	uint32_t n;
	uint32_t locations[]; /* leaf first */
};

struct query_label {
	uint32_t key;
	uint32_t str; /* 0: a number */
	uint64_t unit; /* 64 bits: without padding, for memcmp(3) */
	int64_t num;
};

/* A set of labels, by key. */
struct query_labels {
	struct hash_node node;
	uint32_t n;
	struct query_label items[];
};

struct query_sample {
	struct hash_node node;
	const struct query_stack *stack;
	const struct query_labels *labels;
	int64_t values[];
};

/* The root frames for the ancestors of an image, by its id; the process first. */
struct query_line_of {
	struct hash_node node;
	uint32_t image;
	uint32_t n;
	uint32_t locations[];
};

/* A comment: "TEXT: NUMBER" of profd, whose numbers are added; or any other. */
struct query_comment {
	uint32_t text;
	bool counted;
	uint64_t count;
};

#define QUERY_PART_CPU 1
#define QUERY_PART_WAITS 2

struct reporter_query {
	struct reporter_query_opts opts;
	struct arena arena;
	struct strtab strings;
	uint32_t base_key, base_value; /* of what is subtracted */
	size_t inputs;
	unsigned int parts; /* QUERY_PART_: of wall time, which were added */
	bool ended; /* it is made */
	int64_t hidden; /* of the selected type, by reporter_query_hide_idle() */

	struct query_type types[QUERY_TYPES_MAX], period_type;
	size_t ntypes, selected;
	uint32_t default_type, drop_frames, keep_frames, doc_url;
	int64_t period, begin, end; /* ns since the epoch; 0: unknown */

	struct query_comment *comments;
	size_t ncomments, comments_cap;
	struct query_mapping **mappings;
	size_t nmappings, mappings_cap;
	struct query_function **functions;
	size_t nfunctions, functions_cap;
	struct query_location **locations;
	size_t nlocations, locations_cap;
	struct query_sample **samples;
	size_t nsamples, samples_cap;
	struct hash by_mapping, by_function, by_location, by_stack, by_labels,
		by_sample, by_image;
};

/* --- merge.c: elements of the merged profile; NULL or negative: -ENOMEM --------- */

int64_t query_saturate(int64_t a, int64_t b);
int64_t query_negate(int64_t v);
int query_mapping_index(struct reporter_query *q, struct query_mapping *m,
			uint32_t *index);
int query_function_index(struct reporter_query *q,
			 const struct query_function *f, uint32_t *index);
/* A location with 'n' lines. */
int query_location_index(struct reporter_query *q,
			 const struct query_location *l,
			 const struct query_line *lines, size_t n,
			 uint32_t *index);
/* A location that is only a name. */
int query_named_index(struct reporter_query *q, uint32_t name, uint32_t *index);
int query_labels_of(struct reporter_query *q, struct query_label *items,
		    size_t n, const struct query_labels **out);
int query_sample_add(struct reporter_query *q, const uint32_t *locations,
		     size_t n, const struct query_labels *labels,
		     const int64_t *values);
int query_comment_add(struct reporter_query *q, const char *text, bool counted,
		      uint64_t count);
/* -EFBIG: the merged profile is too large. */
int query_room(const struct reporter_query *q);

/* --- views ------------------------------------------------------------------------ */

const char *query_text(const struct reporter_query *q, uint32_t string);
/* The name of a line of a location, as `go tool pprof` has it: "" never. */
void query_frame_name(const struct reporter_query *q,
		      const struct query_location *l, uint32_t line,
		      struct strbuf *out);
/* Of that line; NULL: none. */
const struct query_function *query_function_of(const struct reporter_query *q,
					       const struct query_location *l,
					       uint32_t line);
/* How many frames a location is: one at least. */
uint32_t query_lines(const struct query_location *l);
/* By location: how many frames those before it are; to be freed. NULL: no memory. */
size_t *query_first_lines(const struct reporter_query *q);
/* All values are 0: it is left out. */
bool query_is_zero(const struct reporter_query *q,
		   const struct query_sample *s);
/* The value of a label as text; false: there is none. */
bool query_label_text(const struct reporter_query *q,
		      const struct query_labels *labels, const char *key,
		      struct strbuf *out);
/* A number for the image, or else the process, of a sample; 0: it has no such label. */
uint64_t query_who(const struct reporter_query *q,
		   const struct query_labels *labels);
/* Whether it is of a profile that was subtracted. */
bool query_is_base(const struct reporter_query *q,
		   const struct query_sample *s);
/* Whether the location is a frame that is no code, as [tables late]. */
bool query_is_mark(const struct reporter_query *q,
		   const struct query_location *l);
/* Absolute values of the selected type, as the share of a row refers to. */
int64_t query_total(const struct reporter_query *q);
const char *query_term_key(const struct reporter_query_term *t);
enum query_matcher query_term_matcher(const struct reporter_query_term *t);
/* Whether samples themselves have it, as a label. */
bool query_term_is_label(const struct reporter_query_term *t);
/* Whether samples need the ids of traces. */
bool query_traced(const struct reporter_query *q);
/* Whether a pattern matches all of 's'. */
bool query_glob(const char *p, const char *s);
/* The same for an executable: without a '/', its last component is enough. */
bool query_exe(const char *p, const char *path);

/* --- units.c: numbers as `go tool pprof` prints them ---------------------------- */

/* The unit for values from 'least' to 'most'. */
const char *query_unit(int64_t least, int64_t most, const char *unit);
void query_value(struct strbuf *out, int64_t v, const char *unit,
		 const char *as);
void query_percent(struct strbuf *out, int64_t v, int64_t total);

/* --- outputs ---------------------------------------------------------------------- */

/* Text on its way to a sink. */
struct query_out {
	struct sink *sink;
	struct strbuf text;
	bool failed;
};
void query_flush(struct query_out *o, size_t least);
void query_json_string(struct query_out *o, const char *s);

int write_pprof(struct reporter_query *q, struct sink *sink);
int write_folded(struct reporter_query *q, struct sink *sink);
int write_speedscope(struct reporter_query *q, struct sink *sink);
int write_json(struct reporter_query *q, struct sink *sink);
int write_firefox(struct reporter_query *q, struct sink *sink);

#endif /* REPORTER_QUERY_MODEL_H */
