/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maplimit: limits the mapping records of one process. Any user can make half a
 * million a second, each with a path of 4 KiB; the process manager handles far
 * fewer. A record that repeats the last one of its process is skipped, which
 * loses nothing. Otherwise each process has a share of records and bytes a
 * second, which shrinks as all processes together have more; for a second after
 * an exec it shrinks less, because the new image's mappings are needed by its
 * first sample. Records beyond the share are dropped, and the mappings of that
 * process must be re-read.
 *
 * Processes are counted exactly, by tgid. The table is bounded: a new process
 * replaces the one whose last record is the oldest, and begins with an empty
 * count.
 */
#ifndef PROFILER_MAPLIMIT_H
#define PROFILER_MAPLIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Records and their bytes, a second and process. */
#define MAPLIMIT_PROCESS 4096
#define MAPLIMIT_PROCESS_BYTES (384 << 10)
/* While all together had more than this in this second: */
#define MAPLIMIT_ALL 16384
#define MAPLIMIT_ALL_BYTES (2 << 20)
#define MAPLIMIT_CROWD 64
#define MAPLIMIT_CROWD_BYTES (16 << 10)
/* ... and in the second after its exec. */
#define MAPLIMIT_EXEC 256
#define MAPLIMIT_EXEC_BYTES (32 << 10)
/* A process with more than this in a second, dropped ones included, floods. */
#define MAPLIMIT_FLOOD 1024
#define MAPLIMIT_FLOOD_BYTES (256 << 10)
/*
 * Repeats are skipped for so long: later, a re-read may have seen the process
 * without the mapping.
 */
#define MAPLIMIT_REPEAT_NS 10000000
/* Identifies a mapping: this many bytes of a record, from the address on. */
#define MAPLIMIT_KEY 64

struct maplimit;

enum maplimit_verdict {
	MAPLIMIT_PASS,
	MAPLIMIT_REPEAT, /* nothing new */
	MAPLIMIT_DROP, /* maplimit_flush() will report it */
};

/* Records of 'tgid' were dropped. */
struct maplimit_drops {
	uint32_t tgid;
	bool flood; /* by its own number, not by that of all processes */
	uint64_t from, to; /* times of the first and the last */
};
typedef void (*maplimit_fn)(void *arg, const struct maplimit_drops *drops);

/* NULL: no memory. 'fn' is called from the functions below. */
struct maplimit *maplimit_new(maplimit_fn fn, void *arg);
void maplimit_free(struct maplimit *l);
/* Records of one CPU in the order of their time, CPUs in any order. */
enum maplimit_verdict maplimit_map(struct maplimit *l, uint32_t tgid,
				   uint64_t time, size_t bytes,
				   const char key[MAPLIMIT_KEY]);
/* A record that passed was dropped later on. */
void maplimit_drop(struct maplimit *l, uint32_t tgid, uint64_t time);
/* An exec of 'tgid', which empties its memory and begins a new count. */
void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time);
/*
 * Records of any process may be missing from 'from' on: the next one is no
 * repeat, and repeats skipped since count as dropped.
 */
void maplimit_lost(struct maplimit *l, uint64_t from);
/* Reports the drops since the last call; after each drain. */
void maplimit_flush(struct maplimit *l);

#endif /* PROFILER_MAPLIMIT_H */
