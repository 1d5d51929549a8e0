// SPDX-License-Identifier: Apache-2.0
/* maplimit: see profiler/maplimit.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/maplimit.h"

#define SLOTS 2048 /* a power of two */
#define SECOND CLOCK_NSEC_PER_SEC
#define NONE UINT32_MAX

struct slot {
	uint32_t tgid; /* 0: none yet */
	uint32_t passed; /* in the second from 'second' on */
	uint64_t second;
	uint64_t since; /* time of the record that has 'key'; 0: none */
	uint64_t until; /* ... and of the last that repeated it */
	bool repeated;
	uint32_t next; /* of those that dropped something */
	uint64_t from, to; /* what it dropped; to 0: nothing */
	char key[MAPLIMIT_KEY];
};

struct maplimit {
	maplimit_fn fn;
	void *arg;
	uint64_t second;
	uint64_t passed; /* of all processes, since then */
	uint32_t dropped; /* the first slot that dropped something, or NONE */
	struct slot slots[SLOTS];
};

struct maplimit *maplimit_new(maplimit_fn fn, void *arg)
{
	struct maplimit *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->fn = fn;
	l->arg = arg;
	l->dropped = NONE;
	return l;
}

void maplimit_free(struct maplimit *l)
{
	free(l);
}

static void slot_tell(struct maplimit *l, struct slot *s)
{
	if (s->to)
		l->fn(l->arg, s->tgid, s->from, s->to);
	s->to = 0;
}

/*
 * What passed this second stays with the slot: two processes that share one could
 * otherwise give each other a new second with every record.
 */
static struct slot *slot_of(struct maplimit *l, uint32_t tgid)
{
	struct slot *s = &l->slots[hash_u64(tgid) & (SLOTS - 1)];

	if (s->tgid != tgid) {
		slot_tell(l, s);
		s->tgid = tgid;
		s->since = 0;
		s->repeated = false;
	}
	return s;
}

/* Between two flushes a slot is in the list once, whoever has it. */
static void slot_drop(struct maplimit *l, struct slot *s, uint64_t time)
{
	if (!s->to) {
		s->from = time;
		if (!s->next) {
			s->next = l->dropped + 2;
			l->dropped = s - l->slots;
		}
	}
	s->from = MIN(s->from, time);
	s->to = MAX(s->to, time);
}

static bool slot_passes(struct maplimit *l, struct slot *s, uint64_t time)
{
	uint32_t most = MAPLIMIT_PROCESS;

	if (time >= l->second + SECOND) {
		l->second = time;
		l->passed = 0;
	}
	if (time >= s->second + SECOND) {
		s->second = time;
		s->passed = 0;
	}
	if (l->passed >= MAPLIMIT_ALL)
		most = MAPLIMIT_CROWD;
	if (s->passed >= most)
		return false;
	s->passed++;
	l->passed++;
	return true;
}

enum maplimit_verdict maplimit_map(struct maplimit *l, uint32_t tgid,
				   uint64_t time, const char key[MAPLIMIT_KEY])
{
	struct slot *s = slot_of(l, tgid);

	if (s->since && time >= s->since &&
	    time <= s->since + MAPLIMIT_REPEAT_NS &&
	    !memcmp(s->key, key, MAPLIMIT_KEY)) {
		s->until = MAX(s->until, time);
		s->repeated = true;
		return MAPLIMIT_REPEAT;
	}
	/* Of another CPU: what was skipped since should have come after it. */
	if ((s->repeated && time < s->until) || !slot_passes(l, s, time)) {
		slot_drop(l, s, time);
		s->to = MAX(s->to, s->until);
		s->since = 0;
		s->repeated = false;
		return MAPLIMIT_DROP;
	}
	memcpy(s->key, key, MAPLIMIT_KEY);
	s->since = s->until = time;
	s->repeated = false;
	return MAPLIMIT_PASS;
}

void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time)
{
	struct slot *s = slot_of(l, tgid);

	if (s->repeated && time < s->until)
		slot_drop(l, s, s->until);
	s->since = 0;
	s->repeated = false;
}

void maplimit_lost(struct maplimit *l, uint64_t from)
{
	struct slot *s;

	for (s = l->slots; s < l->slots + SLOTS; s++) {
		if (!s->since)
			continue;
		if (s->repeated && s->until >= from)
			slot_drop(l, s, s->until);
		s->since = 0;
		s->repeated = false;
	}
}

void maplimit_flush(struct maplimit *l)
{
	uint32_t i, next;

	for (i = l->dropped; i != NONE; i = next) {
		next = l->slots[i].next - 2;
		l->slots[i].next = 0;
		slot_tell(l, &l->slots[i]);
	}
	l->dropped = NONE;
}
