/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: pprof profiles merged into one, whose samples are selected by their labels,
 * and written as a profile, a table, a tree, or a file of another program.
 *
 * Inputs are added one at a time and freed before the next, so that memory holds one
 * input and the merged result. Profiles may come from anywhere: all ids and strings
 * are checked, counts and depths are limited, sums saturate.
 */
#ifndef REPORTER_QUERY_H
#define REPORTER_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct reporter_query;
struct sink;

/* --- terms: which samples -------------------------------------------------------- */

/*
 * X(KEY, matcher): kinds of terms. The first ones are labels of samples: a NUMBER, a
 * NAME, or an id of a TRACE or SPAN, whose labels are "trace_id" and "span_id". Of the others, the catalog knows the images. Another kind is a row here and, for
 * the command line, two in profiler/cmd/options.def.
 */
#define REPORTER_QUERY_LABELS(X) \
	X(pid, NUMBER)           \
	X(tid, NUMBER)           \
	X(comm, NAME)            \
	X(thread, NAME)          \
	X(exe, NAME)             \
	X(container, NAME)       \
	X(cgroup, NAME)          \
	X(unit, NAME)            \
	X(service, NAME)         \
	X(process, NAME)         \
	X(image, NAME)           \
	X(trace, TRACE)          \
	X(span, SPAN)
#define REPORTER_QUERY_HISTORY(X) \
	X(user, USER)             \
	X(subtree, SUBTREE)       \
	X(under, UNDER)           \
	X(exit, EXIT)             \
	X(entry, ENTRY)           \
	X(argv, ARGV)
#define REPORTER_QUERY_TERMS(X)  \
	REPORTER_QUERY_LABELS(X) \
	REPORTER_QUERY_HISTORY(X)

/* The labels of a sample's trace, in hex. */
#define REPORTER_LABEL_TRACE "trace_id"
#define REPORTER_LABEL_SPAN "span_id"

#define REPORTER_QUERY_TERMS_MAX 256
#define REPORTER_QUERY_TEXT_MAX 4096

struct reporter_query_term;

/*
 * A sample is taken if it matches one positive term of each kind that has any, and
 * no negated one. Zeroed before use.
 */
struct reporter_query_terms {
	struct reporter_query_term *items;
	size_t n, cap;
};

/*
 * Adds the term KEY=VALUE. A VALUE that begins with '!' and a KEY that begins with
 * "not-" are negated. Of a name and of argv, '*' matches any text, '?' a character, and
 * '\' makes the next character a plain one; of an exe a pattern without '/' is matched
 * with the last component. 0; -ENOENT: no such KEY; -EINVAL, and '*want' (static) is
 * what VALUE has to be; -E2BIG: too many; -ENOMEM.
 */
int reporter_query_terms_parse(struct reporter_query_terms *t, const char *key,
			       const char *value, const char **want);
/* The first KEY that only the catalog can answer; NULL: there is none. */
const char *reporter_query_terms_history(const struct reporter_query_terms *t);
/* The first KEY that is of threads, not of images; NULL: there is none. */
const char *reporter_query_terms_thread(const struct reporter_query_terms *t);
/* Whether there are terms of traces, so that samples need their ids. */
bool reporter_query_terms_traced(const struct reporter_query_terms *t);
/* The KEY number 'i', without "not-"; NULL: there are not so many. */
const char *reporter_query_terms_key(size_t i);
void reporter_query_terms_fini(struct reporter_query_terms *t);

/* The value of a label; without a text it is a number. */
struct reporter_query_value {
	const char *text;
	int64_t num;
};
/* The label 'key' number 'i' of a sample; false: it has not so many. */
typedef bool (*reporter_query_label_fn)(const void *arg, const char *key,
					size_t i,
					struct reporter_query_value *out);
/* By the terms that are labels. 't' may be NULL. */
bool reporter_query_terms_take(const struct reporter_query_terms *t,
			       reporter_query_label_fn label, const void *arg);
/* The same by the terms of traces alone: false for what no term can take. */
bool reporter_query_terms_take_trace(const struct reporter_query_terms *t,
				     reporter_query_label_fn label,
				     const void *arg);

/* --- the query -------------------------------------------------------------------- */

