/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfring: the ring of a perf event, on one CPU. The kernel writes records in
 * their order of time, as far as one CPU is concerned; see
 * perf_event_open(2), MMAP layout.
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
/* The largest power of two, times 'least', within a budget; at least that. */
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
	/* Between perfring_begin() and perfring_end(): what is left. */
	uint64_t head, tail;
	uint32_t step; /* bytes of the record at the tail */
	bool bad; /* lengths made no sense; for the caller to reset */
	uint64_t watermark; /* nothing older is still to come */
	/*
	 * Bytes that were in use, at most, before the last drain gave them
	 * back: a record got lost only if it did not fit beside them.
	 */
	uint64_t used;
};

/* 0 or -errno. The ring lives on when 'fd' is closed, but gets no more. */
int perfring_map(struct perfring *r, int fd, size_t bytes, char *scratch);
void perfring_unmap(struct perfring *r);

/* Reads what is in the ring by then, up to perfring_end(). */
void perfring_begin(struct perfring *r);
/*
 * The record at the tail, header included; NULL: there are no more. Where its
 * length makes no sense, all that is left is dropped and 'bad' set.
 */
const void *perfring_peek(struct perfring *r, size_t *len);
void perfring_skip(struct perfring *r);
/* Gives the room of what was skipped back to the kernel. */
void perfring_end(struct perfring *r);

/*
 * Hands on what is there, giving room back meanwhile, and sets 'watermark' and
 * 'used'. The number of records; -EINVAL when lengths made no sense.
 */
int perfring_drain(struct perfring *r,
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

/* What an event with PERFRING_READ_FORMAT | PERF_FORMAT_LOST has counted. */
struct perfring_counts {
	uint64_t value, enabled, lost;
};
bool perfring_counts(int fd, struct perfring_counts *out);

/* An edge-triggered event in an epoll instance, until its CPU or task is gone. */
int perfring_watch(int epoll, int fd);
/* Removes those, which would be readable for ever. */
void perfring_forget_gone(int epoll);

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

#endif /* BASE_PERFRING_H */
