/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracehandler: makes resolved traces of raw samples. It unwinds the copied stack by
 * the executables' unwind tables, finds the executable and offset of each frame,
 * requests each frame's name once, and delivers the trace when it has all names. A
 * sample that needs a table which is still being read waits, with the mappings of
 * its time.
 *
 * The caller passes samples in the order of kernel time, together with what it feeds
 * the process manager, whose state is thus the one at the sample. All calls on the
 * loop's thread.
 */
#ifndef TRACEHANDLER_TRACEHANDLER_H
#define TRACEHANDLER_TRACEHANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"

struct trace_handler;

struct trace_opts {
	uv_loop_t *loop;
	struct pm *pm;
	/* Receives each trace; everything in it is borrowed for the call. */
	void (*resolved)(void *arg, const struct reporter_trace *t);
	void *arg;
	/*
	 * Frames of this place that were delivered without a name have one, by a perf
	 * map that was written later; borrowed for the call. NULL: not looked for.
	 */
	void (*named)(void *arg, const struct reporter_frame *frame);
	unsigned int cache_frames; /* 0: 65,536 */
	unsigned int wait_ms; /* of a sample, for tables and names; 0: 3000 */
	size_t wait_bytes; /* of all pending samples; 0: 8 MiB */
	/*
	 * Traces wait for their names without a deadline, apart from samples that
	 * wait for tables, up to names_bytes (0: 64 MiB).
	 */
	bool all_names;
	size_t names_bytes;
	size_t table_bytes; /* of unwind tables; 0: 32 MiB */
	unsigned int max_frames; /* 0: 4096 */
	bool selected_only; /* ignore samples of other processes */
	/*
	 * Later samples of this process should have a part ABI_PART_CODE: it has
	 * code without unwind rows. May be NULL.
	 */
	void (*want_code)(void *arg, uint32_t tgid);
	/*
	 * Likewise a part ABI_PART_GO, where it changes stacks: the process is of Go.
	 * May be NULL.
	 */
	void (*want_go)(void *arg, uint32_t tgid,
			const struct symbolizer_go *go);
};

int trace_handler_new(struct trace_handler **thp,
		      const struct trace_opts *opts); /* 0 or -errno */
/* Flushes first. */
void trace_handler_free(struct trace_handler *th);

/*
 * One record of the sample ring. 0; -EINVAL, counted, if a length or the event is
 * invalid; or -ENOMEM, counted.
 */
int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len);

/*
 * Holds the frames of the trace that resolved() is being called with, as long as wanted:
 * for traces that will have the same. Equal ones are held once. NULL: no memory.
 */
struct trace_kept;
struct trace_kept *trace_handler_keep(struct trace_handler *th);
/* Before the handler is freed. */
void trace_handler_unkeep(struct trace_handler *th, struct trace_kept *k);
/*
 * Their number; and the first 'n', with the names as of now, borrowed as long as they
 * are held.
 */
size_t trace_handler_kept(struct trace_kept *k, struct reporter_frame *out,
			  size_t n);

/*
 * A PM_MAP_KSYMBOL; or a PM_MAP_LOST of all processes, after which such records may be
 * missing. True: symbolizer_kernel_changed() is due.
 */
bool trace_handler_ksymbol(struct trace_handler *th,
			   const struct pm_map_event *ev);

/*
 * Executables with this build id have better names from now on, see
 * symbolizer_opts.debuginfod_arrived().
 */
void trace_handler_renew(struct trace_handler *th, const uint8_t *build_id,
			 size_t len);

/*
 * Cuts the caches of tables, frames and stacks to a part, 1 / 2^halvings, of their
 * usual size, which is kept until the next call. 0: the usual size.
 */
void trace_handler_shed(struct trace_handler *th, unsigned int halvings);

/* Time of the oldest pending sample, or UINT64_MAX. */
uint64_t trace_handler_oldest(const struct trace_handler *th);
/*
 * Ends waits past their deadline; sends collected name requests, or, if nothing
 * depends on new traces ('idle'), those of a second together. What is answered in
 * time ends its waits by itself. 'now' is of CLOCK_MONOTONIC.
 */
