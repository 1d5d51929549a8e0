// SPDX-License-Identifier: Apache-2.0
/* ring: see base/ring.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/ring.h"

#define RING_SLACK_NS CLOCK_NSEC_PER_MSEC

struct ring {
	struct ring_buffer *rb;
	/* libbpf 1.1 has no interface to the positions: mapped again. */
	volatile unsigned long *consumer;
	volatile unsigned long *producer;
	uint64_t watermark;
};

static void *ring_map_page(int map_fd, long page)
{
	long size = sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, map_fd, page * size);

	return p == MAP_FAILED ? NULL : p;
}

int ring_new(struct ring **ringp, int map_fd, ring_fn fn, void *arg)
{
	struct ring *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return err;
	errno = 0;
	r->rb = ring_buffer__new(map_fd, fn, arg, NULL);
	r->consumer = r->rb ? ring_map_page(map_fd, 0) : NULL;
	r->producer = r->consumer ? ring_map_page(map_fd, 1) : NULL;
	if (!r->producer) {
		err = errno ? -errno : -ENOMEM;
		ring_free(r);
		return err;
	}
	*ringp = r;
	return 0;
}

void ring_free(struct ring *r)
{
	long size = sysconf(_SC_PAGESIZE);

	if (!r)
		return;
	if (r->producer)
		munmap((void *)r->producer, size);
	if (r->consumer)
		munmap((void *)r->consumer, size);
	ring_buffer__free(r->rb);
	free(r);
}

int ring_consume(struct ring *r)
{
	uint64_t now = clock_boottime_ns();
	unsigned long producer;
	int n;

	producer = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	n = ring_buffer__consume(r->rb);
	if (n >= 0 &&
	    __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE) >= producer)
		r->watermark = now - RING_SLACK_NS;
	return n;
}

uint64_t ring_watermark(const struct ring *r)
{
	return r->watermark;
}

int ring_epoll_fd(const struct ring *r)
{
	return ring_buffer__epoll_fd(r->rb);
}

size_t ring_backlog(const struct ring *r)
{
	return *r->producer - *r->consumer;
}
