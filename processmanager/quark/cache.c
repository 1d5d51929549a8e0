// SPDX-License-Identifier: Apache-2.0
/*
 * cache: running processes, and those that ended a moment ago, by (pid, start
 * time). A reused pid is another entry; collecting the old one never touches its
 * successor.
 */
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/priv.h"

/* Free blocks of a kind that are kept: for the processes of one tick. */
#define POOL_MAX 256
/* RCU may free a reaped task this much later. */
#define INFERRED_NS (60 * CLOCK_NSEC_PER_SEC)

/*
 * For all ended processes of all users: 20,000 of usual size, or 400 with
 * arguments and environment of the largest size that is kept.
 */
#define DEAD_BYTES_MAX (16 * 1024 * 1024)

/*
 * For the strings of all processes not reaped. A user may take as much as is still
 * free, so one alone has half of it: 1,500 processes with arguments of the largest
 * size that is kept, or 100,000 of usual size.
 */
#define TEXT_BYTES_MAX (64 * 1024 * 1024)
/* Arguments and a path of this size are kept beyond that: 1 KiB in all. */
#define ARGS_LEAST 512
#define PATH_LEAST 192

int quark_cache_init(struct quark_cache *c, uint64_t grace_ns)
{
	size_t i;
	int err;

	memset(c, 0, sizeof(*c));
	c->grace_ns = c->zombie_ns = grace_ns;
	c->inferred_ns = MAX(grace_ns, INFERRED_NS);
	c->dead_max = DEAD_BYTES_MAX;
	pool_init(&c->procs, sizeof(struct quark_proc), POOL_MAX);
	pool_init(&c->records, sizeof(struct quark_record), POOL_MAX);
	c->text_max = TEXT_BYTES_MAX;
	TAILQ_INIT(&c->all);
	TAILQ_INIT(&c->gone);
	TAILQ_INIT(&c->inferred);
	for (i = 0; i < QUARK_ZOMBIE_PAUSES; i++)
		TAILQ_INIT(&c->zombies[i]);
	err = hash_init(&c->users, 0);
	if (err)
		return err;
	err = hash_init(&c->hash, 256);
	if (err)
		hash_fini(&c->users);
	return err;
}

static void cache_proc_free(struct quark_cache *c, struct quark_proc *p)
{
	quark_record_put(p->rec);
	pool_give(&c->procs, p);
}

void quark_cache_fini(struct quark_cache *c)
{
	struct quark_proc *p;

	while ((p = TAILQ_FIRST(&c->all))) {
		TAILQ_REMOVE(&c->all, p, link);
		cache_proc_free(c, p);
	}
	pool_fini(&c->procs);
	pool_fini(&c->records);
	hash_fini(&c->hash);
	hash_fini(&c->users);
	memset(c, 0, sizeof(*c));
}

struct quark_proc *quark_cache_find(const struct quark_cache *c,
				    const struct abi_key *key)
{
	struct quark_proc *p;

	HASH_FIND(p, &c->hash, hash_u64(key->tgid), node,
		  p->rec->p.key.pid == key->tgid &&
			  p->rec->p.key.start_boottime == key->start_boottime);
	return p;
}

struct quark_proc *quark_cache_newest(const struct quark_cache *c, uint32_t pid)
{
	struct quark_proc *best = NULL;
	struct hash_node *n;

	hash_for_each_match(&c->hash, n, hash_u64(pid)) {
		struct quark_proc *p = container_of(n, struct quark_proc, node);

		if (p->rec->p.pid == pid &&
		    (!best || p->rec->p.key.start_boottime >
				      best->rec->p.key.start_boottime))
			best = p;
	}
	return best;
}

struct quark_proc *quark_cache_add(struct quark_cache *c,
				   const struct abi_key *key)
{
	struct quark_proc *p = pool_take(&c->procs);

	if (!p)
		return NULL;
	p->rec = quark_record_new(&c->records);
	if (!p->rec) {
		pool_give(&c->procs, p);
		return NULL;
	}
	p->rec->p.pid = key->tgid;
	p->rec->p.key.pid = key->tgid;
	p->rec->p.key.start_boottime = key->start_boottime;
	p->rec->p.key.exec_id = key->exec_id;
	quark_entity_id(p->rec->p.proc_entity_id, key->tgid,
			key->start_boottime);
	hash_insert(&c->hash, &p->node, hash_u64(key->tgid));
	TAILQ_INSERT_TAIL(&c->all, p, link);
	return p;
}

static void list_remove(struct quark_cache *c, struct quark_proc *p)
{
	if (!p->list)
		return;
	TAILQ_REMOVE(p->list, p, list_link);
	p->list = NULL;
	c->dead_bytes -= p->bytes;
	p->bytes = 0;
}

/* Every list has one delay, so its order is that of 'due'. */
static void list_append(struct quark_cache *c, struct quark_proc_list *l,
			struct quark_proc *p, uint64_t due)
{
	list_remove(c, p);
	p->due = due;
	p->list = l;
	TAILQ_INSERT_TAIL(l, p, list_link);
}

void quark_cache_adopt(struct quark_proc *p, struct quark_proc *parent)
{
	if (p->parent)
		LIST_REMOVE(p, kid_link);
	p->parent = parent;
	if (parent)
		LIST_INSERT_HEAD(&parent->kids, p, kid_link);
}

