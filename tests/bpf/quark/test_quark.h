/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by libquark's tests on the running kernel. Each test body runs in a process
 * of its own, which must leave no descriptors open.
 */
#ifndef TESTS_BPF_QUARK_TEST_QUARK_H
#define TESTS_BPF_QUARK_TEST_QUARK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "processmanager/quark/quark.h"

/* Used in the child, where cmocka's own way out must not be taken. */
#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			_exit(1);                                          \
		}                                                          \
	} while (0)

#define CHECK_INT(a, b)                                                      \
	do {                                                                 \
		long long a_ = (long long)(a), b_ = (long long)(b);          \
		if (a_ != b_) {                                              \
			fprintf(stderr, "%s:%d: %s = %lld, not %s = %lld\n", \
				__FILE__, __LINE__, #a, a_, #b, b_);         \
			_exit(1);                                            \
		}                                                            \
	} while (0)

#define CHECK_STR(a, b)                                                     \
	do {                                                                \
		const char *a_ = (a), *b_ = (b);                            \
		if (!a_ || !b_ || strcmp(a_, b_)) {                         \
			fprintf(stderr, "%s:%d: %s = \"%s\", not \"%s\"\n", \
				__FILE__, __LINE__, #a, a_, b_);            \
			_exit(1);                                           \
		}                                                           \
	} while (0)

static inline int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Runs a body as described above. */
static inline void in_child(void (*body)(void))
{
	int status = -1, fds;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* A test that hangs ends with its program. */
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		fds = count_fds();
		body();
		CHECK_INT(count_fds(), fds);
		exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* QUARK_TEST_BACKEND=kprobe: the same tests over the other one. */
static inline int backend(void)
{
	const char *name = getenv("QUARK_TEST_BACKEND");

	return name && !strcmp(name, "kprobe") ? QQ_KPROBE : QQ_EBPF;
}

static inline void open_raw(struct quark_queue *qq, size_t ring_bytes)
{
	struct quark_queue_attr attr;

	quark_queue_default_attr(&attr);
	attr.flags = backend() | QQ_NO_AGG;
	attr.hold_time = 0;
	attr.max_env = 0;
	/* Inferred reaps come soon. */
	attr.cache_grace_time = 500;
	attr.ring_bytes = ring_bytes;
	if (quark_queue_open(qq, &attr) < 0) {
		fprintf(stderr, "open: %s\n", quark_queue_open_error());
		_exit(1);
	}
}

static inline double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Events of one queue, in order, copied. */
struct tape {
	struct quark_event **ev;
	size_t n, cap;
	uint64_t last; /* time of the last event */
	uint64_t watermark; /* promised when the queue was last found empty */
};

static inline void tape_add(struct tape *t, const struct quark_event *ev)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 1024;
		t->ev = realloc(t->ev, t->cap * sizeof(*t->ev));
		CHECK(t->ev);
	}
	t->ev[t->n] = quark_event_dup(ev);
	CHECK(t->ev[t->n]);
	t->n++;
}

static inline void tape_fini(struct tape *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		free(t->ev[i]);
	free(t->ev);
	memset(t, 0, sizeof(*t));
}

/*
 * Everything there is, once. The order of time and the watermark's promise are
 * checked of whatever passes here.
 */
static inline void tape_read(struct tape *t, struct quark_queue *qq)
{
	const struct quark_event *ev;

	while ((ev = quark_queue_get_event(qq))) {
		CHECK(ev->boottime >= t->last);
		CHECK(ev->boottime >= t->watermark);
		t->last = ev->boottime;
		tape_add(t, ev);
	}
	t->watermark = quark_queue_watermark(qq);
}

static inline struct quark_event *tape_find(const struct tape *t, uint32_t pid,
					    uint64_t kind)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->ev[i]->process && t->ev[i]->process->pid == pid &&
		    t->ev[i]->events & kind)
			return t->ev[i];
	return NULL;
}

static inline int tape_count(const struct tape *t, uint32_t pid, uint64_t kind)
{
	int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		n += t->ev[i]->process && t->ev[i]->process->pid == pid &&
		     t->ev[i]->events & kind;
	return n;
}

/* Events of that process from the n-th on. */
static inline int tape_count_from(const struct tape *t, size_t n, uint32_t pid)
{
	struct tape tail = { .ev = t->ev + n, .n = t->n - n };

	return tape_count(&tail, pid, ~0ULL);
}

/* Reads until that event of that process is there. */
static inline struct quark_event *
tape_wait(struct tape *t, struct quark_queue *qq, uint32_t pid, uint64_t kind)
{
	double end = seconds() + 120;
	struct quark_event *ev;

	for (;;) {
		tape_read(t, qq);
		ev = tape_find(t, pid, kind);
		if (ev)
			return ev;
		CHECK(seconds() < end);
		CHECK(quark_queue_block(qq) == 0);
	}
}

/* A process that ends at once and is waited for. */
static inline pid_t short_life(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return pid;
}

static inline pid_t spawn_true(void)
{
	char *argv[] = { "true", NULL }, *env[] = { NULL };
	pid_t pid;

	CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env) == 0);
	return pid;
}

#endif /* TESTS_BPF_QUARK_TEST_QUARK_H */
