/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack: the second stage of a sample. Its user stack is walked by the mappings of
 * its time and their unwind tables. Then kernel and user addresses go to the stage
 * of frames one by one, each with its executable. An address without one, and the
 * reason why the stack ended, become marks: nothing is left out.
 */
#ifndef TRACEHANDLER_STACK_H
#define TRACEHANDLER_STACK_H

#include "tracehandler/frames.h"
#include "tracehandler/record.h"
#include "tracehandler/unwind/tables.h"
#include "tracehandler/unwind/walk.h"

struct trace_stacks {
	const struct trace_opts *opts;
	struct trace_frames *frames;
	struct trace_tables tables;
	struct trace_rules rules;
	struct trace_stats *stats;
	uint64_t *pcs; /* of the stack being walked */
};

/* A sample and the mappings of its time. */
struct trace_take {
	const struct trace_record *rec;
	struct pm_image *image;
	struct pm_view *view; /* NULL: current mappings */
	uint64_t deadline; /* for its names; 0: the usual time */
	bool hurry; /* go without tables that are still being read */
	struct trace_table *late; /* out: the table it has to wait for */
};

/*
 * 'frames' is borrowed, with its opts and stats; so are 'waits', of samples that wait
 * for tables. 0 or -ENOMEM.
 */
int trace_stacks_init(struct trace_stacks *s, struct trace_frames *frames,
		      struct trace_waits *waits);
void trace_stacks_fini(struct trace_stacks *s);

/*
 * Makes a trace of a sample whose image is known. -EAGAIN with take->late: it has
 * to wait for that table. 0 or -ENOMEM, counted.
 */
int trace_stacks_take(struct trace_stacks *s, struct trace_take *take);
/* Requests the tables of all mappings. */
void trace_stacks_ask(struct trace_stacks *s, struct pm_view *view);

/* --- the walk alone, for benchmarks ------------------------------------------- */

struct trace_place {
	struct pm_mapping map;
	enum pm_exe_kind kind;
};

/* A stack being walked. */
struct trace_user {
	struct trace_stacks *owner;
	struct trace_take *take;
	struct trace_place places[4]; /* looked up last */
	struct trace_place *at; /* the last of them */
	unsigned int next; /* to be replaced */
	bool late; /* went without a table */
	struct symbolizer_go go; /* of the first file that has it */
	size_t n; /* addresses in owner->pcs */
	uint32_t by_code; /* as in struct trace_stack */
	enum trace_end why;
};

/* 0, or -EAGAIN with take->late. */
int trace_user_walk(struct trace_user *u, struct trace_stacks *s,
		    struct trace_take *take);

#endif /* TRACEHANDLER_STACK_H */
