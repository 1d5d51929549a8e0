/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: the samples of a stretch of time, as compact tables of ids. Open, it
 * belongs to the loop and holds references to executables. Sealed, it stands
 * for itself, is changed no more, and any one thread may encode and free it.
 */
#ifndef REPORTER_WINDOW_H
#define REPORTER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"
#include "reporter/sink.h"
#include "reporter/times.h"

/* An executable segment and what of it the profile names. */
struct window_segment {
	uint64_t start, limit; /* as in the file */
	uint64_t offset;
	uint32_t mapping; /* id, when written; 0: no frame lies in it */
	bool used;
	bool filenames, line_numbers, inline_frames; /* of those frames, some */
};

struct window_exe {
	struct hash_node node; /* by 'exe' */
	struct window_exe *next;
	struct pm_exe *exe; /* a reference; NULL when sealed */
	uint64_t nsamples; /* of images whose main executable it is */
	/* Known when sealed. */
	enum pm_exe_kind kind;
	uint32_t path, build_id; /* strings */
	uint32_t nsegments;
	struct window_segment *segments;
	struct window_segment rest; /* for addresses in none of them */
};

struct window_function {
	struct hash_node node;
	struct window_function *next;
	struct window_exe *exe; /* NULL: it is in none */
	uint64_t start; /* 0: identified by its name, file and start_line */
	uint32_t id;
	uint32_t name, system_name, file; /* strings */
	uint32_t start_line;
};

struct window_line {
	struct window_function *function;
	uint32_t line;
};

struct window_location {
	struct hash_node node;
	struct window_location *next;
	uint64_t space, place; /* the frame's; an exe may be gone when sealed */
	uint64_t vaddr;
	uint32_t id;
	uint32_t kind : 4; /* enum reporter_place_kind */
	uint32_t nlines : 28;
	struct window_line lines[]; /* as in reporter_frame */
};

/* NULL: the place is in no executable. */
static inline struct window_exe *
window_location_exe(const struct window_location *l)
{
	return l->lines[0].function->exe;
}

struct window_stack {
	struct hash_node node;
	uint32_t n;
	uint32_t locations[]; /* ids, leaf first */
};

/* An image's labels, as strings: one for each control group it was in. */
struct window_image {
	struct hash_node node; /* by serial */
	uint64_t serial;
	struct window_exe *main;
	uint32_t tgid;
	uint32_t comm, exe, cgroup, process, image;
	uint32_t container, pod, unit, entry;
	uint32_t entry_pid;
	bool provisional;
};

struct window_sample {
	struct hash_node node;
	struct window_sample *next;
	struct window_image *image;
	struct window_stack *stack;
	uint32_t tid;
	uint32_t thread; /* string */
	uint32_t id; /* dense, from 0 */
	int64_t values[]; /* one a column */
};

/* What a window takes samples of. */
struct window_opts {
	const struct reporter_event_type *types; /* of all events; borrowed */
	size_t ntypes;
	uint64_t events; /* those taken, as in reporter_window_opts; not 0 */
	int64_t period; /* ns, of the periodic ones */
	uint64_t begin; /* steps of times count from here */
};

/* A sample type of the profile. */
struct window_column {
	struct reporter_sample_type type;
	uint32_t event;
};

struct window {
	struct window_opts opts;
	uint64_t serial; /* never used for another; 0: no memo is for this one */
	/* Of each event its count, then its value if it has one. */
	struct window_column *columns;
	uint32_t ncolumns;
	uint8_t first_column[REPORTER_EVENTS_MAX]; /* by event */
	struct arena arena;
	struct strtab strings;
	struct hash exes, functions, locations, stacks, images, samples;
	/* In the order of their ids; exes and samples as first seen. */
	struct window_exe *first_exe, **last_exe;
	struct window_function *first_function, **last_function;
	struct window_location *first_location, **last_location;
	struct window_sample *first_sample, **last_sample;
	uint64_t nsamples;
	struct times times;
	uint32_t *scratch; /* location ids of the trace at hand */
	size_t scratch_cap;
};

/* 0 or -ENOMEM. */
int window_init(struct window *w, const struct window_opts *opts);
void window_fini(struct window *w);
/* Whether it takes samples of that event. */
bool window_takes(const struct window *w, uint32_t event);
/* Of an event that it takes. 0 or -ENOMEM; the trace is then not in it. */
int window_add(struct window *w, const struct reporter_trace *t,
	       const struct pm_image_info *info);
/* 0 or -ENOMEM; references are given back either way. */
int window_seal(struct window *w);
/*
 * Keeps the samples of the steps [from, to) since the begin, no others. Of a
 * sealed window. 0, -ENOMEM, or -ENODATA: the times of some are unknown, and all
 * were kept.
 */
int window_cut(struct window *w, int64_t from, int64_t to);
/* Bytes of memory held. */
size_t window_bytes(const struct window *w);

struct window_meta {
	int64_t time_ns; /* since the epoch */
	int64_t duration_ns;
	/* The profile is of these steps only; samples of others are left out. */
	int64_t from, to;
	/* Lines, each ended by a NUL; in all so many bytes. */
	const char *comments;
	size_t comments_len;
};

/* Of a sealed window, once. 0 or -errno; the sink is not finished. */
int reporter_window_encode(struct window *w, const struct window_meta *meta,
			   struct sink *sink);

#endif /* REPORTER_WINDOW_H */