void trace_handler_tick(struct trace_handler *th, uint64_t now, bool idle);
/* When a tick has to end a wait, as of the last tick; UINT64_MAX: none waits. */
uint64_t trace_handler_due(const struct trace_handler *th);
/* Frames whose names were requested and are not answered yet. */
uint64_t trace_handler_unnamed(const struct trace_handler *th);
/*
 * All samples of a process that has ended have come, 'last' is its newest image; or NULL,
 * the recording ends: requests the names of trace_opts.named.
 */
void trace_handler_late_names(struct trace_handler *th,
			      const struct pm_image *last);
/* Of trace_handler_unnamed(), those. */
uint64_t trace_handler_late(const struct trace_handler *th);
/* Whether a sample waits for unwind tables. */
bool trace_handler_awaits(const struct trace_handler *th);
/* Drops all pending samples of the CPU clock, uncounted: their time is not recorded. */
void trace_handler_drop(struct trace_handler *th);
/* Delivers all pending samples with the tables and names they have. */
void trace_handler_flush(struct trace_handler *th);

/* How user stacks ended. X(name, gauge, "help") */
#define TRACE_STACK_STATS(X)                                                 \
	X(stack_root, 0, "user stacks that reached their root")              \
	X(stack_no_cfi, 0, "user stacks that ended in code without CFI")     \
	X(stack_gone, 0, "user stacks that ended in a file gone by then")    \
	X(stack_unread, 0, "user stacks that ended in a file not read")      \
	X(stack_no_fp, 0,                                                    \
	  "user stacks that ended in code of JITs or of 32-bit programs")    \
	X(stack_top, 0,                                                      \
	  "user stacks whose interrupted function's caller is uncertain")    \
	X(stack_broken, 0, "user stacks that ended in a frame that is none") \
	X(stack_other, 0, "user stacks that went on on one not copied")      \
	X(stack_cap, 0, "user stacks that ended at the copy limit")          \
	X(stack_fault, 0, "user stacks that ended at an absent page")        \
	X(stack_exec, 0, "samples inside execve, without a user stack")      \
	X(stack_none, 0, "user stacks that were not copied")                 \
	X(stack_late, 0, "user stacks unwound before all tables were there") \
	X(stack_depth, 0, "user stacks cut at the frame limit")

/* X(name, gauge, "help") */
#define TRACE_STATS(X)                                                         \
	X(samples, 0, "valid sample records")                                  \
	X(sites, 0, "valid records of waits")                                  \
	X(unselected, 0, "samples of processes that are not recorded")         \
	X(bad_records, 0, "sample records of invalid length or event")         \
	X(nomem, 0, "samples dropped for lack of memory")                      \
	X(frames, 0, "frames of all samples")                                  \
	X(cache_hits, 0, "frames whose name was known")                        \
	X(stacks_known, 0, "stacks found whole among earlier ones")            \
	X(cache_misses, 0, "frames whose name had to be requested")            \
	X(cache_evicted, 0, "frames evicted from the cache")                   \
	X(cache_entries, 1, "frames in the cache now")                         \
	X(names_late, 0, "traces delivered before all their names were there") \
	X(waiting, 1, "samples waiting for unwind tables or names now")        \
	X(waiting_bytes, 1, "bytes of samples waiting for tables or names")    \
	X(unnamed, 0, "frames without a symbol, named by file and offset")     \
	X(not_mapped, 0, "frames at addresses without a known mapping")        \
	X(by_code, 0, "frames left by rows made from instructions, not CFI")   \
	X(tables, 1, "unwind tables held now")                                 \
	X(tables_bytes, 1, "bytes of unwind tables held now")                  \
	X(tables_asked, 0, "unwind tables requested")                          \
	X(tables_none, 0, "files without unwind information")                  \
	X(tables_failed, 0, "files whose unwind tables could not be read")     \
	X(tables_evicted, 0, "unwind tables evicted for the byte budget")      \
	X(tables_refused, 0, "unwind tables larger than the byte budget")      \
	TRACE_STACK_STATS(X)

struct trace_stats {
#define X(name, gauge, help) uint64_t name;
	TRACE_STATS(X)
#undef X
};

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out);

#endif /* TRACEHANDLER_TRACEHANDLER_H */
