// SPDX-License-Identifier: Apache-2.0
/* singles: see reporter/store/singles.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/store/singles.h"

int singles_init(struct singles *s, uint64_t min)
{
	*s = (struct singles){ .min = min };
	arena_init(&s->arena);
	return hash_init(&s->by_thread, 0);
}

void singles_fini(struct singles *s)
{
	hash_fini(&s->by_thread);
	arena_fini(&s->arena);
	free(s->items);
	free(s->threads);
	*s = (struct singles){ 0 };
}

static uint32_t singles_user(uint32_t uid)
{
	return (uint32_t)(hash_u64(uid) % SINGLES_USERS);
}

static uint64_t singles_least(const struct singles *s, uint32_t user)
{
	return s->min << s->users[user].doubled;
}

uint64_t singles_top(const struct singles *s)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < SINGLES_USERS; i++)
		most = MAX(most, s->users[i].doubled);
	return s->min << most;
}

size_t singles_bytes(const struct singles *s)
{
	return s->cap * sizeof(*s->items) + s->arena.bytes +
	       s->cap_threads * sizeof(*s->threads);
}

/* --- threads ------------------------------------------------------------------ */

static uint64_t singles_hash(const struct abi_key *key, uint32_t tid)
{
	return hash_mix(hash_mix(key->start_boottime, key->exec_id),
			(uint64_t)key->tgid << 32 | tid);
}

static bool singles_is(const struct singles_thread *t,
		       const struct abi_key *key, uint32_t tid)
{
	return t->tid == tid && t->key.tgid == key->tgid &&
	       t->key.start_boottime == key->start_boottime &&
	       t->key.exec_id == key->exec_id;
}

static bool singles_thread_room(const struct singles *s, uint32_t user)
{
	return s->nthreads < SINGLES_THREADS &&
	       s->users[user].threads < SINGLES_THREADS - s->nthreads;
}

/* 0; -ENOBUFS: there is no room for one more; -ENOMEM. */
static int singles_thread(struct singles *s, const struct abi_key *key,
			  uint32_t tid, uint32_t user,
			  struct singles_thread **out)
{
	uint64_t h = singles_hash(key, tid);
	struct singles_thread *t;

	HASH_FIND(t, &s->by_thread, h, node, singles_is(t, key, tid));
	*out = t;
	if (t)
		return 0;
	if (!singles_thread_room(s, user))
		return -ENOBUFS;
	t = VECTOR_ROOM(s->threads, s->nthreads, s->cap_threads)
		    ? NULL
		    : arena_alloc(&s->arena, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct singles_thread){
		.key = *key,
		.tid = tid,
		.index = (uint32_t)s->nthreads,
		.last = SINGLES_NONE,
	};
	hash_insert(&s->by_thread, &t->node, h);
	s->threads[s->nthreads++] = t;
	s->users[user].threads++;
	*out = t;
	return 0;
}

static void singles_name(struct singles_thread *t, const char *name, size_t len)
{
	memset(t->name, 0, sizeof(t->name));
	memcpy(t->name, name, strnlen(name, MIN(len, sizeof(t->name))));
}

/* --- room --------------------------------------------------------------------- */

static bool singles_room(const struct singles *s, uint32_t user)
{
	return s->n < SINGLES_MAX && s->users[user].waits < SINGLES_MAX - s->n;
}

/* Drops what is shorter now. */
static void singles_sift(struct singles *s, uint32_t user)
{
	uint64_t least = singles_least(s, user);
	size_t to = 0;

	for (size_t i = 0; i < s->nthreads; i++)
		s->threads[i]->last = SINGLES_NONE;
	for (size_t i = 0; i < s->n; i++) {
		const struct single *x = &s->items[i];

		if (x->user == user && x->length < least) {
			s->users[user].waits--;
			s->dropped++;
			continue;
		}
		s->threads[x->thread]->last = (uint32_t)to;
		s->items[to++] = *x;
	}
	s->n = to;
}

/* Whether there is room for a wait of this length. */
static bool singles_make_room(struct singles *s, uint32_t user, uint64_t length)
{
	while (length >= singles_least(s, user)) {
		if (singles_room(s, user))
			return true;
		/* Others have all: of what this one has nothing would help. */
		if (!s->users[user].waits ||
		    singles_least(s, user) > UINT64_MAX / 4)
			return false;
		s->users[user].doubled++;
		singles_sift(s, user);
	}
	return false;
}

/* --- adding ------------------------------------------------------------------- */

static void singles_set(struct singles *s, struct single *to,
			const struct abi_segment *of,
			const struct singles_thread *waker, uint32_t sample)
{
	bool open = of->flags & ABI_SEGMENT_OPEN;

	to->begin = of->begin;
	to->length = of->end - of->begin;
	to->waker = waker ? waker->index : SINGLES_NONE;
	to->sample = sample;
	to->what = of->what;
	to->end = (uint8_t)(open ? SINGLES_OPEN : of->waker.kind + 1);
}

/* What was recorded of the same wait while it was open; NULL: nothing. */
static struct single *singles_open(const struct singles *s,
				   const struct singles_thread *t,
				   const struct abi_segment *of)
{
	struct single *last =
		t->last == SINGLES_NONE ? NULL : &s->items[t->last];

	return last && last->end == SINGLES_OPEN && last->begin == of->begin
		       ? last
		       : NULL;
}

static int singles_append(struct singles *s, struct singles_thread *t,
			  const struct abi_segment *of,
			  const struct singles_thread *waker, uint32_t sample,
			  uint32_t user)
{
	struct single *x;

	if (!singles_make_room(s, user, of->end - of->begin)) {
		s->dropped++;
		return 0;
	}
	if (VECTOR_ROOM(s->items, s->n, s->cap))
		return -ENOMEM;
	x = &s->items[s->n];
	*x = (struct single){ .thread = t->index, .user = (uint16_t)user };
	singles_set(s, x, of, waker, sample);
	t->last = (uint32_t)s->n++;
	s->users[user].waits++;
	return 0;
}

int singles_add(struct singles *s, const struct abi_segment *of,
		uint32_t sample, uint32_t uid, const char *name)
{
	const struct abi_waker *by = &of->waker;
	struct singles_thread *t, *waker = NULL;
	uint32_t user = singles_user(uid);
	struct single *open;
	int err;

	if (of->end - of->begin < singles_least(s, user)) {
		s->dropped++;
		return 0;
	}
	err = singles_thread(s, &of->key, of->tid, user, &t);
	if (!err && by->key.tgid)
		err = singles_thread(s, &by->key, by->tid, user, &waker);
	if (err) {
		s->dropped++;
		return err == -ENOBUFS ? 0 : err;
	}
	singles_name(t, of->comm, sizeof(of->comm));
	if (waker && !*waker->name)
		singles_name(waker, name, strlen(name));
	open = singles_open(s, t, of);
	if (open) {
		singles_set(s, open, of, waker, sample);
		return 0;
	}
	err = singles_append(s, t, of, waker, sample, user);
	s->dropped += err != 0;
	return err;
}
