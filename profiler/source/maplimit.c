// SPDX-License-Identifier: Apache-2.0
/* maplimit: see profiler/source/maplimit.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/source/maplimit.h"

#define SLOTS 4096
#define SECOND CLOCK_NSEC_PER_SEC
#define NONE UINT32_MAX

struct share {
	uint32_t records;
	uint32_t bytes;
};

/*
 * What a process may have a second while all have less than 'all' and 'all_bytes'.
 * The first two steps together are less than what the pump holds of mappings. The
 * last one is reached by thousands of processes that live at once and map in turns.
 */
static const struct step {
	uint64_t all, all_bytes;
	struct share each, exec;
} steps[] = {
	{ MAPLIMIT_ALL,
	  MAPLIMIT_ALL_BYTES,
	  { MAPLIMIT_PROCESS, MAPLIMIT_PROCESS_BYTES },
	  { MAPLIMIT_PROCESS, MAPLIMIT_PROCESS_BYTES } },
	{ 2 * MAPLIMIT_ALL,
	  MAPLIMIT_ALL_BYTES / 2 * 3,
	  { MAPLIMIT_CROWD, MAPLIMIT_CROWD_BYTES },
	  { MAPLIMIT_EXEC, MAPLIMIT_EXEC_BYTES } },
	{ 8 * MAPLIMIT_ALL,
	  6 * MAPLIMIT_ALL_BYTES,
	  { MAPLIMIT_CROWD / 8, MAPLIMIT_CROWD_BYTES / 16 },
	  { MAPLIMIT_EXEC, MAPLIMIT_EXEC_BYTES } },
	{ UINT64_MAX,
	  UINT64_MAX,
	  { 0, 0 },
	  { MAPLIMIT_EXEC / 4, MAPLIMIT_EXEC_BYTES / 2 } },
};

struct slot {
	struct hash_node node; /* by tgid */
	struct slot *newer, *older; /* by the time of the last call */
	uint32_t tgid;
	bool used; /* by a process */
	bool fresh; /* it executed a program in the second from 'second' on */
	/* In that second: */
	struct share passed;
	uint64_t made, made_bytes;
	uint64_t second;
	uint64_t since; /* time of the record that has 'key'; 0: none */
	uint64_t until; /* ... and of the last that repeated it */
	bool repeated;
	bool flood; /* when it dropped something */
	uint32_t next; /* of those that dropped something */
	uint64_t from, to; /* what it dropped; to 0: nothing */
	char key[MAPLIMIT_KEY];
};

struct maplimit {
	maplimit_fn fn;
	void *arg;
	uint64_t second;
	uint64_t passed, passed_bytes; /* of all processes, since then */
	uint32_t dropped; /* the first slot that dropped something, or NONE */
	struct hash used; /* slots, by tgid */
	struct slot *newest, *oldest;
	struct slot slots[SLOTS];
};

static void slot_unlink(struct maplimit *l, struct slot *s)
{
	*(s->newer ? &s->newer->older : &l->newest) = s->older;
	*(s->older ? &s->older->newer : &l->oldest) = s->newer;
}

static void slot_link(struct maplimit *l, struct slot *s)
{
	s->newer = NULL;
	s->older = l->newest;
	*(l->newest ? &l->newest->newer : &l->oldest) = s;
	l->newest = s;
}

struct maplimit *maplimit_new(maplimit_fn fn, void *arg)
{
	struct maplimit *l = calloc(1, sizeof(*l));
	size_t i;

	if (!l || hash_init(&l->used, SLOTS)) {
		free(l);
		return NULL;
	}
	l->fn = fn;
	l->arg = arg;
	l->dropped = NONE;
	for (i = 0; i < SLOTS; i++)
		slot_link(l, &l->slots[i]);
	return l;
}

void maplimit_free(struct maplimit *l)
{
	if (!l)
		return;
	hash_fini(&l->used);
	free(l);
}