/* X(NAME, word): what the merged profile is of. */
#define REPORTER_QUERY_KINDS(X)                                        \
	X(CPU, cpu) /* what the inputs have; of an archive CPU time */ \
	X(WAIT, wait) /* waits, of profiles of waits */                \
	X(RUNQUEUE, runqueue) /* the run queue, of the same */         \
	X(WALL, wall) /* all time of threads, of both (query/kinds.c) */

enum reporter_query_kind {
#define X(name, word) REPORTER_QUERY_##name,
	REPORTER_QUERY_KINDS(X)
#undef X
};

const char *reporter_query_kind_word(enum reporter_query_kind kind);
/* 0 or -EINVAL. */
int reporter_query_kind_parse(const char *word, enum reporter_query_kind *kind);
#define REPORTER_QUERY_ROOTS_MAX 8
/* The root that is no label: the names of the ancestors of the process, and its own. */
#define REPORTER_QUERY_TREE "tree"
#define REPORTER_QUERY_ANCESTORS_MAX 64

struct reporter_query_opts {
	const struct reporter_query_terms *terms; /* borrowed; NULL: all */
	/*
	 * Whether an image is taken, by its id, the label of samples; a sample
	 * without one is not. NULL: all are.
	 */
	bool (*image)(void *arg, const char *image);
	void *arg;
	/* Labels whose values become frames at the root, the outermost first. */
	const char *roots[REPORTER_QUERY_ROOTS_MAX];
	size_t nroots;
	/*
	 * Of REPORTER_QUERY_TREE: the names from the first ancestor to the process of
	 * an image, REPORTER_QUERY_ANCESTORS_MAX at most, valid until the next call;
	 * none: not known. 0 or -errno. NULL: nothing is known of any.
	 */
	int (*ancestors)(void *arg, const char *image,
			 const char *const **names, size_t *n);
	bool drop_marks; /* frames that are no code, as [tables late] */
	bool expand; /* one location for each inlined frame */
	/*
	 * Of an archive: samples have the labels trace_id and span_id, by the side
	 * files; so it is, too, if there are terms of traces.
	 */
	bool traces;
	enum reporter_query_kind kind;
	/* Of wall time: labels to leave out, as in reporter_form; before the others. */
	uint32_t without;
	const char *prefix; /* or NULL */
};

int reporter_query_new(struct reporter_query **qp,
		       const struct reporter_query_opts *opts);
void reporter_query_free(struct reporter_query *q);

/*
 * Adds the profile (data, len), not compressed; 'base': to be subtracted. 0;
 * -EBADMSG or -EFBIG: '*what' (static) is what is wrong with it; -ENOMEM. After an
 * error the query is of no further use.
 */
int reporter_query_add(struct reporter_query *q, const void *data, size_t len,
		       bool base, const char **what);
/* The same with malloc'd data in raw, gzip or zstd form, which is taken over. */
int reporter_query_add_packed(struct reporter_query *q, void *data, size_t len,
			      const char **what);
/* The same with a file in one of these forms; also errors of read(2). */
int reporter_query_add_fd(struct reporter_query *q, int fd, bool base,
			  const char **what);

/*
 * To be called when all is added, of wall time: makes that of what was added. 0;
 * -ENODATA: no input has waits; -EFBIG; -ENOMEM.
 */
int reporter_query_end(struct reporter_query *q);

/* --- the archive -------------------------------------------------------------- */

/* Wall time in nanoseconds since the epoch: from <= t < to. */
struct reporter_query_span {
	int64_t from, to;
};

struct reporter_query_archive {
	const char *path; /* the directory */
	struct reporter_query_span span;
	bool base; /* to be subtracted */
	/*
	 * Whether this window, by its path in the directory, may have samples that
	 * are taken. NULL: each may.
	 */
	bool (*wanted)(void *arg, const char *file);
	/* Called before each window is read; false ends the query. Or NULL. */
	bool (*progress)(void *arg, size_t done, size_t all);
	void *arg;
	/* What was found; zero at first. */
	size_t windows; /* in the span */
	size_t read; /* of them */
	size_t damaged; /* not read: they cannot be decompressed */
	size_t whole; /* at an end of the span, without times: taken whole */
	size_t again; /* of a time that the clock had twice: it was set back */
	size_t without; /* left out: they have no waits, which are asked for */
	size_t untraced; /* with samples that have no ids of traces: times are missing */
	uint64_t bytes; /* of the files read */
	char file[256]; /* the window of an error; "" for none */
};

