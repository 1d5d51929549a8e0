/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pump: merges streams by kernel time. It does not interpret the records: each
 * is a time, a stream and a pointer. Its output is a pure function of the
 * records pushed and the watermarks, so it is tested by replay.
 *
 * A record is delivered when every stream's watermark has passed its time, in
 * the order (time, stream, order of pushing). A record with a time below one
 * that was delivered is late: it is counted, and delivered at once.
 *
 * The bytes in the pump have a ceiling: half of it for samples, a quarter each
 * for lifecycle and mapping records; stacks of waits, which come only with --wait,
 * have another quarter. Records beyond their stream's part are
 * dropped and counted, except those of a scan: they make up for other losses,
 * and there is one for each process. When samples fill half of their part they
 * do not wait for lifecycle records any longer.
 */
#ifndef PROFILER_PUMP_H
#define PROFILER_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pump;

/* In the order in which records of equal time are delivered. */
#define PUMP_STREAMS(X)                                         \
	X(LIFECYCLE, lifecycle, "fork, exec, exit, reap")       \
	X(MAPPING, mapping, "perf side-band")                   \
	X(SCAN, walk, "processes and mappings read from /proc") \
	X(SAMPLE, sample, "samples")                            \
	X(SITE, site, "stacks of waits")

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

/* 'ceiling': bytes of all records but a scan's, entries included. */
int pump_new(struct pump **pp, size_t ceiling, pump_deliver_fn deliver,
	     pump_drop_fn drop, void *arg);
/* Drops what is in it. */
void pump_free(struct pump *p);

/*
 * The pump takes over 'rec', also on error: -ENOMEM, or -ENOBUFS at the
 * ceiling; then the record is dropped and counted.
 */
int pump_push(struct pump *p, enum pump_stream stream, uint64_t time, void *rec,
	      size_t size);
/* For rare records that should not be dropped: half as much room again. */
int pump_push_rare(struct pump *p, enum pump_stream stream, uint64_t time,
		   void *rec, size_t size);
/* A value below the last one is ignored. UINT64_MAX: no more records. */
void pump_watermark(struct pump *p, enum pump_stream stream, uint64_t time);
/* Delivers records below the least watermark. Returns pump_passed(). */
uint64_t pump_run(struct pump *p);
/* The same for 'n' records at most. True: there are more. */
bool pump_run_some(struct pump *p, size_t n);
/* The time up to which all records were delivered. */
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
	uint64_t hurried; /* times samples ignored lifecycle records */
};
void pump_get_stats(const struct pump *p, struct pump_stats *out);

#endif /* PROFILER_PUMP_H */
