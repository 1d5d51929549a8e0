/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find: where the threads of a process have the variable of its tracer: the facts of a
 * file (symbolize/elf/slot.h) and what the loader has written for them in the process's
 * memory make an entry for the sampling program (bpf/abi_trace.h).
 *
 * All that is read belongs to the process, which may lie: then its own samples have
 * wrong ids or none. Reads are few and bounded; they may never return, see
 * base/proc/patience.h.
 */
#ifndef PROFILER_TRACING_FIND_H
#define PROFILER_TRACING_FIND_H

#include "base/base.h"
#include "bpf/abi_trace.h"
#include "symbolize/symbolize.h"

/* How a search ended. X(NAME, name, "text") */
#define TRACING_FINDS(X)                                                   \
	X(FOUND, found, "found")                                           \
	X(GONE, gone, "it ended, or cannot be read")                       \
	X(NO_CONTEXT, no_context, "its tracer has published no context")   \
	X(NOT_READY, not_ready, "the loader has not relocated its tracer") \
	X(UNKNOWN, unknown, "the loader's words are not understood")

enum tracing_found {
#define X(NAME, name, text) TRACING_##NAME,
	TRACING_FINDS(X)
#undef X
	TRACING_N_FINDS,
};

struct tracing_find {
	/* The question: an image, and a mapped file with a slot. */
	struct abi_key key;
	struct symbolizer_slot slot;
	uint64_t bias; /* of its addresses in the process */
	bool forked; /* pm_image_forked() */
	/* The answer; 'entry' if FOUND. */
	enum tracing_found found;
	struct abi_trace_slot entry;
};

/* Answers. In a thread that can be abandoned. */
void tracing_find(struct tracing_find *f);
/*
 * Whether a line of /proc/PID/maps is the mapping of a process context (OpenTelemetry
 * OTEP 4719), which a child of fork does not have. 'line' need not be NUL-terminated.
 */
bool tracing_is_context(const char *line, size_t len);
/*
 * The address of that mapping of the process 'dir', see procfs_open(); 0: it has none. In
 * a thread that can be abandoned.
 */
uint64_t tracing_find_context(int dir);

#endif /* PROFILER_TRACING_FIND_H */
