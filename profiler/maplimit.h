/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maplimit: how many mapping records of one process are handed on. Any user can
 * make half a million a second; the process manager takes some hundred times less
 * time for all others. A record that repeats the one before of its process is
 * skipped, which loses nothing. Beyond that a process has so many records a second,
 * and fewer while all together have too many; what it has more is dropped, and its
 * mappings are then to be re-read. Memory is a table of constant size, in which
 * processes share a slot now and then.
 */
#ifndef PROFILER_MAPLIMIT_H
#define PROFILER_MAPLIMIT_H

#include <stdint.h>

/* A second and process; and while more than MAPLIMIT_ALL came from all. */
#define MAPLIMIT_PROCESS 4096
#define MAPLIMIT_CROWD 64
#define MAPLIMIT_ALL 16384
/*
 * A repeat is skipped for so long: a re-read of a moment without the mapping may
 * have come between.
 */
#define MAPLIMIT_REPEAT_NS 10000000
/* What tells two mappings apart: all of a record from the address on. */
#define MAPLIMIT_KEY 64

struct maplimit;

enum maplimit_verdict {
	MAPLIMIT_PASS,
	MAPLIMIT_REPEAT, /* nothing new */
	MAPLIMIT_DROP, /* will be told by maplimit_flush() */
};

/* Records of 'tgid' were dropped: the first at 'from', the last at 'to'. */
typedef void (*maplimit_fn)(void *arg, uint32_t tgid, uint64_t from,
			    uint64_t to);

/* NULL: no memory. 'fn' is called from the functions below. */
struct maplimit *maplimit_new(maplimit_fn fn, void *arg);
void maplimit_free(struct maplimit *l);
/* Records of one CPU in the order of their time, CPUs in any order. */
enum maplimit_verdict maplimit_map(struct maplimit *l, uint32_t tgid,
				   uint64_t time, const char key[MAPLIMIT_KEY]);
/* An exec of 'tgid', which empties its memory. */
void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time);
/*
 * Records of any process may be missing from 'from' on: what equals the last one
 * that came is no repeat then, and what was skipped as such counts as dropped.
 */
void maplimit_lost(struct maplimit *l, uint64_t from);
/* Tells of what was dropped since the last call; after each drain. */
void maplimit_flush(struct maplimit *l);

#endif /* PROFILER_MAPLIMIT_H */
