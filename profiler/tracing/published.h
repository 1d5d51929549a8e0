/* SPDX-License-Identifier: Apache-2.0 */
/*
 * published: what a process says of itself: its context (OpenTelemetry OTEP 4719), a
 * mapping whose name tells it, with a header that leads to a payload; the storage of
 * Elastic's agents (storage.h); and its environment.
 *
 * All that is read belongs to the process, which may lie, or change it meanwhile. Reads
 * are bounded: 4 MiB of its maps, 64 KiB of its environment, of which only the names of
 * struct symbolizer_context are kept, 8 KiB of storage, and 64 KiB of payload, which the
 * worker process parses. They may never return, see base/proc/patience.h.
 */
#ifndef PROFILER_TRACING_PUBLISHED_H
#define PROFILER_TRACING_PUBLISHED_H

#include "base/base.h"
#include "bpf/abi.h"
#include "profiler/tracing/storage.h"
#include "symbolize/symbolize.h"

/* How a look ended. X(NAME, name, "text") */
#define PUBLISHED_FINDS(X)                                               \
	X(NEW, new, "there is a new context")                            \
	X(SAME, same, "its context is the one that is known")            \
	X(NONE, none, "it has published no context")                     \
	X(WRITING, writing, "its context was being written each time")   \
	X(INVALID, invalid, "its context is invalid, or cannot be read") \
	X(GONE, gone, "it ended, or cannot be read")

enum published_found {
#define X(NAME, name, text) PUBLISHED_##NAME,
	PUBLISHED_FINDS(X)
#undef X
	PUBLISHED_N_FINDS,
};

struct published {
	/* The question: */
	struct abi_key key;
	bool environ; /* its environment, too */
	uint64_t storage; /* address of the pointer to its storage; 0: it has none */
	/* ... and what is known of the context; 0: nothing. Both are set. */
	uint64_t mapping; /* its address */
	uint64_t published_ns; /* of the one that was read last */
	/* The answer. */
	enum published_found found;
	/*
	 * CLOCK_BOOTTIME after the last read: the process may have executed another
	 * program before, which only its exec event tells.
	 */
	uint64_t read_at;
	struct symbolizer_context names; /* of the environment */
	void *payload; /* NEW; the caller frees it */
	uint32_t size;
	struct tracing_storage
		*stored; /* NULL: none is valid; the caller frees it */
	/*
	 * With 'stored': its user, before and after that was read; UINT32_MAX: it had
	 * more than one, as a program with the set-user-id bit.
	 */
	uint32_t uid;
};

/* In a thread that can be abandoned. */
void published_read(struct published *p);

#endif /* PROFILER_TRACING_PUBLISHED_H */
