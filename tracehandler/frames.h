/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: the last stage of a sample. Each address of its stack becomes a frame
 * of the cache, names are requested for the frames that have none yet, and the
 * trace goes out when they are there, or at the end of its wait.
 *
 * Whoever makes a trace calls begin, adds its frames leaf first, and calls end.
 */
#ifndef TRACEHANDLER_FRAMES_H
#define TRACEHANDLER_FRAMES_H

#include "bpf/abi.h"
#include "tracehandler/cache.h"
#include "tracehandler/names.h"
#include "tracehandler/repeats.h"
#include "tracehandler/tracehandler.h"
#include "tracehandler/wait.h"

struct trace_frames {
	struct trace_cache cache;
	struct trace_repeats repeats;
	struct trace_names names;
	const struct trace_opts *opts;
	struct trace_waits *waits;
	struct trace_stats *stats;
	struct trace_frame **made; /* of the trace being made */
	size_t nmade;
	struct reporter_frame *out;
	struct trace_unnamed *unnamed; /* of 'out' */
	bool again; /* its stack came before, and is to be kept */
};

/* Opts, waits and stats are borrowed; see names.h for 'settled'. 0 or -ENOMEM. */
int trace_frames_init(struct trace_frames *fs, const struct trace_opts *opts,
		      struct trace_waits *waits, struct trace_stats *stats,
		      void (*settled)(void *arg), void *arg);
/* No trace may wait any more. */
void trace_frames_fini(struct trace_frames *fs);

void trace_frames_begin(struct trace_frames *fs);
/*
 * In place of all that: hands on the stack of the first 'n' of fs->repeats.keys, if it
 * was kept with all its names. Otherwise false, and the trace that is begun next is
 * kept if it came before. With n 0 it is not.
 */
bool trace_frames_again(struct trace_frames *fs, const struct abi_sample *head,
			struct pm_image *image, size_t n);
/* Code: a name is requested, unless there can be none. 0 or -ENOMEM. */
int trace_frames_code(struct trace_frames *fs, struct pm_exe *exe,
		      enum pm_exe_kind kind, uint64_t offset);
/*
 * A message in place of code. 'key' identifies the message; its text is made
 * once. 0 or -ENOMEM.
 */
int trace_frames_mark(struct trace_frames *fs, uint64_t key, uint64_t addr,
		      const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * The trace is complete: handed on, or made to wait for its names until
 * 'deadline' (0: the usual time). With an error, which is returned, it is
 * dropped. Otherwise 0 or -ENOMEM.
 */
int trace_frames_end(struct trace_frames *fs, const struct abi_sample *head,
		     struct pm_image *image, uint64_t deadline, int err);

#endif /* TRACEHANDLER_FRAMES_H */
