/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites: the stacks of sites of waits (bpf/abi_wait.h), resolved, by the number of the
 * site. The frames are held in the trace handler; equal stacks of different sites are held
 * once. A site stays as long as a sum of the kernel's side has it, and the stack of one
 * that has no sum (its wait has not ended, or its sum was refused) for some seconds. After
 * that it lasts as long as a recorded segment of a timeline has it, if there is room.
 *
 * There are as many as the kernel's sums, which are limited by user; and their bytes have
 * a ceiling, of which a user may have as much as is left for others. Those that last for
 * segments only have one of their own, likewise.
 *
 * All calls on the loop's thread. Times are CLOCK_BOOTTIME in ns.
 */
#ifndef PROFILER_WAITING_SITES_H
#define PROFILER_WAITING_SITES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"
#include "reporter/reporter.h"
#include "tracehandler/tracehandler.h"

#define WAITING_SITES_USERS 64 /* which user ids share */

struct waiting_site {
	struct hash_node node; /* by its number */
	TAILQ_ENTRY(waiting_site) link; /* without sums, by 'since' */
	uint64_t site;
	uint64_t since;
	uint32_t sums; /* that have it */
	uint32_t segments; /* likewise */
	bool lasts; /* for segments only; it is not linked then */
	uint32_t user; /* of 'bytes' */
	size_t bytes;
	struct trace_kept *stack; /* NULL: not there, or not yet */
	/* Of its traces; the last one's first frame is that of 'reason'. */
	struct reporter_memo memo;
	uint32_t reason;
};

/* Bytes, in all and by user. */
struct waiting_share {
	size_t bytes, users[WAITING_SITES_USERS];
};

struct waiting_sites {
	struct trace_handler *th;
	struct hash known;
	TAILQ_HEAD(, waiting_site) unused;
	struct waiting_share held, lasting; /* 'lasting' is a part of 'held' */
	uint64_t again; /* stacks that came for a site which had one */
	uint64_t differ; /* of these, and not the same */
	struct reporter_frame *frames; /* of one that is compared */
	size_t cap;
	uint64_t refused; /* stacks that were not held: no room, or memory */
	uint64_t forgotten; /* those that segments had, for want of room */
};

/* The trace handler is borrowed, and must be freed later. 0 or -ENOMEM. */
int waiting_sites_init(struct waiting_sites *ws, struct trace_handler *th);
void waiting_sites_fini(struct waiting_sites *ws);

/* From inside trace_opts.resolved(), with a trace of ABI_EVENT_WAIT. */
void waiting_sites_add(struct waiting_sites *ws, const struct reporter_trace *t,
		       uint64_t now);
/* A sum has the site: from its first reading on, until nothing of it is kept. */
void waiting_sites_use(struct waiting_sites *ws, uint64_t site);
void waiting_sites_unuse(struct waiting_sites *ws, uint64_t site);
/*
 * A record of a segment has this site, or an enum abi_wait_site: from its reading at 'now'
 * on, until it is dropped.
 */
void waiting_sites_record(struct waiting_sites *ws, uint64_t site,
			  uint64_t now);
void waiting_sites_unrecord(struct waiting_sites *ws, uint64_t site);
/* NULL: not known. Valid until the next call. */
struct waiting_site *waiting_sites_find(struct waiting_sites *ws,
					uint64_t site);
/* Of reporter_path_stacks(); 'arg' is the sites. */
size_t waiting_sites_lines(void *arg, uint64_t site,
			   struct reporter_step_frame *out, size_t max);
/* Drops what has had no sum for some seconds, unless it lasts. */
void waiting_sites_tick(struct waiting_sites *ws, uint64_t now);

#endif /* PROFILER_WAITING_SITES_H */