/*
 * Adds the windows of an archive in a span, and of those at its ends the samples in it,
 * exact to 10 ms; of another kind than CPU time these windows are taken whole. 0; -ENOENT: there is no such directory; -ECANCELED: by 'progress';
 * or as reporter_query_add_fd().
 */
int reporter_query_add_archive(struct reporter_query *q,
			       struct reporter_query_archive *a,
			       const char **what);

/*
 * Scales what was added so that, of each sample type, its sum is that of what was
 * subtracted, as `go tool pprof -normalize` does.
 */
void reporter_query_normalize(struct reporter_query *q);

/*
 * Chooses the sample type by name or number, for all but pprof; NULL: the default
 * of the profile, else the last. -ENOENT: there is none.
 */
int reporter_query_select(struct reporter_query *q, const char *type);
/*
 * After that, once: takes the values of idle waits away (query/idle.c), those for a time,
 * a descriptor of several, a child or a connection of images that do nothing else, and
 * all waits of kernel threads. Tables say how much it was. 0 or -ENOMEM.
 */
int reporter_query_hide_idle(struct reporter_query *q);
/* Appends how much it was, as text; nothing, if nothing was. */
void reporter_query_hidden(const struct reporter_query *q, struct strbuf *out);
/* Appends the names of the sample types. */
void reporter_query_types(const struct reporter_query *q, struct strbuf *out);

/* --- outputs ------------------------------------------------------------------------ */

/* X(NAME, word): what a profile can be exported as. */
#define REPORTER_QUERY_FORMATS(X) \
	X(PPROF, pprof)           \
	X(FOLDED, folded)         \
	X(SPEEDSCOPE, speedscope) \
	X(JSON, json)             \
	X(FIREFOX, firefox)

enum reporter_query_format {
	REPORTER_QUERY_NONE,
#define X(name, word) REPORTER_QUERY_##name,
	REPORTER_QUERY_FORMATS(X)
#undef X
};

/*
 * Writes to 'fd'. pprof is in 'compression', an enum reporter_format; all others are
 * text. 0 or -errno.
 */
int reporter_query_write(struct reporter_query *q, int fd,
			 enum reporter_query_format format, int compression);
/* The same into memory, malloc'd, which passes to the caller. */
int reporter_query_data(struct reporter_query *q,
			enum reporter_query_format format, int compression,
			void **data, size_t *len);

/*
 * Rows of a table: functions, functions with lines, files; any other word is a label.
 */
struct reporter_query_table {
	const char *by; /* "function", "line", "file" or a label */
	bool cum; /* sorted by cum, not by flat */
	double least; /* share of the total that a row needs, 0.005 */
	size_t top; /* rows at most; 0: all */
	size_t width; /* of a line; 0: not limited */
	bool json; /* one object a line */
};
/* Appends the table as text. 0 or -ENOMEM. */
int reporter_query_table(struct reporter_query *q,
			 const struct reporter_query_table *t,
			 struct strbuf *out);
/* A row of that table; its texts are not escaped. */
struct reporter_query_row {
	const char *name;
	const char *mark; /* behind the name: "", " (inline)" */
	const char *comm; /* of a label: of its largest sample; "" */
	int64_t flat, cum, sum; /* sum: of the flat values down to this row */
};

/* Valid until the query is freed. */
struct reporter_query_rows {
	const struct reporter_query *q;
	struct reporter_query_row *items;
	size_t n;
	int64_t total;
	int64_t begin, end; /* wall time, ns; 0: not known */
	const char *unit; /* in which the table prints them */
	struct arena arena;
};

/* The rows of reporter_query_table(). 0 or -ENOMEM; _fini() in any case. */
int reporter_query_rows(struct reporter_query *q,
			const struct reporter_query_table *t,
			struct reporter_query_rows *rows);
void reporter_query_rows_fini(struct reporter_query_rows *rows);
/* Append a value and its share of the total as the table has them. */
void reporter_query_rows_value(const struct reporter_query_rows *rows,
			       int64_t v, struct strbuf *out);
void reporter_query_rows_percent(const struct reporter_query_rows *rows,
				 int64_t v, struct strbuf *out);
/* Appends the name of the selected sample type, escaped. */
void reporter_query_rows_type(const struct reporter_query_rows *rows,
			      struct strbuf *out);

/* Appends the tree of calls, callers first. */
int reporter_query_tree(struct reporter_query *q,
			const struct reporter_query_table *t,
			struct strbuf *out);

#endif /* REPORTER_QUERY_H */
