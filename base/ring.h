/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: a BPF ring buffer and its watermark.
 *
 * Records are in the ring in the order of their reservation, not of their times, and
 * libbpf's consume returns 0 also while an unsubmitted record blocks the head. So a
 * drained ring alone is no watermark. ring_consume() reads the clock (T), reads the
 * producer position (P) and drains. If the consumer reaches P, every record reserved
 * before T was seen. The BPF programs read the clock after the reservation, so later
 * records have times after T, less the few microseconds by which the clocks of two
 * CPUs may differ. The watermark is T less a millisecond.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring;

/*
 * One record, borrowed for the call. Returns 0, or a negative value to stop the
 * drain after this record; ring_consume() then returns that value.
 */
typedef int (*ring_fn)(void *arg, void *data, size_t len);

/*
 * 'map_fd' is that of a BPF_MAP_TYPE_RINGBUF; the caller keeps it open until
 * ring_free(). 0 or -errno.
 */
int ring_new(struct ring **ringp, int map_fd, ring_fn fn, void *arg);
void ring_free(struct ring *r);

/* Passes all records to fn. Their number, -errno, or what fn returned. */
int ring_consume(struct ring *r);
/* All later records have times from this on. CLOCK_BOOTTIME, ns. */
uint64_t ring_watermark(const struct ring *r);
/* Becomes readable at a wakeup; owned by the ring. */
int ring_epoll_fd(const struct ring *r);
/* Bytes not consumed yet. */
size_t ring_backlog(const struct ring *r);

#endif /* BASE_RING_H */
