/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: the samples of a time span, as compact tables of ids. While open, it
 * belongs to the loop's thread and holds references to executables. Sealing it
 * drops the references and ends the adding; any one thread may then encode and
 * free it.
 */
#ifndef REPORTER_WINDOW_H
#define REPORTER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"
#include "reporter/sink.h"
#include "reporter/times.h"

/* A segment of an executable, and its mapping in the profile. */
struct window_segment {
	uint64_t start, limit; /* as in the file */
	uint64_t offset;
	uint32_t mapping; /* id, once written; 0: not in the profile */
	bool used;
	bool filenames, line_numbers, inline_frames; /* some frame has them */
	bool unnamed; /* some function has no name */
};

struct window_exe {
	struct hash_node node; /* by 'exe' */
	STAILQ_ENTRY(window_exe) entry;
	struct pm_exe *exe; /* a reference; NULL when sealed */
	uint64_t nsamples; /* of images with this main executable */
	/* Set by window_seal(). */
	enum pm_exe_kind kind;
	uint32_t path, build_id; /* strings */
	uint32_t nsegments;
	struct window_segment *segments;
	struct window_segment rest; /* of the addresses outside of segments */
};

struct window_function {
	struct hash_node node;
	STAILQ_ENTRY(window_function) entry;
	struct window_exe *exe; /* or NULL */
	uint64_t start; /* 0: identified by its name, file and start_line */
	uint32_t id;
	uint32_t name, system_name, file; /* strings */
	uint32_t start_line;
	bool unnamed;
};

struct window_line {
	struct window_function *function;
	uint32_t line;
};

struct window_location {
	struct hash_node node;
	STAILQ_ENTRY(window_location) entry;
	/* Of reporter_place; the space of a sealed window's exe may dangle. */
	uint64_t space, place;
	uint64_t vaddr;
	uint32_t id;
	uint32_t kind : 4; /* enum reporter_place_kind */
	uint32_t nlines : 28;
	struct window_line lines[]; /* as in reporter_frame */
};

/* The executable of a location, or NULL. */
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

/* The labels of an image; one per control group that the image was in. */
struct window_image {
	struct hash_node node; /* by serial */
	uint64_t serial;
	struct window_exe *main;
	uint32_t tgid;
	/* Strings. */
	uint32_t comm, exe, cgroup, process, image;
	uint32_t container, pod, unit, entry;
	uint32_t service; /* as of the last sample, or window_describe() */
	uint32_t entry_pid;
	bool provisional; /* labels may still change */
};

struct window_sample {
	struct hash_node node;
	STAILQ_ENTRY(window_sample) entry;
	struct window_image *image;
	struct window_stack *stack;
	uint32_t tid;
	/* Strings. */
	uint32_t thread;
	uint32_t reason; /* of a wait; 0: it is none */
	union {
		struct {
			uint32_t syscall, fd; /* of a wait */
		};
		struct {
			uint32_t trace, span; /* of others, in hex */
		};
	};
	uint32_t id; /* dense, from 0 */
	int64_t values[]; /* by column */
};

struct window_opts {
	const struct reporter_event_type *types; /* all events; borrowed */
	size_t ntypes;
	uint64_t events; /* mask as in reporter_window_opts, not 0 */
	int64_t period; /* of periodic events, ns */
	uint64_t begin; /* step 0 of times */
	bool drop_marks, traces; /* as in struct reporter_form */
	bool ids; /* times have the ids of traces */
	/* Whether an image may have one more sample; NULL: any may. */
	bool (*room)(void *arg, const struct pm_image_info *info);
	void *arg;
};

/* A sample type of the profile. */
struct window_column {
	struct reporter_sample_type type;
	uint32_t event;
};

#define WINDOW_TRACES 65536 /* rows with ids; further samples have none */

struct window {
	struct window_opts opts;
	uint64_t serial; /* unique, for reporter_memo; 0: memos are not used */
	/* By event: its count, then its value if it has one. */
	struct window_column *columns;
	uint32_t ncolumns;
	uint8_t first_column[REPORTER_EVENTS_MAX]; /* by event */
	struct arena arena;
	struct strtab strings;
	struct hash exes, functions, locations, stacks, images, samples;
	/* In the order of insertion, which is that of the ids. */
	STAILQ_HEAD(, window_exe) exe_list;
	STAILQ_HEAD(, window_function) function_list;
	STAILQ_HEAD(, window_location) location_list;
	STAILQ_HEAD(, window_sample) sample_list;
	uint64_t nsamples;
	uint32_t ntraces; /* samples with ids */
	/* Traces that had ids; and those added without them: there were too many. */
	uint64_t traced, untraced;
	struct times_ids ids; /* of 'times' */
	struct times times;
	uint32_t *scratch; /* location ids of the current trace */
	size_t scratch_cap;
};

/* 0 or -ENOMEM. */
int window_init(struct window *w, const struct window_opts *opts);
void window_fini(struct window *w);
/* Whether the window includes that event. */
bool window_takes(const struct window *w, uint32_t event);
/*
 * The window must include t->event. 0; -ENOMEM; -ENOBUFS: it would need a sample for
 * which there is no room. On an error the trace is not counted.
 */
int window_add(struct window *w, const struct reporter_trace *t,
	       const struct pm_image_info *info);
/* The sample that a trace would be added to; NULL: there is none yet, or no memory. */
const struct window_sample *window_find(struct window *w,
					const struct reporter_trace *t,
					const struct pm_image_info *info);
/*
 * The labels that an image gets after its samples are those of 'info', also for the
 * samples that it has. 0 or -ENOMEM: then they are the earlier ones.
 */
int window_describe(struct window *w, const struct pm_image_info *info);
/* See reporter_rename(). 0, or -ENOMEM: it stays without a name. */
int window_rename(struct window *w, const struct reporter_frame *f);
/* 0 or -ENOMEM; the references to executables are dropped either way. */
int window_seal(struct window *w);
/*
 * Recomputes the sums of a sealed window from the samples of steps [from, to).
 * 0, -ENOMEM, or -ENODATA: some samples have no time, so all were kept.
 */
int window_cut(struct window *w, int64_t from, int64_t to);
/* Bytes of memory in use. */
size_t window_bytes(const struct window *w);

struct window_meta {
	int64_t time_ns; /* since the epoch */
	int64_t duration_ns;
	int64_t from, to; /* steps, as for window_cut() */
	struct reporter_form form;
	const struct reporter_query_terms *terms; /* NULL: all samples */
	const char *comments; /* strings one behind the other, with their NUL */
	size_t comments_len; /* bytes of all */
};

/*
 * Writes a sealed window as a profile. Once per window, which it changes. 0 or
 * -errno; the sink is not finished.
 */
int reporter_window_encode(struct window *w, const struct window_meta *meta,
			   struct sink *sink);

#endif /* REPORTER_WINDOW_H */
