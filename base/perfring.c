// SPDX-License-Identifier: Apache-2.0
/* perfring: see base/perfring.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/perfring.h"

/* The kernel reads the clock a moment before it reserves space for a record. */
#define PERFRING_SLACK_NS CLOCK_NSEC_PER_MSEC

#define PERFRING_GONE 16 /* events checked at once */

int perfring_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1,
			 PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

size_t perfring_size(size_t least, size_t budget)
{
	while (least * 2 <= budget)
		least *= 2;
	return least;
}

int perfring_map(struct perfring *r, int fd, size_t bytes, char *scratch)
{
	void *p = mmap(NULL, sysconf(_SC_PAGESIZE) + bytes,
		       PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	r->page = p;
	r->bytes = bytes;
	r->scratch = scratch;
	r->watermark = clock_boottime_ns();
	return 0;
}

void perfring_unmap(struct perfring *r)
{
	if (r->page)
		munmap(r->page, sysconf(_SC_PAGESIZE) + r->bytes);
	r->page = NULL;
}

void perfring_begin(struct perfring *r)
{
	r->tail = r->page->data_tail;
	r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/* 'n' bytes at the tail, copied if they wrap around the end. */
static const void *perfring_bytes(const struct perfring *r, size_t n)
{
	const char *data = (char *)r->page + sysconf(_SC_PAGESIZE);
	size_t off = r->tail & (r->bytes - 1);
	size_t first = MIN(n, r->bytes - off);

	if (first == n)
		return data + off;
	memcpy(r->scratch, data + off, first);
	memcpy(r->scratch + first, data, n - first);
	return r->scratch;
}

const void *perfring_peek(struct perfring *r, size_t *len)
{
	struct perf_event_header h;

	if (r->head - r->tail < sizeof(h))
		return NULL;
	memcpy(&h, perfring_bytes(r, sizeof(h)), sizeof(h));
	if (h.size < sizeof(h) || h.size > r->head - r->tail) {
		r->tail = r->head;
		r->bad = true;
		return NULL;
	}
	*len = r->step = h.size;
	return perfring_bytes(r, h.size);
}

void perfring_skip(struct perfring *r)
{
	r->tail += r->step;
}

void perfring_end(struct perfring *r)
{
	__atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
}

int perfring_drain(struct perfring *r,
		   void (*record)(void *arg, const void *rec, size_t len),
		   void *arg)
{
	uint64_t now = clock_boottime_ns(), before, given;
	const void *rec;
	size_t len;
	int n = 0;

	r->bad = false;
	perfring_begin(r);
	before = given = r->tail;
	while ((rec = perfring_peek(r, &len))) {
		record(arg, rec, len);
		perfring_skip(r);
		n++;
		/* Frees space while a flood goes on. */
		if (r->tail - given < r->bytes / 8)
			continue;
		given = r->tail;
		perfring_end(r);
	}
	perfring_end(r);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	r->used = r->head - before;
	r->watermark = now - PERFRING_SLACK_NS;
	return r->bad ? -EINVAL : n;
}

bool perfring_silent(int fd)
{
	/* With PERF_FORMAT_LOST a third number follows. */
	struct perfring_counts a, b;
	const ssize_t enough = offsetof(struct perfring_counts, lost);

	return read(fd, &a, sizeof(a)) >= enough &&
	       read(fd, &b, sizeof(b)) >= enough && a.enabled == b.enabled;
}

bool perfring_counts(int fd, struct perfring_counts *out)
{
	return read(fd, out, sizeof(*out)) == sizeof(*out);
}

int perfring_watch(int epoll, int fd)
{
	struct epoll_event ev = { EPOLLIN | EPOLLET, { .fd = fd } };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void perfring_forget_gone(int epoll)
{
	struct epoll_event ev[PERFRING_GONE];
	int i, n = epoll_wait(epoll, ev, PERFRING_GONE, 0);

	for (i = 0; i < n; i++)
		if (ev[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(epoll, EPOLL_CTL_DEL, ev[i].data.fd, NULL);
}

struct perfring_look perfring_look(void)
{
	return (struct perfring_look){ .at = clock_boottime_ns(),
				       .slept = clock_slept_ns() };
}

/*
 * The time of the suspend is not known. But before it the host was awake for at most
 * as long as between the two looks in all, and so it was after it.
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
