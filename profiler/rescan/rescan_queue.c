// SPDX-License-Identifier: Apache-2.0
/* walkqueue: see profiler/rescan/rescan_queue.h. */
#include <stdlib.h>

#include "base/base.h"
#include "profiler/rescan/rescan_queue.h"

/* Users beyond these share an account with others. */
#define USERS 64
/* Processes that may wait: more than most hosts have. */
#define WAITING_MAX 65536

struct waiting {
	struct hash_node node; /* by tgid */
	struct waiting *next;
	struct walkqueue_item item;
};

/* Slow processes that are remembered; one may push out another. */
#define SLOW 256

/* Time that may be used: below 0, it was used in advance. */
struct budget {
	int64_t ns;
	uint64_t refilled;
};

/* In the order of their turns. */
enum rank {
	RANK_USUAL,
	RANK_FLOOD,
	RANK_SLOW,
	RANK_MAX,
};

static const struct {
	uint64_t rate; /* ns a second */
	int64_t burst;
} ranks[RANK_MAX] = {
	[RANK_USUAL] = { WALKQUEUE_USER_NS, WALKQUEUE_USER_BURST },
	[RANK_FLOOD] = { WALKQUEUE_FLOOD_NS, WALKQUEUE_FLOOD_BURST },
	[RANK_SLOW] = { WALKQUEUE_SLOW_NS, WALKQUEUE_SLOW_BURST },
};

struct user {
	uint32_t uid;
	enum rank rank;
	bool known; /* uid and rank are of somebody */
	struct budget budget;
	uint64_t used; /* in all; whoever has the least is next */
	struct waiting *first, **last;
};

struct walkqueue {
	struct hash waiting;
	struct budget budget;
	uint64_t used; /* by the user who was last */
	struct user users[USERS];
	struct slow {
		uint32_t tgid;
		uint64_t until; /* 0: nobody */
	} slow[SLOW];
	uint64_t now; /* as of the last rescan_queue_take() */
	struct walkqueue_stats stats;
};

struct walkqueue *rescan_queue_new(void)
{
	struct walkqueue *q = calloc(1, sizeof(*q));
	size_t i;

	if (!q || hash_init(&q->waiting, 0)) {
		free(q);
		return NULL;
	}
	for (i = 0; i < USERS; i++)
		q->users[i].last = &q->users[i].first;
	return q;
}

void rescan_queue_free(struct walkqueue *q)
{
	struct hash_node *n, *tmp;
	size_t i;

	if (!q)
		return;
	hash_for_each(&q->waiting, i, n, tmp)
		free(container_of(n, struct waiting, node));
	hash_fini(&q->waiting);
	free(q);
}

static int64_t user_burst(const struct user *u)
{
	return ranks[u->rank].burst;
}

static enum rank rescan_queue_rank(const struct walkqueue_item *item)
{
	if (item->slow)
		return RANK_SLOW;
	return item->flood ? RANK_FLOOD : RANK_USUAL;
}

static struct slow *slow_of(struct walkqueue *q, uint32_t tgid)
{
	return &q->slow[hash_u64(tgid) % SLOW];
}

static bool is_slow(struct walkqueue *q, uint32_t tgid)
{
	const struct slow *s = slow_of(q, tgid);

	return s->tgid == tgid && s->until > q->now;
}

/* An account that nobody has, or whose owner has used nothing for long. */
static bool user_idle(const struct user *u)
{
	return !u->known || (!u->first && u->budget.ns >= user_burst(u));
}

static struct user *rescan_queue_user(struct walkqueue *q,
				      const struct walkqueue_item *item)
{
	struct user *u, *idle = NULL;
	enum rank rank = rescan_queue_rank(item);
	size_t i;

	for (i = 0; i < USERS; i++) {
		u = &q->users[i];
		if (u->known && u->uid == item->uid && u->rank == rank)
			return u;
		if (!idle && user_idle(u))
			idle = u;
	}
	if (!idle)
		return &q->users[hash_u64(item->uid) % USERS];
	idle->known = true;
	idle->uid = item->uid;
	idle->rank = rank;
	idle->budget = (struct budget){ .ns = user_burst(idle) };
	idle->used = q->used;
	return idle;
}