void quark_cache_remove(struct quark_cache *c, struct quark_proc *p)
{
	quark_cache_adopt(p, NULL);
	while (!LIST_EMPTY(&p->kids))
		quark_cache_adopt(LIST_FIRST(&p->kids), NULL);
	list_remove(c, p);
	hash_remove(&c->hash, &p->node);
	TAILQ_REMOVE(&c->all, p, link);
	cache_proc_free(c, p);
}

struct quark_record *quark_proc_edit(struct quark_proc *p)
{
	struct quark_record *copy;

	if (p->rec->refs == 1)
		return p->rec;
	copy = quark_record_copy(p->rec);
	if (!copy)
		return NULL;
	quark_record_put(p->rec);
	p->rec = copy;
	return copy;
}

/* --- a user's share of the strings ------------------------------------------ */

static struct quark_user *cache_user(struct quark_cache *c, uint32_t uid)
{
	uint64_t hash = hash_u64(uid);
	struct quark_user *u;

	HASH_FIND(u, &c->users, hash, node, u->uid == uid);
	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->uid = uid;
	u->cache = c;
	hash_insert(&c->users, &u->node, hash);
	return u;
}

static void user_take(struct quark_user *u, struct quark_strings *s)
{
	s->user = u;
	u->bytes += s->size;
	u->cache->text_bytes += s->size;
}

/* A copy of those that are kept in any case; NULL without memory. */
static struct quark_strings *strings_cut(const struct quark_spans *s)
{
	struct quark_spans least = { .cmdline = s->cmdline };

	least.cmdline.len = MIN(least.cmdline.len, ARGS_LEAST);
	if (s->exe.len <= PATH_LEAST)
		least.exe = s->exe;
	if (s->cgroup.len <= PATH_LEAST)
		least.cgroup = s->cgroup;
	return quark_strings_new(&least);
}

void quark_cache_keep(struct quark_cache *c, struct quark_proc *p)
{
	struct quark_strings *s = p->rec->strings, *cut;
	struct quark_record *rec;
	struct quark_user *u;

	if (!s || s->user)
		return;
	u = cache_user(c, p->rec->p.proc_uid);
	if (u && (s->size <= QUARK_TEXT_LEAST ||
		  c->text_bytes + u->bytes + s->size <= c->text_max)) {
		user_take(u, s);
		return;
	}
	c->text_cut++;
	cut = u ? strings_cut(&s->spans) : NULL;
	rec = quark_proc_edit(p);
	if (cut)
		user_take(u, cut);
	else if (u && !u->bytes)
		quark_user_give(u, 0);
	if (!rec) {
		quark_strings_put(cut);
		return;
	}
	if (s->spans.cmdline.len > ARGS_LEAST)
		rec->p.x_flags |= QUARK_X_ARGS_CUT;
	quark_record_set_strings(rec, cut);
}

void quark_cache_exit(struct quark_cache *c, struct quark_proc *p, uint64_t now)
{
	p->exited = true;
	/* Its record keeps the ppid that it had at its exit. */
	quark_cache_adopt(p, NULL);
	if (!p->ended)
		list_append(c, &c->zombies[p->looks], p,
			    now + (c->zombie_ns << p->looks));
}

void quark_cache_look(struct quark_cache *c, struct quark_proc *p, uint64_t now)
{
	struct quark_record *rec = NULL;

	if (p->rec->strings && !quark_proc_visible(c, p, now))
		rec = quark_proc_edit(p);
	if (rec)
		quark_record_set_strings(rec, NULL);
	if (p->looks < QUARK_ZOMBIE_PAUSES - 1)
		p->looks++;
	quark_cache_exit(c, p, now);
}

/* Removes the oldest, but never the process that has just ended. */
static void cache_evict(struct quark_cache *c, const struct quark_proc *but)
{
	struct quark_proc *p;

	while (c->dead_bytes > c->dead_max) {
		p = TAILQ_FIRST(&c->gone);
		if (!p || p == but)
			p = TAILQ_FIRST(&c->inferred);
		if (!p || p == but)
			return;
		quark_cache_remove(c, p);
		c->evictions++;
	}
}

void quark_cache_end(struct quark_cache *c, struct quark_proc *p, uint64_t now,
		     bool inferred)
{
	const struct quark_strings *s = p->rec->strings;

	p->exited = p->ended = true;
	quark_cache_adopt(p, NULL);
	if (inferred)
		list_append(c, &c->inferred, p, now + c->inferred_ns);
	else
		list_append(c, &c->gone, p, now + c->grace_ns);
	/* Strings that several processes share count once. */
	p->bytes = sizeof(*p) + sizeof(*p->rec) + (s ? s->size / s->refs : 0);
	c->dead_bytes += p->bytes;
	cache_evict(c, p);
}

struct quark_proc *quark_cache_overdue(struct quark_cache *c, uint64_t now)
{
	struct quark_proc *p;
	size_t i;

	for (i = 0; i < QUARK_ZOMBIE_PAUSES; i++) {
		p = TAILQ_FIRST(&c->zombies[i]);
		if (p && p->due <= now)
			return p;
	}
	return NULL;
}

void quark_cache_collect(struct quark_cache *c, uint64_t now)
{
	struct quark_proc_list *const lists[] = { &c->gone, &c->inferred };
	struct quark_proc *p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		while ((p = TAILQ_FIRST(lists[i])) && p->due <= now) {
			quark_cache_remove(c, p);
			c->collections++;
		}
	}
}

bool quark_proc_visible(const struct quark_cache *c, const struct quark_proc *p,
			uint64_t now)
{
	return !p->exited || p->rec->p.exit_boottime + c->grace_ns > now;
}
