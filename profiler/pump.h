/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump: merges streams by kernel time. It knows nothing of what it carries: a
 * record is a time, a stream and a pointer. What is handed on is a pure
 * function of what was pushed and of the watermarks, so it is tested by replay.
 *
 * A record is handed on when every stream's watermark has passed its time, in
 * the order (time, stream, order of pushing). One that comes with a time below
 * what was handed on already is late: it is counted, and handed on at once.
 *
 * What waits has a ceiling: half of it for samples, a quarter each for lifecycle and
 * mapping records. What exceeds its stream's part is dropped, and counted, but for a
 * walk's: that repairs what else was lost, and has one record a process. When samples
 * fill half of their part they wait for lifecycle records no more.
 */
#ifndef PROFILER_PUMP_H
#define PROFILER_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pump;

/* Which of two records of one time goes first is the order here. */
#define PUMP_STREAMS(X)                                         \
	X(LIFECYCLE, lifecycle, "fork, exec, exit, reap")       \
	X(MAPPING, mapping, "perf side-band")                   \
	X(SCAN, walk, "processes and mappings read from /proc") \
	X(SAMPLE, sample, "samples")

enum pump_stream {
#define X(name, word, help) PUMP_##name,
	PUMP_STREAMS(X)
#undef X
	PUMP_STREAM_MAX,
};

/* Takes over 'rec'. */
typedef void (*pump_deliver_fn)(void *arg, enum pump_stream stream,
				uint64_t time, void *rec, bool late);
/* Frees 'rec', which will not be delivered. */
typedef void (*pump_drop_fn)(void *arg, enum pump_stream stream, void *rec);

/* 'ceiling': bytes that may wait, entries included, but for a walk's. */
int pump_new(struct pump **pp, size_t ceiling, pump_deliver_fn deliver,
	     pump_drop_fn drop, void *arg);
/* Drops what is in it. */
void pump_free(struct pump *p);

/*
 * 'rec' is the pump's from here on, also on error: -ENOMEM, or -ENOBUFS at the
 * ceiling, and then the record is dropped and counted.
 */
int pump_push(struct pump *p, enum pump_stream stream, uint64_t time, void *rec,
	      size_t size);
/*
 * The same of what is seldom and must not be lost: beyond the part of its stream
 * there is room for it, half as much again.
 */
int pump_push_rare(struct pump *p, enum pump_stream stream, uint64_t time,
		   void *rec, size_t size);
/* Only ever rises; a lower value is ignored. UINT64_MAX: nothing will come. */
void pump_watermark(struct pump *p, enum pump_stream stream, uint64_t time);
/* Hands on what is ripe. The time up to which all has been handed on. */
uint64_t pump_run(struct pump *p);
/* 'n' records at most. True: more is ripe. */
bool pump_run_some(struct pump *p, size_t n);
/* The time up to which all has been handed on. */
uint64_t pump_passed(const struct pump *p);

struct pump_stats {
	uint64_t pushed[PUMP_STREAM_MAX];
	uint64_t late[PUMP_STREAM_MAX];
	uint64_t nomem[PUMP_STREAM_MAX];
	uint64_t full[PUMP_STREAM_MAX]; /* dropped at the ceiling */
	uint64_t records; /* waiting now */
	uint64_t bytes; /* waiting now, entries included */
	uint64_t bytes_of[PUMP_STREAM_MAX]; /* of these, of each stream */
	uint64_t bytes_max;
	uint64_t hurried; /* times that samples went on without lifecycle records */
};
void pump_get_stats(const struct pump *p, struct pump_stats *out);

#endif /* PROFILER_PUMP_H */
