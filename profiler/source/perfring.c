// SPDX-License-Identifier: Apache-2.0
/* perfring: see profiler/source/perfring.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/source/perfring.h"

/* A record is given its time before its place, a moment apart. */
#define PERFRING_SLACK_NS CLOCK_NSEC_PER_MSEC

int perfring_map(struct perfring *r, int fd, size_t bytes)
{
	void *p = mmap(NULL, sysconf(_SC_PAGESIZE) + bytes,
		       PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	r->page = p;
	r->bytes = bytes;
	r->watermark = clock_boottime_ns();
	return 0;
}

void perfring_unmap(struct perfring *r)
{
	if (r->page)
		munmap(r->page, sysconf(_SC_PAGESIZE) + r->bytes);
	r->page = NULL;
}

/* 'n' bytes at position 'pos', made contiguous if they wrap. */
static const void *perfring_peek(const struct perfring *r, char *scratch,
				 uint64_t pos, size_t n)
{
	const char *data = (char *)r->page + sysconf(_SC_PAGESIZE);
	size_t off = pos & (r->bytes - 1);
	size_t first = MIN(n, r->bytes - off);

	if (first == n)
		return data + off;
	memcpy(scratch, data + off, first);
	memcpy(scratch + first, data, n - first);
	return scratch;
}

int perfring_drain(struct perfring *r, char *scratch,
		   void (*record)(void *arg, const void *rec, size_t len),
		   void *arg)
{
	uint64_t now = clock_boottime_ns();
	uint64_t head, tail = r->page->data_tail, before = tail, given = tail;
	struct perf_event_header h;
	int n = 0;

	head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	while (head - tail >= sizeof(h)) {
		memcpy(&h, perfring_peek(r, scratch, tail, sizeof(h)),
		       sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail) {
			/* not ours to walk on: skip what there is */
			n = -EINVAL;
			tail = head;
			break;
		}
		record(arg, perfring_peek(r, scratch, tail, h.size), h.size);
		tail += h.size;
		n++;
		/* In the meantime more of a flood may come. */
		if (tail - given < r->bytes / 8)
			continue;
		given = tail;
		__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	r->used = head - before;
	r->watermark = now - PERFRING_SLACK_NS;
	return n;
}

bool perfring_silent(int fd)
{
	/* PERF_FORMAT_LOST puts a third one behind. */
	struct {
		uint64_t value, enabled, lost;
	} a, b;
	const ssize_t enough = offsetof(typeof(a), lost);

	return read(fd, &a, sizeof(a)) >= enough &&
	       read(fd, &b, sizeof(b)) >= enough && a.enabled == b.enabled;
}

struct perfring_look perfring_look(void)
{
	return (struct perfring_look){ .at = clock_boottime_ns(),
				       .slept = clock_slept_ns() };
}

/*
 * When it fell asleep nobody knows, but that it had not been awake for longer
 * than it was in all between the two looks; and so for its waking up.
 */
int perfring_awake(const struct perfring_look *before,
		   const struct perfring_look *after,
		   const struct perfring_span *span, struct perfring_span *out)
{
	uint64_t all = after->at - before->at;
	uint64_t slept = MIN(after->slept - before->slept, all);
	uint64_t fell = before->at + (all - slept);
	uint64_t woke = after->at - (all - slept);

	if (after->slept < before->slept || fell >= woke || span->from > fell ||
	    span->to < woke) {
		out[0] = *span;
		return 1;
	}
	out[0] = (struct perfring_span){ span->from, fell };
	out[1] = (struct perfring_span){ woke, span->to };
	return 2;
}
