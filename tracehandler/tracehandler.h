/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracehandler: a raw sample in, a resolved trace out. It unwinds the copied
 * stack, gives every frame its meaning (executable + offset), asks for names
 * once a frame, and hands the trace on when all are there.
 *
 * Samples come in the order of kernel time, each at the point of that order at
 * which the process manager's state is the one it was taken in. All calls on
 * the loop's thread.
 */
#ifndef TRACEHANDLER_TRACEHANDLER_H
#define TRACEHANDLER_TRACEHANDLER_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"

struct trace_handler;

struct trace_opts {
	uv_loop_t *loop;
	struct pm *pm;
	/* Whole traces; everything in it borrowed for the call. */
	void (*resolved)(void *arg, const struct reporter_trace *t);
	void *arg;
	unsigned int cache_frames; /* 0: 65,536 */
	/* A trace waits for names so long, and they for memory so much. */
	unsigned int wait_ms; /* 0: 3000 */
	size_t wait_bytes; /* 0: 4 MiB */
	unsigned int max_frames; /* 0: 4096 */
};

int trace_handler_new(struct trace_handler **thp,
		      const struct trace_opts *opts); /* 0 or -errno */
/* Traces still waiting are handed on before, with what names there are. */
void trace_handler_free(struct trace_handler *th);

/*
 * One record of the sample ring, (buf, len), hostile only by accident: bad
 * lengths are counted and refused with -EINVAL. -ENOMEM is counted as lost.
 */
int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len);

/* Time of the oldest trace that still waits, or UINT64_MAX. */
uint64_t trace_handler_oldest(const struct trace_handler *th);
/*
 * The clock, from the loop: ends waits that are over, sends off name requests
 * that were held back to go together.
 */
void trace_handler_tick(struct trace_handler *th, uint64_t now);
/* Hands on every waiting trace, named or not. */
void trace_handler_flush(struct trace_handler *th);

/* X(name, "help"): monotonic but cache_entries and waiting. */
#define TRACE_STATS(X)                                                         \
	X(samples, "samples taken apart")                                      \
	X(bad_records, "sample records with wrong lengths")                    \
	X(nomem, "samples lost for lack of memory")                            \
	X(frames, "frames in them")                                            \
	X(cache_hits, "frames whose name was known")                           \
	X(cache_misses, "frames whose name had to be asked for")               \
	X(cache_evicted, "frames put out of the cache")                        \
	X(names_late, "traces handed on before all their names were there")    \
	X(unnamed, "frames without a symbol, named by file and offset")        \
	X(not_mapped, "frames at addresses nothing was known to be mapped")    \
	X(stack_root, "user stacks that reached their root")                   \
	X(stack_no_fp, "user stacks that ended where no frame pointer led on") \
	X(stack_cap, "user stacks that ended at the copy limit")               \
	X(stack_fault, "user stacks that ended at an absent page")             \
	X(stack_exec, "samples inside execve, without a user stack")           \
	X(stack_none, "user stacks that were not copied")                      \
	X(stack_depth, "user stacks cut at the frame limit")

struct trace_stats {
#define X(name, help) uint64_t name;
	TRACE_STATS(X)
#undef X
	uint64_t cache_entries;
	uint64_t waiting;
};

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out);

#endif /* TRACEHANDLER_TRACEHANDLER_H */