static void slot_tell(struct maplimit *l, struct slot *s)
{
	const struct maplimit_told told = { s->tgid, s->flood, s->from, s->to };

	if (s->to)
		l->fn(l->arg, &told);
	s->to = 0;
	s->flood = false;
}

static struct slot *slot_find(struct maplimit *l, uint32_t tgid)
{
	struct slot *s;

	HASH_FIND(s, &l->used, hash_u64(tgid), node, s->tgid == tgid);
	return s;
}

/* Of nobody, or of whoever was not heard of for longest. */
static struct slot *slot_take(struct maplimit *l, uint32_t tgid)
{
	struct slot *s = l->oldest;

	if (s->used) {
		slot_tell(l, s);
		hash_remove(&l->used, &s->node);
	}
	s->used = true;
	s->tgid = tgid;
	s->fresh = s->repeated = false;
	s->since = s->second = 0;
	hash_insert(&l->used, &s->node, hash_u64(tgid));
	return s;
}

static struct slot *maplimit_slot(struct maplimit *l, uint32_t tgid)
{
	struct slot *s = slot_find(l, tgid);

	if (!s)
		s = slot_take(l, tgid);
	slot_unlink(l, s);
	slot_link(l, s);
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
	s->flood |= s->made > MAPLIMIT_FLOOD ||
		    s->made_bytes > MAPLIMIT_FLOOD_BYTES;
}

static void slot_second(struct slot *s, uint64_t time)
{
	s->second = time;
	s->passed = (struct share){ 0, 0 };
	s->made = s->made_bytes = 0;
	s->fresh = false;
}

static const struct share *slot_share(const struct maplimit *l,
				      const struct slot *s)
{
	const struct step *step = steps;

	while (l->passed >= step->all || l->passed_bytes >= step->all_bytes)
		step++;
	return s->fresh ? &step->exec : &step->each;
}

static bool slot_passes(struct maplimit *l, struct slot *s, uint64_t time,
			size_t bytes)
{
	const struct share *most;

	if (time >= l->second + SECOND) {
		l->second = time;
		l->passed = l->passed_bytes = 0;
	}
	if (time >= s->second + SECOND)
		slot_second(s, time);
	s->made++;
	s->made_bytes += bytes;
	most = slot_share(l, s);
	if (s->passed.records >= most->records ||
	    s->passed.bytes + bytes > most->bytes)
		return false;
	s->passed.records++;
	s->passed.bytes += bytes;
	l->passed++;
	l->passed_bytes += bytes;
	return true;
}

enum maplimit_verdict maplimit_map(struct maplimit *l, uint32_t tgid,
				   uint64_t time, size_t bytes,
				   const char key[MAPLIMIT_KEY])
{
	struct slot *s = maplimit_slot(l, tgid);

	if (s->since && time >= s->since &&
	    time <= s->since + MAPLIMIT_REPEAT_NS &&
	    !memcmp(s->key, key, MAPLIMIT_KEY)) {
		s->until = MAX(s->until, time);
		s->repeated = true;
		return MAPLIMIT_REPEAT;
	}
	/* Of another CPU: what was skipped since should have come after it. */
	if ((s->repeated && time < s->until) ||
	    !slot_passes(l, s, time, bytes)) {
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

void maplimit_drop(struct maplimit *l, uint32_t tgid, uint64_t time)
{
	struct slot *s = maplimit_slot(l, tgid);

	slot_drop(l, s, time);
	s->to = MAX(s->to, s->until);
	s->since = 0;
	s->repeated = false;
}

/* What it made goes on counting: a process may execute itself over and over. */
void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time)
{
	struct slot *s = maplimit_slot(l, tgid);

	if (s->repeated && time < s->until)
		slot_drop(l, s, s->until);
	if (time >= s->second + SECOND)
		slot_second(s, time);
	s->passed = (struct share){ 0, 0 };
	s->fresh = true;
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
