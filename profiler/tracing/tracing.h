/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing: which processes have a tracer, and where their threads have the ids of the
 * current trace: keeps the sampling program's table (bpf/abi_trace.h) up to date.
 *
 * A process is looked at when a mapping appears and one of its files has the variable,
 * when such a file was opened for the first time, at the first sample of its image (a
 * child of fork maps nothing), and again 1, 2, 4, 8, ... s after that, and each
 * minute. Its entry goes with its image. While no file has such a variable nothing is
 * done.
 *
 * Memory of processes is read by a thread, one batch at a time, which is abandoned if it
 * waits (find.h), two at a time at most; the process that it waited for is not looked at for a minute. Looks take
 * a fiftieth of a CPU at most, and a user's share of a batch, and of the table, is at most
 * what others leave.
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
#define TRACING_BATCH 32

struct tracing_opts {
	struct pm *pm; /* borrowed */
	/* Sets an entry, or with NULL removes it. 0 or -errno. */
	int (*set)(void *arg, uint32_t tgid, const struct abi_trace_slot *slot);
	void *arg;
	uint32_t slots; /* entries at most; 0: ABI_TRACE_SLOTS */
};

/* X(name, is a gauge, "in words") */
#define TRACING_STATS(X)                                                 \
	X(processes, 1, "processes whose threads' traces are read now")  \
	X(refused_full, 0, "processes with a tracer refused: too many")  \
	X(refused_user, 0, "processes refused: their user has too many") \
	X(samples_full, 0, "samples in processes refused: too many")     \
	X(samples_user, 0, "samples refused: their user has too many")   \
	X(hung, 0, "looks for the ids of threads that were abandoned")

struct tracing_stats {
#define X(name, gauge, help) uint64_t name;
	TRACING_STATS(X)
#undef X
	uint64_t found[TRACING_N_FINDS]; /* looks, by how they ended */
};

struct tracing_batch;

struct tracing {
	struct tracing_opts opts;
	struct patience patience;
	struct tracing_batch *batch; /* the thread's now; or NULL */
	struct abi_key asked[TRACING_BATCH]; /* what it looks at */
	size_t nasked;
	uint64_t batch_cpu; /* of the loop, that made it */
	struct hash procs; /* that were sampled, or have the variable; by tgid */
	uint64_t tracers; /* pm_tracers() at the last turn */
	uint64_t next; /* no batch before; CLOCK_BOOTTIME */
	uint64_t swept; /* the last time */
	unsigned int sweeps;
	size_t turn; /* which process is the first of a batch */
	bool any; /* of 'mapped' */
	/* By pid modulo its size: it is to be looked at. */
	uint64_t mapped[TRACING_BITS / 64];
	uint32_t users[TRACING_USERS]; /* entries */
	struct tracing_stats stats;
};

/* 0 or -ENOMEM. */
int tracing_init(struct tracing *t, const struct tracing_opts *opts);
/* All zero is allowed. Entries stay. */
void tracing_fini(struct tracing *t);
/* The mappings of a process have changed; 0: of any. */
void tracing_mapped(struct tracing *t, uint32_t tgid);
/* A sample of this image; it is counted if its process was refused. */
void tracing_sampled(struct tracing *t, const struct abi_key *key);
/* To be called in every turn of the loop. */
void tracing_tick(struct tracing *t, uint64_t now);
/* Whether it has something to do at the next turn, which should be soon. */
bool tracing_busy(const struct tracing *t, uint64_t now);

#endif /* PROFILER_TRACING_TRACING_H */
