/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiting: where the time of threads goes while they do not run. The kernel's side adds
 * up the time of each thread by state, reason, system call and kind of descriptor
 * (bpf/abi_wait.h has the account and its maps). This room reads the sums at each turn of
 * the loop, and gives what was added to the reporter, as traces of one frame, before
 * which, for waits, is the stack of the site:
 *
 *	[wait futex]		of the event ABI_EVENT_WAIT
 *	[runqueue woken]	of ABI_EVENT_RUNQUEUE
 *	[cpu]			of ABI_EVENT_RUNNING: CPU time, by the kernel's account
 *	[on a CPU, not CPU time]	what the clock has more than that: interrupts, and
 *				time that a hypervisor took
 *
 * [wait site not copied] stands for a stack that was not. The stacks come as records like
 * a sample's, are handed on by waiting_drain(), and come back resolved (sites.h).
 *
 * They have the labels of the image, and reason, syscall and fd. Together they are the time of
 * all threads, but for a remainder: where the kernel's account has more than the clock.
 *
 * A window gets the part of each wait that lies in it: its begin and its end are edges of
 * the kernel's sums (edges.h). After an edge the open intervals are cut, and what was added
 * before it is given with a time before it. A wait is counted where it ends.
 *
 * An image is found by its key once the pump has passed the time at which its sums were
 * read, so that its fork and exec are known, and the stacks of before that are resolved;
 * until then they are kept here. A process that ended has to be known for waiting_keeps().
 *
 * With an archive the waits of opts.min and longer are also given one by one, each after its
 * sum and with the same frames (reporter_add_wait(), records.h).
 *
 * All calls on the loop's thread.
 */
#ifndef PROFILER_WAITING_WAITING_H
#define PROFILER_WAITING_WAITING_H

#include <stdint.h>

#include "bpf/abi_wait.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"
#include "tracehandler/tracehandler.h"

struct waiting;

/* Those that are pointers are borrowed, and must be freed later. */
struct waiting_opts {
	struct pm *pm;
	struct reporter *reporter;
	struct trace_handler *th;
	struct watch *watch; /* gets what waiting_follow() is for; or NULL */
	bool selected_only; /* as trace_opts has it */
	bool copy_all; /* WAITING_SUMS_COPY_ALL */
	/* The shortest wait that the archive has by itself, ns; 0: it has none. */
	uint64_t min;
	/* Gets the record of a site's stack, for the trace handler; borrowed. */
	void (*stack)(void *arg, const struct abi_sample *rec, size_t len);
	void *arg;
};

/*
 * Loads, attaches, and opens the account of each thread. 0 or -errno, and '*what' is the
 * step that failed.
 */
int waiting_new(struct waiting **wp, const struct waiting_opts *opts,
		const char **what);
void waiting_free(struct waiting *w); /* NULL is allowed */

/*
 * Gives the stacks in the ring to opts.stack(). Returns the time from which on all that
 * come later are; UINT64_MAX: none come.
 */
uint64_t waiting_drain(struct waiting *w);
/* Readable when the ring must be drained before the timer. */
int waiting_epoll_fd(const struct waiting *w);
/* trace_opts.resolved(), of a trace of ABI_EVENT_WAIT. */
void waiting_resolved(struct waiting *w, const struct reporter_trace *t);
/* The executable mappings of a process have changed; 0: of any. */
void waiting_mapped(struct waiting *w, uint32_t tgid);

/*
 * Reads the sums, and gives those of before 'passed', the time up to which the process
 * manager has all events, and all stacks are resolved. To be called at least once a second, and before
 * reporter_advance() with a time up to 'now'; 'w' may be NULL, here and below.
 */
void waiting_tick(struct waiting *w, uint64_t now, uint64_t passed);
/*
 * To be called when a window was opened or its end was set. A window is exact at an edge
 * that was not past then (see reporter_apart_ahead()): else what ended in between is counted
 * before the edge. Each tick does it, too.
 */
