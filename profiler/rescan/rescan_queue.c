// SPDX-License-Identifier: Apache-2.0
/* rescan_queue: see profiler/rescan/rescan_queue.h. */
#include <stdlib.h>
#include <sys/queue.h>

#include "base/base.h"
#include "profiler/rescan/rescan_queue.h"

/* Users beyond these share an account with others. */
#define USERS 64
/* Processes in the queue: more than most hosts have. */
#define WAITING_MAX 65536
/* Slow processes; a newer one may take an older one's place. */
#define SLOW 256

struct waiting {
	struct hash_node node; /* by tgid */
	STAILQ_ENTRY(waiting) next;
	struct rescan_item item;
};

/* Time that is left; negative: a debt. */
struct budget {
	int64_t ns;
	uint64_t refilled;
};

/* The first has the first turn. */
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
	[RANK_USUAL] = { RESCAN_USER_NS, RESCAN_USER_BURST },
	[RANK_FLOOD] = { RESCAN_FLOOD_NS, RESCAN_FLOOD_BURST },
	[RANK_SLOW] = { RESCAN_SLOW_NS, RESCAN_SLOW_BURST },
};

struct user {
	uint32_t uid;
	enum rank rank;
	bool known; /* uid and rank are set */
	struct budget budget;
	uint64_t used; /* in all; the user with the least is next */
	STAILQ_HEAD(, waiting) queue;
};

struct rescan_queue {
	struct hash waiting;
	struct budget budget;
	uint64_t used; /* by the user of the last turn */
	struct user users[USERS];
	struct slow {
		uint32_t tgid;
		uint64_t until; /* 0: none */
	} slow[SLOW];
	uint64_t now; /* as of the last rescan_queue_take() */
	struct rescan_queue_stats stats;
};

struct rescan_queue *rescan_queue_new(void)
{
	struct rescan_queue *q = calloc(1, sizeof(*q));
	size_t i;

	if (!q || hash_init(&q->waiting, 0)) {
		free(q);
		return NULL;
	}
	for (i = 0; i < USERS; i++)
		STAILQ_INIT(&q->users[i].queue);
	return q;
}

void rescan_queue_free(struct rescan_queue *q)
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

static struct slow *slow_of(struct rescan_queue *q, uint32_t tgid)
{
	return &q->slow[hash_u64(tgid) % SLOW];
}

/* An account that is free, or whose user has used nothing for long. */
static bool user_idle(const struct user *u)
{
	return !u->known ||
	       (STAILQ_EMPTY(&u->queue) && u->budget.ns >= user_burst(u));
}

static struct user *rescan_queue_user(struct rescan_queue *q,
				      const struct rescan_item *item)
{
	struct user *u, *idle = NULL;
	enum rank rank = item->slow    ? RANK_SLOW
			 : item->flood ? RANK_FLOOD
				       : RANK_USUAL;
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

void rescan_queue_add(struct rescan_queue *q, const struct rescan_item *item)
{
	uint64_t hash = hash_u64(item->tgid);
	const struct slow *s = slow_of(q, item->tgid);
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
	w->item.slow = s->tgid == item->tgid && s->until > q->now;
	hash_insert(&q->waiting, &w->node, hash);
	u = rescan_queue_user(q, &w->item);
	if (STAILQ_EMPTY(&u->queue)) /* turns do not accumulate */
		u->used = MAX(u->used, q->used);
	STAILQ_INSERT_TAIL(&u->queue, w, next);
	q->stats.waiting++;
}

static void budget_refill(struct budget *b, uint64_t now, uint64_t rate,
			  int64_t burst)
{
	/* No debt is so deep that more time would make a difference. */
	uint64_t past =
		MIN(now - MIN(b->refilled, now), 100 * CLOCK_NSEC_PER_SEC);

	b->ns = MIN(burst, b->ns + (int64_t)(past / 1000 * rate / 1000000));
	b->refilled = now;
}

static void rescan_queue_refill(struct rescan_queue *q, uint64_t now)
{
	struct user *u;

	budget_refill(&q->budget, now, RESCAN_ALL_NS, RESCAN_ALL_BURST);
	for (u = q->users; u < q->users + USERS; u++)
		if (u->known)
			budget_refill(&u->budget, now, ranks[u->rank].rate,
				      user_burst(u));
}

/* The user of the next turn; NULL: none in the queue has time left. */
static struct user *next_user(struct rescan_queue *q)
{
	struct user *u, *best = NULL;

	for (u = q->users; u < q->users + USERS; u++) {
		if (STAILQ_EMPTY(&u->queue) || u->budget.ns <= 0)
			continue;
		if (!best || u->rank < best->rank ||
		    (u->rank == best->rank && u->used < best->used))
			best = u;
	}
	return best;
}

static void user_charge(struct rescan_queue *q, struct user *u, int64_t ns)
{
	q->budget.ns -= ns;
	u->budget.ns -= ns;
	u->used += ns;
}

size_t rescan_queue_take(struct rescan_queue *q, uint64_t now,
			 struct rescan_item *out, size_t max)
{
	struct waiting *w;
	struct user *u;
	size_t n = 0;

	q->now = now;
	if (!q->stats.waiting)
		return 0;
	rescan_queue_refill(q, now);
	while (n < max && q->budget.ns > 0 && (u = next_user(q))) {
		w = STAILQ_FIRST(&u->queue);
		if (n && (w->item.slow || out[n - 1].slow))
			break;
		STAILQ_REMOVE_HEAD(&u->queue, next);
		q->used = u->used;
		user_charge(q, u, RESCAN_GUESS);
		out[n++] = w->item;
		hash_remove(&q->waiting, &w->node);
		free(w);
		q->stats.waiting--;
	}
	q->stats.limited += !n;
	return n;
}

void rescan_queue_charge(struct rescan_queue *q, const struct rescan_item *item,
			 uint64_t cpu_ns, uint64_t wait_ns)
{
	struct slow *s = slow_of(q, item->tgid);

	q->stats.cpu_ns += cpu_ns;
	q->stats.wait_ns += wait_ns;
	user_charge(q, rescan_queue_user(q, item),
		    (int64_t)(cpu_ns + wait_ns) - (int64_t)RESCAN_GUESS);
	if (wait_ns && cpu_ns + wait_ns > RESCAN_SLOW_LIMIT) {
		q->stats.slow++;
		*s = (struct slow){ item->tgid, q->now + RESCAN_SLOW_PERIOD };
	} else if (s->tgid == item->tgid) {
		s->until = 0;
	}
}

bool rescan_queue_spent(struct rescan_queue *q, const struct rescan_item *item)
{
	return rescan_queue_user(q, item)->budget.ns <= 0;
}

bool rescan_queue_limits(const struct rescan_queue *q, uint32_t *uid)
{
	const struct user *u, *most = NULL;

	for (u = q->users; u < q->users + USERS; u++)
		if (!STAILQ_EMPTY(&u->queue) && u->budget.ns <= 0 &&
		    (!most || u->budget.ns < most->budget.ns))
			most = u;
	if (most)
		*uid = most->uid;
	return most;
}

void rescan_queue_get_stats(const struct rescan_queue *q,
			    struct rescan_queue_stats *out)
{
	*out = q->stats;
}
