/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: a BPF ring buffer and its watermark.
 *
 * Records lie in the ring in the order in which they were reserved, not in the
 * order of their times, and libbpf's consume returns 0 also while an
 * unsubmitted record blocks the head. So a drained ring proves nothing by
 * itself. What proves something: read the clock (T), read the producer
 * position (P), drain; if the consumer came as far as P, every record whose
 * slot was reserved before T has been seen. A program that reserves first and
 * reads its clock afterwards can then only bring times later than T, less the
 * few microseconds by which two CPUs' clocks and the reads may differ; a
 * millisecond is taken off for them.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/*
 * One record, borrowed for the call. 0, or anything negative to stop the
 * drain after this record; ring_consume() then returns that value.
 */
typedef int (*ring_fn)(void *arg, void *data, size_t len);

/*
 * 'map_fd' is a BPF_MAP_TYPE_RINGBUF's and stays the caller's, who keeps it
 * open meanwhile. 0 or -errno.
 */
int ring_new(struct ring **ringp, int map_fd, ring_fn fn, void *arg);
void ring_free(struct ring *r);

/* Hands on what there is. Number of records, or -errno, or what fn returned. */
int ring_consume(struct ring *r);
/* No record with a time below this will come any more. CLOCK_BOOTTIME, ns. */
uint64_t ring_watermark(const struct ring *r);
/* For epoll; owned by the ring. */
int ring_epoll_fd(const struct ring *r);
/* Bytes waiting in the ring. */
size_t ring_backlog(const struct ring *r);

#endif /* BASE_RING_H */
