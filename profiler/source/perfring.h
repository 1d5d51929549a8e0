/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfring: the ring of a perf event, on one CPU. The kernel writes records in
 * their order of time, as far as one CPU is concerned; see
 * perf_event_open(2), MMAP layout.
 */
#ifndef PROFILER_PERFRING_H
#define PROFILER_PERFRING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* perf_event_header.size is a u16. */
#define PERFRING_RECORD_MAX 65536

struct perfring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	size_t bytes; /* of records: a power of two of pages */
	uint64_t watermark; /* nothing older is still to come */
	/*
	 * Bytes that were in use, at most, before the last drain gave them
	 * back: a record got lost only if it did not fit beside them.
	 */
	uint64_t used;
};

/* 0 or -errno. The ring lives on when 'fd' is closed, but gets no more. */
int perfring_map(struct perfring *r, int fd, size_t bytes);
void perfring_unmap(struct perfring *r);

/*
 * Hands on what is there, header included, and lets the kernel have the room
 * back. A record that wraps around the end is put together in 'scratch',
 * PERFRING_RECORD_MAX bytes. How many; -EINVAL when lengths made no sense, and
 * then all that was there is thrown away.
 */
int perfring_drain(struct perfring *r, char *scratch,
		   void (*record)(void *arg, const void *rec, size_t len),
		   void *arg);

/*
 * A CPU that goes offline, as at a suspend, takes its events along for good
 * (perf_event_exit_cpu()): they stay open, and silent when it is back. Whether
 * that was between two looks their clock says, which then stands still. 'fd'
 * is of an event that is enabled, with PERFRING_READ_FORMAT.
 */
#define PERFRING_READ_FORMAT PERF_FORMAT_TOTAL_TIME_ENABLED
bool perfring_silent(int fd);

/* A look at which CPUs there are, some time after the one before. */
struct perfring_look {
	uint64_t at; /* CLOCK_BOOTTIME */
	uint64_t slept; /* by then, in all: clock_slept_ns() */
};
struct perfring_look perfring_look(void);

struct perfring_span {
	uint64_t from, to;
};
/*
 * A suspend takes all CPUs but the first offline. What of 'span', in which a CPU
 * was not listened to, the host was awake in, for all that two looks tell: into
 * 'out', which has room for two. How many. Of a night only its ends remain.
 */
int perfring_awake(const struct perfring_look *before,
		   const struct perfring_look *after,
		   const struct perfring_span *span, struct perfring_span *out);

#endif /* PROFILER_PERFRING_H */