void waiting_set_edges(struct waiting *w);
/* The time of the next cut, CLOCK_BOOTTIME; UINT64_MAX: none. */
uint64_t waiting_due(const struct waiting *w);
/* Nothing of after 'end', which should not be past, is wanted. */
void waiting_ends(struct waiting *w, uint64_t end);
/* After waiting_ends(), and its time; the last call: gives everything. */
void waiting_end(struct waiting *w);
/* For how long processes that ended have to be known, ns. */
uint64_t waiting_keeps(const struct waiting *w);

/* As reporter_opts.timeline. */
int waiting_timeline(struct waiting *w, const struct abi_key *key, bool lives,
		     uint32_t tid, struct reporter_timeline *out);
/* As reporter_opts.path. */
int waiting_path(struct waiting *w, const struct abi_key *key, bool lives,
		 struct reporter_path *out);
/* As watch_opts.follow, of opts.watch. */
int waiting_follow(struct waiting *w, uint32_t pid, bool begins);
/* Whether waiting_tick() is due some times a second. */
bool waiting_busy(const struct waiting *w);

/* X(name, gauge, "help") */
#define WAITING_STATS(X)                                                    \
	X(untracked, 0, "times a thread was not followed for some time")    \
	X(unwoken, 0, "waits that ended without a wake-up that was seen")   \
	X(unended, 0, "images whose last thread's end was not seen")        \
	X(missed, 0, "changes of a thread's state that were not seen")      \
	X(refused, 0, "sums of time refused: no room, or a user's share")   \
	X(used, 1, "sums of time in use")                                   \
	X(copied, 0, "stacks of waits copied")                              \
	X(copied_bytes, 0, "bytes of them")                                 \
	X(unkept, 0, "waits that are in no profile: their sum was refused") \
	X(unknown, 0, "sums in no profile: their process was forgotten")    \
	X(sited, 0, "waits with the stack of their site")                   \
	X(again, 0, "stacks of waits copied that were known already")       \
	X(differ, 0, "... that were not what was known")                    \
	X(unheld, 0, "stacks of waits refused: no room, or a user's share") \
	X(nomem, 0, "sums in no profile: out of memory")                    \
	X(cuts, 0, "times the open waits of all threads were cut")          \
	X(cut_failed, 0, "... that failed: waits are in a later window")    \
	X(opened, 0, "stacks of waits copied while they lasted")            \
	X(unread, 0, "... that were not: unreadable, or the wait ended")    \
	X(late, 0, "edges of windows that were set after their time")       \
	X(chosen, 1, "processes whose timeline is recorded, or watched")    \
	X(segments, 0, "segments of timelines recorded")                    \
	X(segments_lost, 0, "... dropped: too many, or no room")            \
	X(forgotten, 0, "stacks dropped before the segments that had them") \
	X(records, 0, "waits of --wait-min or longer that were recorded")   \
	X(records_limited, 0, "... that were not: a share was used up")     \
	X(records_full, 0, "... that were not: the ring was full")          \
	X(records_unkept, 0, "... recorded, and dropped: too many wait")

struct waiting_stats {
#define X(name, gauge, help) uint64_t name;
	WAITING_STATS(X)
#undef X
	/* Of all threads since the start, ns. */
	uint64_t wait_ns, queue_ns, on_ns, cpu_ns;
	uint64_t unkept_ns; /* of 'unkept' */
	uint64_t cut_ns; /* CPU time for cuts */
	/* Waits whose site's stack was not copied, by enum abi_wait_site; [0]: lost. */
	uint64_t uncopied[ABI_WAIT_SITE_LEAST],
		uncopied_ns[ABI_WAIT_SITE_LEAST];
};

/* All zeros without one. */
void waiting_get_stats(const struct waiting *w, struct waiting_stats *out);

#endif /* PROFILER_WAITING_WAITING_H */
