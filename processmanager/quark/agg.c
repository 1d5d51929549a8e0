// SPDX-License-Identifier: Apache-2.0
/*
 * agg: holds events for later events of their process to join. Each has the record
 * of its own time, so what happens to the process later does not change it. What
 * may join what is a table, of which the caller may replace cells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

#define BIT(type) (1U << (type))

int quark_can_aggregate_single(struct quark_queue *qq, struct raw_event *parent,
			       struct raw_event *child)
{
	return !(parent->joined & BIT(child->type));
}

int quark_can_aggregate_mult(struct quark_queue *qq, struct raw_event *parent,
			     struct raw_event *child)
{
	return 1;
}

/* Otherwise one event would mix the ids of the fork and of the exec. */
int quark_can_aggregate_fork_exec(struct quark_queue *qq,
				  struct raw_event *parent,
				  struct raw_event *child)
{
	return !(parent->joined & (BIT(RAW_ID_CHANGE) | BIT(child->type)));
}

static const struct {
	uint8_t parent, child;
	bool min; /* also with QQ_MIN_AGG */
	quark_can_aggregate_fn fn;
} cells[] = {
	{ RAW_WAKE_UP_NEW_TASK, RAW_EXEC, false,
	  quark_can_aggregate_fork_exec },
	{ RAW_WAKE_UP_NEW_TASK, RAW_EXIT_THREAD, false,
	  quark_can_aggregate_single },
	{ RAW_WAKE_UP_NEW_TASK, RAW_COMM, true, quark_can_aggregate_mult },
	{ RAW_WAKE_UP_NEW_TASK, RAW_ID_CHANGE, false,
	  quark_can_aggregate_mult },
	{ RAW_EXEC, RAW_EXIT_THREAD, false, quark_can_aggregate_single },
	{ RAW_EXEC, RAW_COMM, true, quark_can_aggregate_mult },
	{ RAW_COMM, RAW_COMM, true, quark_can_aggregate_mult },
	{ RAW_COMM, RAW_EXIT_THREAD, false, quark_can_aggregate_single },
	{ RAW_ID_CHANGE, RAW_ID_CHANGE, true, quark_can_aggregate_mult },
};

int quark_held_init(struct quark_held *h, bool min_agg)
{
	size_t i;

	memset(h, 0, sizeof(*h));
	TAILQ_INIT(&h->list);
	for (i = 0; i < ARRAY_SIZE(cells); i++)
		if (cells[i].min || !min_agg)
			h->matrix[cells[i].parent][cells[i].child] =
				cells[i].fn;
	return hash_init(&h->hash, 0);
}

void quark_held_free(struct raw_event *e)
{
	if (!e)
		return;
	quark_record_put(e->rec);
	free(e);
}

void quark_held_fini(struct quark_held *h)
{
	struct raw_event *e;

	while ((e = TAILQ_FIRST(&h->list))) {
		TAILQ_REMOVE(&h->list, e, link);
		quark_held_free(e);
	}
	hash_fini(&h->hash);
	memset(h, 0, sizeof(*h));
}

static uint32_t type_of(const struct quark_event *ev)
{
	static const struct {
		uint64_t event;
		uint32_t type;
	} types[] = {
		{ QUARK_EV_FORK, RAW_WAKE_UP_NEW_TASK },
		{ QUARK_EV_EXEC, RAW_EXEC },
		{ QUARK_EV_EXIT, RAW_EXIT_THREAD },
		{ QUARK_EV_ID_CHANGE, RAW_ID_CHANGE },
		{ QUARK_EV_SETPROCTITLE, RAW_COMM },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (ev->events == types[i].event)
			return types[i].type;
	return RAW_INVALID; /* an own extension: never joined */
}

static uint64_t key_hash(const struct raw_event *e)
{
	const struct quark_key *k = &e->rec->p.key;

	return hash_mix(hash_u64(k->start_boottime),
			(uint64_t)k->pid << 32 | e->tid);
}

static bool same_key(const struct raw_event *a, const struct raw_event *b)
{
	return a->tid == b->tid && a->rec->p.key.pid == b->rec->p.key.pid &&
	       a->rec->p.key.start_boottime == b->rec->p.key.start_boottime;
}

/* Appends to the events of the same process or thread; the oldest is hashed. */
static void agg_append(struct quark_held *h, struct raw_event *e)
{
	uint64_t hash = key_hash(e);
	struct raw_event *first;

	HASH_FIND(first, &h->hash, hash, node, same_key(first, e));
	if (first) {
		first->same_last->same_next = e;
		first->same_last = e;
	} else {
		e->same_last = e;
		hash_insert(&h->hash, &e->node, hash);
	}
}

int quark_held_add(struct quark_held *h, const struct quark_event *ev,
		   struct quark_record *rec, bool thread)
{
	struct raw_event *e = malloc(sizeof(*e));

	if (!e) {
		quark_record_put(rec);
		return -ENOMEM;
	}
	e->ev = *ev;
	e->rec = rec;
	e->tid = thread ? ev->tid : 0;
	e->type = type_of(ev);
	e->joined = 0;
	e->same_next = NULL;
	TAILQ_INSERT_TAIL(&h->list, e, link);
	h->count++;
	if (rec)
		agg_append(h, e);
	return 0;
}

static void unlink_event(struct quark_held *h, struct raw_event *e)
{
	TAILQ_REMOVE(&h->list, e, link);
	h->count--;
}

/* The time is that of the first event, the process that of the last. */
static void agg_join(struct raw_event *parent, struct raw_event *child)
{
	struct quark_event *a = &parent->ev;
	const struct quark_event *b = &child->ev;

	parent->joined |= BIT(child->type);
	a->events |= b->events;
	a->id_change |= b->id_change;
	quark_record_put(parent->rec);
	parent->rec = child->rec;
	child->rec = NULL;
	a->process = &parent->rec->p;
	if (b->events != QUARK_EV_EXIT)
		return;
	a->cpu_time = b->cpu_time;
	a->maxrss = b->maxrss;
	a->minflt = b->minflt;
	a->majflt = b->majflt;
	a->group_dead = b->group_dead;
}

struct raw_event *quark_held_pop(struct quark_held *h, struct quark_queue *q,
				 size_t *joined)
{
	struct raw_event *e = TAILQ_FIRST(&h->list), *child;
	quark_can_aggregate_fn fn;

	*joined = 0;
	if (!e)
		return NULL;
	unlink_event(h, e);
	if (!e->rec)
		return e;
	/* The oldest of all is also the oldest of its process. */
	hash_remove(&h->hash, &e->node);
	while ((child = e->same_next)) {
		fn = e->type && child->type ? h->matrix[e->type][child->type]
					    : NULL;
		if (!fn || !fn(q, e, child))
			break;
		unlink_event(h, child);
		e->same_next = child->same_next;
		agg_join(e, child);
		quark_held_free(child);
		++*joined;
	}
	if (child) {
		child->same_last = e->same_last;
		hash_insert(&h->hash, &child->node, e->node.hash);
	}
	return e;
}

/* The whole time below 10 %, 0 above 90 %, linear between. */
uint64_t quark_hold_ns(uint64_t hold_ns, size_t count, size_t max)
{
	uint64_t permille = (uint64_t)count * 1000 / max;

	if (permille < 100)
		return hold_ns;
	if (permille >= 900)
		return 0;
	return hold_ns / 800 * (900 - permille);
}
