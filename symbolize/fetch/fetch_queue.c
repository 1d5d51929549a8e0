// SPDX-License-Identifier: Apache-2.0
/* fetch_queue: see symbolize/fetch/fetch_queue.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/fetch/fetch_queue.h"

struct fetch_user {
	TAILQ_ENTRY(fetch_user) link;
	uint32_t uid;
	unsigned int used; /* requests of the burst */
	uint64_t since; /* when 'used' was last lowered */
	struct fetch_items items; /* QUEUED */
};

bool fetch_id_set(struct fetch_id *id, const uint8_t *bytes, size_t len)
{
	memset(id, 0, sizeof(*id));
	if (len < FETCH_ID_MIN || len > FETCH_ID_MAX)
		return false;
	id->len = (uint8_t)len;
	memcpy(id->bytes, bytes, len);
	return true;
}

static bool fetch_id_is(const struct fetch_id *a, const struct fetch_id *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

int fetch_queue_init(struct fetch_queue *q)
{
	memset(q, 0, sizeof(*q));
	TAILQ_INIT(&q->users);
	TAILQ_INIT(&q->done);
	return hash_init(&q->items, 0);
}

void fetch_queue_fini(struct fetch_queue *q)
{
	struct hash_node *n, *tmp;
	struct fetch_user *u;
	size_t i;

	if (!q->items.buckets)
		return;
	hash_for_each(&q->items, i, n, tmp)
		free(container_of(n, struct fetch_item, node));
	hash_fini(&q->items);
	while ((u = TAILQ_FIRST(&q->users))) {
		TAILQ_REMOVE(&q->users, u, link);
		free(u);
	}
}

/* --- users ---------------------------------------------------------------- */

static void user_refill(struct fetch_user *u, uint64_t now)
{
	uint64_t n = (now - u->since) / FETCH_USER_MS;

	u->used -= (unsigned int)MIN(n, (uint64_t)u->used);
	u->since += n * FETCH_USER_MS;
}

/* Those without a state are forgotten. */
static void users_forget(struct fetch_queue *q, uint64_t now)
{
	struct fetch_user *u = TAILQ_FIRST(&q->users), *next;

	for (; u; u = next) {
		next = TAILQ_NEXT(u, link);
		user_refill(u, now);
		if (u->used || !TAILQ_EMPTY(&u->items))
			continue;
		TAILQ_REMOVE(&q->users, u, link);
		q->n_users--;
		free(u);
	}
}

static struct fetch_user *user_of(struct fetch_queue *q, uint32_t uid,
				  uint64_t now)
{
	struct fetch_user *u;

	TAILQ_FOREACH(u, &q->users, link)
		if (u->uid == uid)
			break;
	if (u) {
		user_refill(u, now);
		return u;
	}
	if (q->n_users >= FETCH_USERS_MAX)
		users_forget(q, now);
	if (q->n_users >= FETCH_USERS_MAX)
		return NULL;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->since = now;
	TAILQ_INIT(&u->items);
	TAILQ_INSERT_TAIL(&q->users, u, link);
	q->n_users++;
	return u;
}

/* --- files ---------------------------------------------------------------- */

const struct fetch_item *fetch_queue_find(const struct fetch_queue *q,
					  const struct fetch_id *id)
{
	uint64_t hash = hash_bytes(id->bytes, id->len);
	struct fetch_item *it;

	HASH_FIND(it, &q->items, hash, node, fetch_id_is(&it->id, id));
	return it;
}

static void item_wanted(struct fetch_item *it, const struct fetch_id *wanter)
{
	for (unsigned int i = 0; i < it->n_wanters; i++)
		if (fetch_id_is(&it->wanters[i], wanter))
			return;
	if (it->n_wanters < FETCH_WANTERS_MAX)
		it->wanters[it->n_wanters++] = *wanter;
}

static void item_forget(struct fetch_queue *q, struct fetch_item *it)
{
	TAILQ_REMOVE(&q->done, it, link);
	hash_remove(&q->items, &it->node);
	free(it);
}

static void item_queue(struct fetch_queue *q, struct fetch_item *it,
		       struct fetch_user *u)
{
	it->state = FETCH_QUEUED;
	it->user = u;
	TAILQ_INSERT_TAIL(&u->items, it, link);
}

static struct fetch_item *item_new(struct fetch_queue *q,
				   const struct fetch_id *id, uint32_t uid)
{
	struct fetch_item *it;

	if (q->items.count >= FETCH_ITEMS_MAX && !TAILQ_EMPTY(&q->done))
		item_forget(q, TAILQ_FIRST(&q->done));
	if (q->items.count >= FETCH_ITEMS_MAX)
		return NULL;
	it = calloc(1, sizeof(*it));
	if (!it)
		return NULL;
	it->id = *id;
	it->uid = uid;
	hash_insert(&q->items, &it->node, hash_bytes(id->bytes, id->len));
	return it;
}

int fetch_queue_want(struct fetch_queue *q, const struct fetch_id *id,
		     const struct fetch_id *wanter, uint32_t uid, uint64_t now)
{
	struct fetch_item *it = (struct fetch_item *)fetch_queue_find(q, id);
	struct fetch_user *u;

	/* A file that was evicted from the directory is wanted again. */
	if (it && it->state >= FETCH_HAVE && now >= it->until) {
		item_forget(q, it);
		it = NULL;
	}
	if (it) {
		item_wanted(it, wanter);
		return -EEXIST;
	}
	u = user_of(q, uid, now);
	if (!u || u->used >= FETCH_USER_BURST)
		return -EDQUOT;
	it = item_new(q, id, uid);
	if (!it)
		return q->items.count < FETCH_ITEMS_MAX ? -ENOMEM : -EDQUOT;
	u->used++;
	q->pending++;
	item_wanted(it, wanter);
	item_queue(q, it, u);
	return 0;
}

struct fetch_item *fetch_queue_next(struct fetch_queue *q)
{
	struct fetch_item *it;
	struct fetch_user *u;

	TAILQ_FOREACH(u, &q->users, link)
		if (!TAILQ_EMPTY(&u->items))
			break;
	if (!u)
		return NULL;
	it = TAILQ_FIRST(&u->items);
	TAILQ_REMOVE(&u->items, it, link);
	it->state = FETCH_BUSY;
	it->user = NULL;
	it->attempts++;
	/* The other users are before it now. */
	TAILQ_REMOVE(&q->users, u, link);
	TAILQ_INSERT_TAIL(&q->users, u, link);
	return it;
}

void fetch_queue_done(struct fetch_queue *q, struct fetch_item *it,
		      enum fetch_state state, uint64_t now)
{
	it->state = state;
	it->until = now + (state == FETCH_HAVE ? FETCH_HAVE_MS : FETCH_NONE_MS);
	TAILQ_INSERT_TAIL(&q->done, it, link);
	q->pending--;
}

void fetch_queue_again(struct fetch_queue *q, struct fetch_item *it,
		       uint64_t now)
{
	struct fetch_user *u = user_of(q, it->uid, now);

	if (!u || it->attempts >= FETCH_ATTEMPTS)
		fetch_queue_done(q, it, FETCH_FAILED, now);
	else
		item_queue(q, it, u);
}

void fetch_queue_give_up(struct fetch_queue *q, uint64_t now)
{
	struct fetch_item *it;

	while ((it = fetch_queue_next(q)))
		fetch_queue_done(q, it, FETCH_FAILED, now);
}
