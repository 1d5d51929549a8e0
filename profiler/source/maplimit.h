/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maplimit: how many mapping records of one process are handed on. Any user can
 * make half a million a second, each with a path of 4 KiB; the process manager takes
 * some hundred times less time for all others. A record that repeats the one before
 * of its process is skipped, which loses nothing. Beyond that a process has so many
 * records and bytes a second. The more all processes have together, the less each
 * may have; one that executed a program within the last second keeps more of it,
 * because its mappings are new and needed by its first sample. What exceeds that is
 * dropped, and the mappings of that process are then to be re-read.
 *
 * Processes are counted exactly, each by its tgid. The table is bounded: a new
 * process takes the place of the one that was not heard of for longest, and has its
 * own count.
 */
#ifndef PROFILER_MAPLIMIT_H
#define PROFILER_MAPLIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Records and their bytes, a second and process. */
#define MAPLIMIT_PROCESS 4096
#define MAPLIMIT_PROCESS_BYTES (384 << 10)
/* While all together had more than that in this second: */
#define MAPLIMIT_ALL 16384
#define MAPLIMIT_ALL_BYTES (2 << 20)
#define MAPLIMIT_CROWD 64
#define MAPLIMIT_CROWD_BYTES (16 << 10)
/* ... and in the second after its exec. */
#define MAPLIMIT_EXEC 256
#define MAPLIMIT_EXEC_BYTES (32 << 10)
/* A process that made so many itself in a second, dropped ones included, floods. */
#define MAPLIMIT_FLOOD 1024
#define MAPLIMIT_FLOOD_BYTES (256 << 10)
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

/* Records of 'tgid' were dropped. */
struct maplimit_told {
	uint32_t tgid;
	bool flood; /* by its own number, not by that of all others */
	uint64_t from, to; /* times of the first and the last */
};
typedef void (*maplimit_fn)(void *arg, const struct maplimit_told *told);

/* NULL: no memory. 'fn' is called from the functions below. */
struct maplimit *maplimit_new(maplimit_fn fn, void *arg);
void maplimit_free(struct maplimit *l);
/* Records of one CPU in the order of their time, CPUs in any order. */
enum maplimit_verdict maplimit_map(struct maplimit *l, uint32_t tgid,
				   uint64_t time, size_t bytes,
				   const char key[MAPLIMIT_KEY]);
/* A record that passed found no room further on: it counts as dropped. */
void maplimit_drop(struct maplimit *l, uint32_t tgid, uint64_t time);
/* An exec of 'tgid', which empties its memory and begins a new count. */
void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time);
/*
 * Records of any process may be missing from 'from' on: what equals the last one
 * that came is no repeat then, and what was skipped as such counts as dropped.
 */
void maplimit_lost(struct maplimit *l, uint64_t from);
/* Tells of what was dropped since the last call; after each drain. */
void maplimit_flush(struct maplimit *l);

#endif /* PROFILER_MAPLIMIT_H */
