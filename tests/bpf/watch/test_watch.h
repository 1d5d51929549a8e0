/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of watched events share: a subscriber, and what it got. */
#ifndef TESTS_BPF_WATCH_TEST_WATCH_H
#define TESTS_BPF_WATCH_TEST_WATCH_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "processmanager/watch/watch.h"

#define GOT_MAX 20000
#define WAIT_SECONDS 30

static struct watch *watch;
static struct watch_sub *sub;
static struct watch_event *got;
static size_t n_got;

static inline void settle(void)
{
	for (int i = 0; watch_pending(watch) && i < 10; i++) {
		assert_int_equal(watch_work(watch), 0);
		watch_worked(watch);
	}
}

static inline struct watch_sub *subscribe(const struct watch_want *want)
{
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s = NULL;
	const char *text;
	int err = watch_subscribe(watch, want, &s, &why);

	if (err)
		fail_msg("subscribe: %d %s", err, strbuf_str(&why));
	strbuf_fini(&why);
	settle();
	err = watch_ready(s, &text);
	if (err != 1)
		fail_msg("ready: %d %s", err, text);
	return s;
}

/* Subscribes to one pattern; 'take' may be NULL. */
static inline void start(const char *name,
			 bool (*take)(void *arg, const struct watch_event *e))
{
	const struct watch_want want = { .names = &name,
					 .n_names = 1,
					 .take = take };

	if (!got)
		got = calloc(GOT_MAX, sizeof(*got));
	assert_non_null(got);
	if (!watch)
		assert_int_equal(watch_new(&watch, &(struct watch_opts){ 0 }),
				 0);
	n_got = 0;
	sub = subscribe(&want);
}

static inline void stop(void)
{
	watch_unsubscribe(sub);
	settle();
}

/*
 * A crowded ring gives each user a budget. The rest of the host uses up root's: while
 * there is a storm, this process has another real user, and all rights of root.
 */
static inline void own_budget(bool begin)
{
	assert_int_equal(setresuid(begin ? 65533 : 0, -1, -1), 0);
}

/* Strings of an event that is kept: the subscriber's are those of the last one. */
static inline void keep(struct watch_event *e)
{
	e->fd.path = strdup(e->fd.path);
	for (size_t i = 0; i < e->n_attributes; i++)
		if (e->attributes[i].type == WATCH_STRING)
			e->attributes[i].s = strdup(e->attributes[i].s);
}

static inline void collect(void)
{
	assert_true(watch_read(watch) >= 0);
	while (n_got < GOT_MAX && !watch_next(sub, &got[n_got]))
		keep(&got[n_got++]);
}

/* The i-th event of a name, of those that were collected. NULL: there is none. */
static inline struct watch_event *nth(const char *name, size_t i)
{
	for (size_t k = 0; k < n_got; k++)
		if (!strcmp(watch_name(got[k].name)->name, name) && i-- == 0)
			return &got[k];
	return NULL;
}

/* Waits for it. */
static inline struct watch_event *wait_nth(const char *name, size_t i)
{
	struct watch_event *e;

	for (int tries = 0; tries < WAIT_SECONDS * 200; tries++) {
		collect();
		e = nth(name, i);
		if (e)
			return e;
		usleep(5000);
	}
	fail_msg("no event %zu of %s among %zu", i, name, n_got);
	return NULL;
}

/* Whether the running kernel lacks a part of a name. */
static inline bool lacks(const char *name)
{
	for (size_t i = 0; watch_name(i); i++)
		if (!strcmp(watch_name(i)->name, name))
			return watch_name_lack(i) != NULL;
	fail_msg("no name %s", name);
	return false;
}

static inline const struct watch_attribute *
attribute(const struct watch_event *e, const char *key)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, key))
			return &e->attributes[i];
	return NULL;
}

static inline int64_t number(const struct watch_event *e, const char *key)
{
	const struct watch_attribute *a = attribute(e, key);

	if (!a || a->type == WATCH_STRING)
		fail_msg("%s has no number %s", watch_name(e->name)->name, key);
	return a->i;
}

static inline const char *text(const struct watch_event *e, const char *key)
{
	const struct watch_attribute *a = attribute(e, key);

	if (!a || a->type != WATCH_STRING)
		fail_msg("%s has no text %s", watch_name(e->name)->name, key);
	return a->s;
}

#endif /* TESTS_BPF_WATCH_TEST_WATCH_H */
