/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of waits share: the sums, collected by process and what they are of. */
#ifndef TESTS_BPF_WAIT_TEST_WAIT_H
#define TESTS_BPF_WAIT_TEST_WAIT_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/waiting/sums.h"

#define MSEC CLOCK_NSEC_PER_MSEC
#define WAIT_SECONDS 60 /* for a condition, at most */

static struct waiting_sums *sums;
static struct waiting_sum *got; /* one of each key and 'what' */
static size_t n_got, cap_got;

static inline bool same_image(const struct abi_key *a, const struct abi_key *b)
{
	return a->tgid == b->tgid && a->start_boottime == b->start_boottime &&
	       a->exec_id == b->exec_id;
}

static inline void on_sum(void *arg, const struct waiting_sum *sum)
{
	struct waiting_sum *s;

	for (s = got; s < got + n_got; s++)
		if (s->what == sum->what && same_image(&s->key, &sum->key))
			break;
	if (s == got + n_got) {
		assert_int_equal(VECTOR_ROOM(got, n_got, cap_got), 0);
		s = &got[n_got++];
		*s = (struct waiting_sum){ .key = sum->key, .what = sum->what };
	}
	s->threads = sum->threads;
	s->count += sum->count;
	s->ns += sum->ns;
	s->cpu_ns += sum->cpu_ns;
	s->wall_ns += sum->wall_ns;
}

static inline void read_sums(void)
{
	waiting_sums_read(sums, on_sum, NULL);
}

/* Those of a process (all its images) with this reason; 0xff: of any. */
static inline struct waiting_sum sum_of(pid_t pid, uint32_t reason)
{
	struct waiting_sum all = { .what = 0 };
	const struct waiting_sum *s;

	for (s = got; s < got + n_got; s++) {
		if (s->key.tgid != (uint32_t)pid ||
		    (reason != 0xff && ABI_WAIT_WHAT_REASON(s->what) != reason))
			continue;
		all.count += s->count;
		all.ns += s->ns;
		all.cpu_ns += s->cpu_ns;
		all.wall_ns += s->wall_ns;
	}
	return all;
}

static inline const struct waiting_sum *sum_exact(pid_t pid, uint32_t what)
{
	for (const struct waiting_sum *s = got; s < got + n_got; s++)
		if (s->key.tgid == (uint32_t)pid && s->what == what)
			return s;
	return NULL;
}

static inline void print_sums(pid_t pid)
{
	static const char *const reasons[] = {
#define X(NAME, name) #name,
		ABI_WAIT_REASONS(X)
#undef X
	};

	for (const struct waiting_sum *s = got; s < got + n_got; s++)
		if (s->key.tgid == (uint32_t)pid)
			print_message("  %s, call %u, fd %u: %" PRIu64
				      " x, %" PRIu64 " ns\n",
				      reasons[ABI_WAIT_WHAT_REASON(s->what)],
				      ABI_WAIT_WHAT_NR(s->what),
				      ABI_WAIT_WHAT_FD(s->what), s->count,
				      s->ns);
}

static inline void sleep_ms(unsigned int ms)
{
	const struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static inline int open_sums(void **state)
{
	const char *what;
	int err = waiting_sums_new(&sums, 0, 0, &what);

	if (err)
		print_message("%s: %s\n", what, strerror(-err));
	return err;
}

static inline int close_sums(void **state)
{
	waiting_sums_free(sums);
	sums = NULL;
	free(got);
	got = NULL;
	n_got = cap_got = 0;
	return 0;
}

/* The child is reaped, and its sums are final. */
static inline void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Its last switch may be a moment after its parent was woken. */
	for (int i = 0; i < WAIT_SECONDS * 100; i++) {
		read_sums();
		struct waiting_sum all = sum_of(pid, 0xff);

		if (all.wall_ns && all.wall_ns == all.ns)
			return;
		sleep_ms(10);
	}
	print_sums(pid);
	fail_msg("the time of process %d does not add up", pid);
}

#endif /* TESTS_BPF_WAIT_TEST_WAIT_H */
