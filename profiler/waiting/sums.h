/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums: the kernel's side of waiting: loads bpf/wait/wait.bpf.c, cuts open intervals, reads
 * what was added to the sums (bpf/abi_wait.h), and drains the ring of the stacks of sites.
 * Knows nothing of processes.
 */
#ifndef PROFILER_WAITING_SUMS_H
#define PROFILER_WAITING_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi_wait.h"

struct waiting_sums;
struct wait_bpf;

/* What was added to a sum since the last call of waiting_sums_read(), before the first edge. */
struct waiting_sum {
	struct abi_key
		key; /* of the image; all zeros: of several, for want of room */
	uint32_t what; /* ABI_WAIT_WHAT() */
	uint64_t site; /* as in struct abi_wait_key */
	bool first; /* of a sum with a site: it is given for the first time */
	bool last; /* likewise: it is freed; nothing else was added */
	uint32_t threads; /* of a head: that the image has now */
	uint64_t count; /* intervals that ended */
	uint64_t ns;
	uint64_t cpu_ns; /* of a head: the kernel's CPU time of its threads */
	uint64_t wall_ns; /* of a head: see struct abi_wait_sum */
};

enum waiting_sums_flags {
	WAITING_SUMS_COPY_ALL = 1 << 0, /* for tests: the stack of each wait */
	WAITING_SUMS_RECORDS = 1 << 1, /* long waits come: records.h */
	/* For tests: of these ABI_RECORD_FEW times fewer. */
	WAITING_SUMS_FEW = 1 << 2,
};

/*
 * Loads and attaches, and opens the accounts of all threads there are. 'limit' is the
 * number of sums, at most ABI_WAIT_SUMS; 0: that. 0 or -errno, and the failed step.
 */
int waiting_sums_new(struct waiting_sums **sp, uint32_t limit,
		     unsigned int flags, const char **what);
void waiting_sums_free(struct waiting_sums *s);
/* The loaded programs and their maps, for segments.c and records.c. */
struct wait_bpf *waiting_sums_skel(struct waiting_sums *s);

/*
 * Sets the edges that are to come, as waiting_edges_set() (CLOCK_BOOTTIME, ns). Until the
 * first of them is passed, what is read is of before it.
 */
void waiting_sums_edges(struct waiting_sums *s, const uint64_t *times, size_t n,
			uint64_t now);
/* As waiting_edges_first() and waiting_edges_pass(). */
uint64_t waiting_sums_edge(const struct waiting_sums *s);
bool waiting_sums_pass(struct waiting_sums *s, uint64_t time);
/*
 * Adds all open intervals to their sums, up to 'time' (not in the future), which is an
 * edge, as a rule. Else what ended since then is in the sums too. Some 0.5 us a thread.
 * 0 or -errno.
 */
int waiting_sums_cut(struct waiting_sums *s, uint64_t time);
/*
 * The stacks of sites: 'fn' gets each record (bpf/abi.h), borrowed for the call, from
 * waiting_sums_poll(). 0 or -errno.
 */
int waiting_sums_stacks(struct waiting_sums *s,
			void (*fn)(void *arg, const struct abi_sample *rec,
				   size_t len),
			void *arg);
/* Number of records or -errno; 0 without waiting_sums_stacks(), as below. */
int waiting_sums_poll(struct waiting_sums *s);
/* As those of base/ring.h; UINT64_MAX and -1 without a ring. */
uint64_t waiting_sums_watermark(const struct waiting_sums *s);
int waiting_sums_epoll_fd(const struct waiting_sums *s);

/*
 * Threads whose wait has no site, by number, those behind 'after': at most
 * ABI_WAIT_OPEN_MAX. Returns how many.
 */
size_t waiting_sums_list(struct waiting_sums *s, uint32_t after,
			 struct abi_wait_open *out);
/*
 * Gives sites to the waits of as many threads, of which each has one that is not 0. Of
 * those that were taken it is 0 then.
 */
void waiting_sums_give(struct waiting_sums *s, const struct abi_wait_open *open,
		       struct abi_wait_given *given, size_t n);

/*
 * Calls 'fn' for each image that has threads, with its spans (bpf/abi_wait.h), which it
 * may change.
 */
void waiting_sums_spans(struct waiting_sums *s,
			void (*fn)(void *arg, const struct abi_key *key,
				   struct abi_wait_span *spans),
			void *arg);
/*
 * Gives each sum to which something was added, and frees those of images that have no
 * thread any more.
 */
void waiting_sums_read(struct waiting_sums *s,
		       void (*fn)(void *arg, const struct waiting_sum *sum),
		       void *arg);
/*
 * Lets the sums of processes be freed that are gone, though the last switch of a thread was
 * not seen (see the counter 'missed'). They must have been gone at the call before, too: a
 * process is gone for kill(2) a moment before its last switch. The number of images.
 */
size_t waiting_sums_check(struct waiting_sums *s);
/*
 * Sums of waits to which nothing was added for five minutes, or 20 seconds when they are
 * many, are freed by reading, though their image lives. That needs a cut in between: true.
 */
bool waiting_sums_wants_cut(const struct waiting_sums *s);
/* For tests: after this time, ns. */
void waiting_sums_rest(struct waiting_sums *s, uint64_t ns);
/* Sums are freed by reading them: whether that should be soon. */
bool waiting_sums_crowded(const struct waiting_sums *s);
void waiting_sums_counters(const struct waiting_sums *s,
			   struct abi_wait_counters *out);

#endif /* PROFILER_WAITING_SUMS_H */
