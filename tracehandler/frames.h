/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: the third stage of a sample. Each address of its stack becomes a frame
 * of the cache, names are requested for new frames, and the trace is delivered when
 * its names are there or its wait has ended.
 *
 * For each sample: again; if that is false code, kernel and mark, leaf first, and then end.
 */
#ifndef TRACEHANDLER_FRAMES_H
#define TRACEHANDLER_FRAMES_H

#include "bpf/abi_trace.h"
#include "bpf/abi.h"
#include "tracehandler/cache.h"
#include "tracehandler/ksyms.h"
#include "tracehandler/names.h"
#include "tracehandler/repeats.h"
#include "tracehandler/tracehandler.h"
#include "tracehandler/wait.h"

struct trace_frames {
	struct trace_cache cache;
	struct trace_repeats repeats;
	struct trace_names names;
	struct trace_late late;
	struct trace_ksyms ksyms;
	const struct trace_opts *opts;
	struct trace_waits *waits; /* for names */
	struct trace_stats *stats;
	struct trace_frame **made; /* of the current trace */
	size_t nmade;
	uint64_t time; /* of its sample */
	const struct abi_trace *trace; /* its ids; NULL: none */
	struct reporter_frame *out; /* of the trace being delivered */
	struct trace_frame **given; /* likewise, 'ngiven'; NULL: none is */
	size_t ngiven;
	struct hash kept;
	bool again; /* the current stack came before; it is to be kept */
};

/* The frames of a delivered trace, held: see trace_handler_keep(). */
struct trace_kept {
	struct hash_node node;
	uint32_t refs, n;
	struct trace_frame *frames[]; /* a reference each */
};

/* Opts, waits and stats are borrowed. 0 or -ENOMEM. */
int trace_frames_init(struct trace_frames *fs, const struct trace_opts *opts,
		      struct trace_waits *waits, struct trace_stats *stats);
/* No trace waits any more. */
void trace_frames_fini(struct trace_frames *fs);

/*
 * Delivers the stack of the first 'n' of fs->repeats.keys if it was kept. Otherwise
 * false, and a trace begins, to be kept if its stack came before. n 0: it never is.
 */
bool trace_frames_again(struct trace_frames *fs, const struct abi_sample *head,
			struct pm_image *image, size_t n);
/* See trace_handler_keep(), trace_handler_unkeep() and trace_handler_kept(). */
struct trace_kept *trace_frames_keep(struct trace_frames *fs);
void trace_frames_unkeep(struct trace_frames *fs, struct trace_kept *k);
size_t trace_frames_kept(struct trace_kept *k, struct reporter_frame *out,
			 size_t n);
/* Adds code, whose name is requested. 0 or -ENOMEM. */
int trace_frames_code(struct trace_frames *fs, struct pm_exe *exe,
		      uint64_t offset);
/*
 * Likewise of executable memory, with what pm_exe_code() returned. 'file' NULL, or the
 * file that it maps, from 'offset' on: what it is called without a name.
 */
int trace_frames_memory(struct trace_frames *fs, struct pm_exe *exe,
			uint64_t addr, struct pm_code_state st,
			struct pm_exe *file, uint64_t offset);
/* Adds code with this name, at sym->offset. 0 or -ENOMEM. */
int trace_frames_named(struct trace_frames *fs, struct pm_exe *exe,
		       const struct symbolizer_symbol *sym);
/* Adds code of the kernel, as it was at 'time'. 0 or -ENOMEM. */
int trace_frames_kernel(struct trace_frames *fs, struct pm_exe *kernel,
			uint64_t addr, uint64_t time);
/*
 * Adds a mark. 'key' identifies it; its text is made once. 0 or -ENOMEM.
 */
int trace_frames_mark(struct trace_frames *fs, uint64_t key, uint64_t addr,
		      const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/*
 * The trace is complete. It is delivered, or waits for its names until 'deadline'
 * (0: the usual time). With an error, which is returned, it is dropped. Otherwise 0
 * or -ENOMEM.
 */
int trace_frames_end(struct trace_frames *fs, const struct abi_sample *head,
		     struct pm_image *image, uint64_t deadline, int err);

#endif /* TRACEHANDLER_FRAMES_H */
