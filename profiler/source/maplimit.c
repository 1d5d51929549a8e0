// SPDX-License-Identifier: Apache-2.0
/* maplimit: see profiler/source/maplimit.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base.h"
#include "profiler/source/maplimit.h"

#define SLOTS 4096
#define SECOND CLOCK_NSEC_PER_SEC

struct share {
	uint32_t records;
	uint32_t bytes;
};

/*
 * The share of a process while all have less than 'all' and 'all_bytes'. The
 * first two steps together are less than the pump's room for mappings. The last
 * one takes thousands of processes that map in turns.
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
	TAILQ_ENTRY(slot) use;
	uint32_t tgid;
	bool used; /* by a process */
	bool fresh; /* the second from 'second' on follows an exec */
	/* In that second: */
	struct share passed;
	uint64_t made, made_bytes;
	uint64_t second;
	uint64_t since; /* time of the record with 'key'; 0: none */
	uint64_t until; /* ... and of its last repeat */
	bool repeated;
	bool flood; /* as in maplimit_drops, and so: */
	uint64_t from, to; /* to 0: it dropped nothing */
	bool listed; /* in maplimit.dropped */
	SLIST_ENTRY(slot) next;
	char key[MAPLIMIT_KEY];
};

struct maplimit {
	maplimit_fn fn;
	void *arg;
	uint64_t second;
	uint64_t passed, passed_bytes; /* of all processes, since then */
	SLIST_HEAD(, slot) dropped; /* slots to report */
	struct hash used; /* slots, by tgid */
	TAILQ_HEAD(slots, slot) by_use; /* that of the last call first */
	struct slot slots[SLOTS];
};

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
	TAILQ_INIT(&l->by_use);
	for (i = 0; i < SLOTS; i++)
		TAILQ_INSERT_HEAD(&l->by_use, &l->slots[i], use);
	return l;
}

void maplimit_free(struct maplimit *l)
{
	if (!l)
		return;
	hash_fini(&l->used);
	free(l);
}

static void slot_report(struct maplimit *l, struct slot *s)
{
	const struct maplimit_drops drops = { s->tgid, s->flood, s->from,
					      s->to };

	if (s->to)
		l->fn(l->arg, &drops);
	s->to = 0;
	s->flood = false;
}

/* A free slot, or else that of the process whose last record is the oldest. */
static struct slot *slot_take(struct maplimit *l, uint32_t tgid)
{
	struct slot *s = TAILQ_LAST(&l->by_use, slots);

	if (s->used) {
		slot_report(l, s);
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
	struct slot *s;

	HASH_FIND(s, &l->used, hash_u64(tgid), node, s->tgid == tgid);
	if (!s)
		s = slot_take(l, tgid);
	TAILQ_REMOVE(&l->by_use, s, use);
	TAILQ_INSERT_HEAD(&l->by_use, s, use);
	return s;
}

/* A slot is listed once until the flush, even if another process takes it. */
static void slot_drop(struct maplimit *l, struct slot *s, uint64_t time)
{
	if (!s->to) {
		s->from = time;
		if (!s->listed)
			SLIST_INSERT_HEAD(&l->dropped, s, next);
		s->listed = true;
	}
	s->from = MIN(s->from, time);
	s->to = MAX(s->to, time);
	s->flood |= s->made > MAPLIMIT_FLOOD ||
		    s->made_bytes > MAPLIMIT_FLOOD_BYTES;
}

/* The next record is no repeat. */
static void slot_forget(struct slot *s)
{
	s->since = 0;
	s->repeated = false;
}

static void slot_drop_record(struct maplimit *l, struct slot *s, uint64_t time)
{
	slot_drop(l, s, time);
	s->to = MAX(s->to, s->until);
	slot_forget(s);
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
	/* From another CPU: it belongs before the skipped repeats. */
	if ((s->repeated && time < s->until) ||
	    !slot_passes(l, s, time, bytes)) {
		slot_drop_record(l, s, time);
		return MAPLIMIT_DROP;
	}
	memcpy(s->key, key, MAPLIMIT_KEY);
	s->since = s->until = time;
	s->repeated = false;
	return MAPLIMIT_PASS;
}

void maplimit_drop(struct maplimit *l, uint32_t tgid, uint64_t time)
{
	slot_drop_record(l, maplimit_slot(l, tgid), time);
}

/* 'made' continues: a process may execute itself again and again. */
void maplimit_exec(struct maplimit *l, uint32_t tgid, uint64_t time)
{
	struct slot *s = maplimit_slot(l, tgid);

	if (s->repeated && time < s->until)
		slot_drop(l, s, s->until);
	if (time >= s->second + SECOND)
		slot_second(s, time);
	s->passed = (struct share){ 0, 0 };
	s->fresh = true;
	slot_forget(s);
}

void maplimit_lost(struct maplimit *l, uint64_t from)
{
	struct slot *s;

	for (s = l->slots; s < l->slots + SLOTS; s++) {
		if (!s->since)
			continue;
		if (s->repeated && s->until >= from)
			slot_drop(l, s, s->until);
		slot_forget(s);
	}
}

void maplimit_flush(struct maplimit *l)
{
	struct slot *s;

	SLIST_FOREACH(s, &l->dropped, next)
	{
		s->listed = false;
		slot_report(l, s);
	}
	SLIST_INIT(&l->dropped);
}
