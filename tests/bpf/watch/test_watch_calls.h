/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of system calls as events share: events of this process and a child. */
#ifndef TESTS_BPF_WATCH_TEST_WATCH_CALLS_H
#define TESTS_BPF_WATCH_TEST_WATCH_CALLS_H

#include "tests/bpf/watch/test_watch.h"

#define NOWHERE "/nonexistent-dir/file"
#define BAD 0x1230 /* no page is there */

static pid_t child; /* events are read when it is known */

static inline bool of_family(void *arg, const struct watch_event *e)
{
	return e->key.tgid == (uint32_t)getpid() ||
	       e->key.tgid == (uint32_t)child;
}

#define NAMES_MAX 8

/* Its words, which it keeps. */
static inline size_t split(char *list, const char *words[NAMES_MAX])
{
	size_t n = 0;
	char *save, *word = strtok_r(list, " ", &save);

	for (; word && n < NAMES_MAX; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	return n;
}

/* 'list' has names; they are of one process, or of all of the host. */
static inline void begin_of(pid_t pid, const char *list, uint64_t slower,
			    bool failed)
{
	const char *names[NAMES_MAX];
	char copy[128];
	const uint32_t one = (uint32_t)pid;
	struct watch_want want = {
		.names = names,
		.pids = &one,
		.n_pids = pid ? 1 : 0,
		.slower_ns = slower,
		.failed = failed,
		.take = of_family,
	};

	snprintf(copy, sizeof(copy), "%s", list);
	want.n_names = split(copy, names);
	if (!watch)
		assert_int_equal(watch_new(&watch, &(struct watch_opts){ 0 }),
				 0);
	if (!got)
		got = calloc(GOT_MAX, sizeof(*got));
	n_got = 0;
	sub = subscribe(&want);
}

/*
 * They are of this process alone, or 'all': the child's, too; then they are few on the
 * whole host, whose processes of one user share a budget.
 */
static inline void begin(const char *list, uint64_t slower, bool failed,
			 bool all)
{
	begin_of(all ? 0 : getpid(), list, slower, failed);
}

/* The i-th event of a name and a process. */
static inline struct watch_event *nth_of(const char *name, pid_t pid, size_t i)
{
	for (size_t k = 0; k < n_got; k++)
		if (!strcmp(watch_name(got[k].name)->name, name) &&
		    got[k].key.tgid == (uint32_t)pid && i-- == 0)
			return &got[k];
	return NULL;
}

static inline struct watch_event *wait_of(const char *name, pid_t pid)
{
	struct watch_event *e;

	for (int tries = 0; tries < WAIT_SECONDS * 200; tries++) {
		collect();
		e = nth_of(name, pid, 0);
		if (e)
			return e;
		usleep(5000);
	}
	fail_msg("no event %s of %d among %zu", name, pid, n_got);
	return NULL;
}

#endif /* TESTS_BPF_WATCH_TEST_WATCH_CALLS_H */
