/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing: which processes have a tracer, and where their threads have the ids of the
 * current trace: keeps the sampling program's table (bpf/abi_trace.h) up to date.
 *
 * A process is looked at when a mapping appears and one of its files has the variable,
 * when such a file was opened for the first time, and again 1, 10 and 60 s after it was
 * not ready, and each minute. Its entry goes with its image. While no file has such a
 * variable nothing is done.
 *
 * Its memory is read by a thread that is abandoned if it waits (find.h), and then not for
 * a minute. Looks take at most 20 ms a turn of the loop; a user's share of them, and of
 * the table, is at most what others leave.
 *
 * All calls on the loop's thread.
 */
#ifndef PROFILER_TRACING_TRACING_H
#define PROFILER_TRACING_TRACING_H

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "profiler/tracing/find.h"

#define TRACING_BITS 65536
#define TRACING_USERS 64 /* accounts, which user ids share */

struct tracing_opts {
	struct pm *pm; /* borrowed */
	/* Sets an entry, or with NULL removes it. 0 or -errno. */
	int (*set)(void *arg, uint32_t tgid, const struct abi_trace_slot *slot);
	void *arg;
	uint32_t slots; /* entries at most; 0: ABI_TRACE_SLOTS */
};

struct tracing_stats {
	uint64_t found[TRACING_N_FINDS]; /* looks, by how they ended */
	uint64_t used; /* entries now */
	uint64_t refused; /* for want of room in the table */
	uint64_t hung; /* looks that were abandoned */
};

struct tracing {
	struct tracing_opts opts;
	struct patience patience;
	struct hash procs; /* with a file that has the variable, by tgid */
	uint64_t tracers; /* pm_tracers() at the last turn */
	uint64_t looked, swept; /* the last turns, CLOCK_BOOTTIME */
	bool any; /* of 'mapped' */
	/* By pid modulo its size: its mappings have changed. */
	uint64_t mapped[TRACING_BITS / 64];
	uint32_t users[TRACING_USERS]; /* entries */
	uint32_t asked[TRACING_USERS]; /* looks in this turn */
	struct tracing_stats stats;
};

/* 0 or -ENOMEM. */
int tracing_init(struct tracing *t, const struct tracing_opts *opts);
/* All zero is allowed. Entries stay. */
void tracing_fini(struct tracing *t);
/* The mappings of a process have changed; 0: of any. */
void tracing_mapped(struct tracing *t, uint32_t tgid);
/* To be called in every turn of the loop. */
void tracing_tick(struct tracing *t, uint64_t now);

#endif /* PROFILER_TRACING_TRACING_H */