void rescan_queue_add(struct walkqueue *q, const struct walkqueue_item *item)
{
	uint64_t hash = hash_u64(item->tgid);
	struct waiting *w;
	struct user *u;

	HASH_FIND(w, &q->waiting, hash, node, w->item.tgid == item->tgid);
	if (w)
		return;
	w = q->stats.waiting < WAITING_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		q->stats.dropped++;
		return;
	}
	w->item = *item;
	w->item.slow = is_slow(q, item->tgid);
	hash_insert(&q->waiting, &w->node, hash);
	u = rescan_queue_user(q, &w->item);
	if (!u->first) /* nobody saves up turns */
		u->used = MAX(u->used, q->used);
	*u->last = w;
	u->last = &w->next;
	q->stats.waiting++;
}

static void budget_refill(struct budget *b, uint64_t now, uint64_t rate,
			  int64_t burst)
{
	/* Longer than from the deepest debt to the brim changes nothing. */
	uint64_t past =
		MIN(now - MIN(b->refilled, now), 100 * CLOCK_NSEC_PER_SEC);

	b->ns = MIN(burst, b->ns + (int64_t)(past / 1000 * rate / 1000000));
	b->refilled = now;
}

static void rescan_queue_refill(struct walkqueue *q, uint64_t now)
{
	struct user *u;

	budget_refill(&q->budget, now, WALKQUEUE_ALL_NS, WALKQUEUE_ALL_BURST);
	for (u = q->users; u < q->users + USERS; u++)
		if (u->known)
			budget_refill(&u->budget, now, ranks[u->rank].rate,
				      user_burst(u));
}

/* Whose turn it is; NULL: nobody waits who has time left. */
static struct user *next_user(struct walkqueue *q)
{
	struct user *u, *best = NULL;

	for (u = q->users; u < q->users + USERS; u++) {
		if (!u->first || u->budget.ns <= 0)
			continue;
		if (!best || u->rank < best->rank ||
		    (u->rank == best->rank && u->used < best->used))
			best = u;
	}
	return best;
}

static void user_charge(struct walkqueue *q, struct user *u, int64_t ns)
{
	q->budget.ns -= ns;
	u->budget.ns -= ns;
	u->used += ns;
}

size_t rescan_queue_take(struct walkqueue *q, uint64_t now,
			 struct walkqueue_item *out, size_t max)
{
	struct waiting *w;
	struct user *u;
	size_t n = 0;

	q->now = now;
	if (!q->stats.waiting)
		return 0;
	rescan_queue_refill(q, now);
	while (n < max && q->budget.ns > 0 && (u = next_user(q))) {
		w = u->first;
		if (n && (w->item.slow || out[n - 1].slow))
			break;
		u->first = w->next;
		if (!u->first)
			u->last = &u->first;
		q->used = u->used;
		user_charge(q, u, WALKQUEUE_GUESS);
		out[n++] = w->item;
		hash_remove(&q->waiting, &w->node);
		free(w);
		q->stats.waiting--;
	}
	q->stats.limited += !n;
	return n;
}

void rescan_queue_charge(struct walkqueue *q, const struct walkqueue_item *item,
			 uint64_t cpu_ns, uint64_t wait_ns)
{
	struct slow *s = slow_of(q, item->tgid);

	q->stats.cpu_ns += cpu_ns;
	q->stats.wait_ns += wait_ns;
	user_charge(q, rescan_queue_user(q, item),
		    (int64_t)(cpu_ns + wait_ns) - (int64_t)WALKQUEUE_GUESS);
	if (wait_ns && cpu_ns + wait_ns > WALKQUEUE_SLOW_LIMIT) {
		q->stats.slow++;
		*s = (struct slow){ item->tgid,
				    q->now + WALKQUEUE_SLOW_PERIOD };
	} else if (s->tgid == item->tgid) {
		s->until = 0;
	}
}

bool rescan_queue_spent(struct walkqueue *q, const struct walkqueue_item *item)
{
	return rescan_queue_user(q, item)->budget.ns <= 0;
}

bool rescan_queue_limits(const struct walkqueue *q, uint32_t *uid)
{
	const struct user *u, *most = NULL;

	for (u = q->users; u < q->users + USERS; u++)
		if (u->first && u->budget.ns <= 0 &&
		    (!most || u->budget.ns < most->budget.ns))
			most = u;
	if (most)
		*uid = most->uid;
	return most;
}

void rescan_queue_get_stats(const struct walkqueue *q,
			    struct walkqueue_stats *out)
{
	*out = q->stats;
}
