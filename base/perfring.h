/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfring: the ring of a perf event on one CPU; see perf_event_open(2), MMAP layout.
 * The kernel writes the records of one CPU in the order of their times.
 */
#ifndef BASE_PERFRING_H
#define BASE_PERFRING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* perf_event_header.size is a u16. */
#define PERFRING_RECORD_MAX 65536

#ifndef PERF_FORMAT_LOST /* before Linux 6.0's headers */
#define PERF_FORMAT_LOST (1U << 4)
#endif

/* perf_event_open(2) with PERF_FLAG_FD_CLOEXEC. The descriptor, or -errno. */
int perfring_event(const struct perf_event_attr *attr, pid_t pid, int cpu);
/* 'least' times the largest power of two within 'budget'; at least 'least'. */
size_t perfring_size(size_t least, size_t budget);

struct perfring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	size_t bytes; /* of records: a power of two of pages */
	/*
	 * PERFRING_RECORD_MAX bytes of the caller's, for a record that wraps around
	 * the end. Rings may share it if no record is used while another ring is
	 * read.
	 */
	char *scratch;
	uint64_t head, tail; /* from perfring_begin() to perfring_end() */
	uint32_t step; /* bytes of the record at the tail */
	bool bad; /* a length was invalid; the caller resets it */
	uint64_t watermark; /* later records are not older */
	/*
	 * The most bytes that were in use before the last drain freed them: the
	 * kernel dropped a record only if it did not fit beside them.
	 */
	uint64_t used;
};

/* 0 or -errno. When 'fd' is closed the ring stays, without new records. */
int perfring_map(struct perfring *r, int fd, size_t bytes, char *scratch);
void perfring_unmap(struct perfring *r);

/* Until perfring_end() the records that are in the ring now can be read. */
void perfring_begin(struct perfring *r);
/*
 * The record at the tail, with its header; NULL: there are no more. If its length is
 * invalid the rest is dropped and 'bad' set.
 */
const void *perfring_peek(struct perfring *r, size_t *len);
void perfring_skip(struct perfring *r);
/* Returns the space of skipped records to the kernel. */
void perfring_end(struct perfring *r);

/*
 * Passes all records to 'record', freeing space meanwhile, and sets 'watermark' and
 * 'used'. The number of records; -EINVAL if a length was invalid.
 */
int perfring_drain(struct perfring *r,
		   void (*record)(void *arg, const void *rec, size_t len),
		   void *arg);

/*
 * Whether an event has stopped. When a CPU goes offline, as at a suspend, the kernel
 * detaches its events (perf_event_exit_cpu()): they stay open, but count nothing
 * when it is back, and their clock stands still. 'fd' is that of an enabled event
 * with PERFRING_READ_FORMAT.
 */
#define PERFRING_READ_FORMAT PERF_FORMAT_TOTAL_TIME_ENABLED
bool perfring_silent(int fd);

/* Of an event with PERFRING_READ_FORMAT | PERF_FORMAT_LOST. */
struct perfring_counts {
	uint64_t value, enabled, lost;
};
bool perfring_counts(int fd, struct perfring_counts *out);

/* Adds an event to an epoll instance, edge-triggered. */
int perfring_watch(int epoll, int fd);
/* Removes events whose CPU or task is gone: they would stay readable. */
void perfring_forget_gone(int epoll);

/* When the list of online CPUs was read. */
struct perfring_look {
	uint64_t at; /* CLOCK_BOOTTIME */
	uint64_t slept; /* clock_slept_ns() at that time */
};
struct perfring_look perfring_look(void);

struct perfring_span {
	uint64_t from, to;
};
/*
 * A suspend takes all CPUs but the first offline. Of 'span', in which a CPU had no
 * event, the parts in which the host may have been awake, as far as two looks can
 * show: fills 'out' with one or two and returns their number. Of a long suspend only
 * its ends remain.
 */
int perfring_awake(const struct perfring_look *before,
		   const struct perfring_look *after,
		   const struct perfring_span *span, struct perfring_span *out);

#endif /* BASE_PERFRING_H */
