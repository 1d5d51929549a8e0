// SPDX-License-Identifier: Apache-2.0
/* tracing: see profiler/tracing/tracing.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/tracing/tracing.h"

#define TRACING_TURN_NS (100 * CLOCK_NSEC_PER_MSEC) /* between two turns */
#define TRACING_SPEND_NS (20 * CLOCK_NSEC_PER_MSEC) /* for looks, in one */
#define TRACING_SHARE 32 /* looks of a user, in one */
#define TRACING_HUNG_NS (60 * CLOCK_NSEC_PER_SEC)

static const uint64_t tracing_again_ns[] = {
	1 * CLOCK_NSEC_PER_SEC,
	10 * CLOCK_NSEC_PER_SEC,
	60 * CLOCK_NSEC_PER_SEC,
};

struct tracing_proc {
	struct hash_node node;
	struct abi_key key; /* of its newest image then */
	uint32_t user; /* its account */
	unsigned int tries;
	bool entry; /* it has one */
	uint64_t again; /* when to look without a reason, CLOCK_BOOTTIME */
	uint64_t hung_until; /* it is not looked at before */
	struct abi_trace_slot slot; /* with 'entry' */
};

int tracing_init(struct tracing *t, const struct tracing_opts *opts)
{
	*t = (struct tracing){ .opts = *opts };
	if (!t->opts.slots)
		t->opts.slots = ABI_TRACE_SLOTS;
	return hash_init(&t->procs, 0);
}

void tracing_mapped(struct tracing *t, uint32_t tgid)
{
	uint32_t bit = tgid % TRACING_BITS;

	if (!tgid)
		memset(t->mapped, 0xff, sizeof(t->mapped));
	t->mapped[bit / 64] |= 1ULL << bit % 64;
	t->any = true;
}

/* --- the table ------------------------------------------------------------- */

static void tracing_unset(struct tracing *t, struct tracing_proc *p)
{
	if (!p->entry)
		return;
	t->opts.set(t->opts.arg, p->key.tgid, NULL);
	p->entry = false;
	t->users[p->user]--;
	t->stats.used--;
}

static bool tracing_room(const struct tracing *t, uint32_t user)
{
	return t->stats.used < t->opts.slots &&
	       t->users[user] < t->opts.slots - t->stats.used;
}

static void tracing_set(struct tracing *t, struct tracing_proc *p,
			const struct abi_trace_slot *slot)
{
	if (p->entry && !memcmp(&p->slot, slot, sizeof(*slot)))
		return;
	if ((!p->entry && !tracing_room(t, p->user)) ||
	    t->opts.set(t->opts.arg, p->key.tgid, slot)) {
		tracing_unset(t, p);
		t->stats.refused++;
		return;
	}
	if (!p->entry) {
		t->users[p->user]++;
		t->stats.used++;
	}
	p->entry = true;
	p->slot = *slot;
}

static void tracing_forget(struct tracing *t, struct tracing_proc *p)
{
	tracing_unset(t, p);
	hash_remove(&t->procs, &p->node);
	free(p);
}

/* --- looking at a process -------------------------------------------------- */

struct tracing_candidate {
	const struct symbolizer_slot *slot;
	uint64_t bias;
};

/* A program's variable is used also by its libraries. */
static void tracing_on_mapping(void *arg, const struct pm_mapping *map)
{
	const struct symbolizer_slot *slot = pm_exe_slot(map->exe);
	struct tracing_candidate *c = arg;
	const struct symbolizer_segment *seg;
	size_t n;

	if (!slot || (c->slot && slot->model != SYMBOLIZER_SLOT_EXEC))
		return;
	seg = pm_exe_segments(map->exe, &n);
	for (size_t i = 0; i < n; i++, seg++) {
		if (map->pgoff > seg->offset ||
		    seg->offset - map->pgoff >= map->end - map->start)
			continue;
		c->slot = slot;
		c->bias = map->start + (seg->offset - map->pgoff) - seg->vaddr;
		return;
	}
}

static bool tracing_candidate(struct tracing *t, struct pm_image *img,
			      struct tracing_candidate *c)
{
	struct pm_view *view =
		pm_view_new(t->opts.pm, img, clock_boottime_ns());

	*c = (struct tracing_candidate){ 0 };
	if (!view)
		return false;
	pm_view_each(view, tracing_on_mapping, c);
	pm_view_free(view);
	return c->slot;
}

static void tracing_run(struct patience_job *job)
{
	tracing_find(container_of(job, struct tracing_find, job));
}

static void tracing_release(struct patience_job *job)
{
	free(container_of(job, struct tracing_find, job));
}

static void tracing_ask(struct tracing *t, struct tracing_proc *p,
			const struct tracing_candidate *c, uint64_t now)
{
	struct tracing_find *f = calloc(1, sizeof(*f));
	size_t at;
	int err;

	if (!f)
		return;
	f->job.run = tracing_run;
	f->job.release = tracing_release;
	f->key = p->key;
	f->slot = *c->slot;
	f->bias = c->bias;
	err = patience_run(&t->patience, &f->job, &at);
	if (err == -ETIMEDOUT) { /* the thread's now */
		tracing_unset(t, p);
		t->stats.hung++;
		p->again = p->hung_until = now + TRACING_HUNG_NS;
		return;
	}
	if (!err) {
		t->stats.found[f->found]++;
		if (f->found == TRACING_FOUND)
			tracing_set(t, p, &f->entry);
		else
			tracing_unset(t, p);
	}
	free(f);
	p->again = now + tracing_again_ns[p->tries];
	p->tries = MIN(p->tries + 1, ARRAY_SIZE(tracing_again_ns) - 1);
}

static struct tracing_proc *tracing_proc(struct tracing *t,
					 const struct abi_key *key)
{
	struct tracing_proc *p;

	HASH_FIND(p, &t->procs, hash_u64(key->tgid), node,
		  p->key.tgid == key->tgid);
	return p;
}

static struct tracing_proc *tracing_proc_new(struct tracing *t,
					     struct pm_image *img)
{
	struct tracing_proc *p = calloc(1, sizeof(*p));
	struct pm_image_info info;

	if (!p)
		return NULL;
	pm_image_info(img, &info);
	p->key = info.key;
	p->user = info.uid % TRACING_USERS;
	hash_insert(&t->procs, &p->node, hash_u64(p->key.tgid));
	return p;
}

/* False: its user has had its share of this turn. */
static bool tracing_look(struct tracing *t, struct pm_image *img,
			 const struct abi_key *key, uint64_t now)
{
	struct tracing_proc *p = tracing_proc(t, key);
	struct tracing_candidate c;

	if (p && p->hung_until > now)
		return true;
	if (!tracing_candidate(t, img, &c)) {
		if (p)
			tracing_forget(t, p);
		return true;
	}
	if (!p)
		p = tracing_proc_new(t, img);
	if (!p)
		return true;
	if (t->asked[p->user]++ >= TRACING_SHARE)
		return false;
	tracing_ask(t, p, &c, now);
	return true;
}

/* --- turns ----------------------------------------------------------------- */

/* Forgets images that are no more; marks what is to be looked at again. */
static void tracing_sweep(struct tracing *t, uint64_t now)
{
	struct hash_node *n, *tmp;
	struct pm_image_info info;
	struct tracing_proc *p;
	struct pm_image *img;
	size_t i;

	hash_for_each(&t->procs, i, n, tmp) {
		p = container_of(n, struct tracing_proc, node);
		img = pm_newest(t->opts.pm, &p->key);
		if (img)
			pm_image_info(img, &info);
		if (!img || info.exited || info.key.exec_id != p->key.exec_id)
			tracing_forget(t, p);
		else if (p->again <= now)
			tracing_mapped(t, p->key.tgid);
	}
}

static bool tracing_marked(const uint64_t *marks, uint32_t tgid)
{
	uint32_t bit = tgid % TRACING_BITS;

	return marks[bit / 64] >> bit % 64 & 1;
}

/* What there is no time for is marked again. */
static void tracing_turn(struct tracing *t, const uint64_t *marks, uint64_t now)
{
	uint64_t end = clock_awake_ns() + TRACING_SPEND_NS;
	struct abi_key *keys;
	struct pm_image *img;
	size_t n = 0;

	memset(t->asked, 0, sizeof(t->asked));
	keys = pm_keys(t->opts.pm, false, &n);
	for (size_t i = 0; keys && i < n; i++) {
		if (!tracing_marked(marks, keys[i].tgid))
			continue;
		img = pm_newest(t->opts.pm, &keys[i]);
		if (img && (clock_awake_ns() >= end ||
			    !tracing_look(t, img, &keys[i], now)))
			tracing_mapped(t, keys[i].tgid);
	}
	free(keys);
}

void tracing_tick(struct tracing *t, uint64_t now)
{
	uint64_t marks[TRACING_BITS / 64];
	uint64_t tracers;

	if (!t->opts.pm || now - t->looked < TRACING_TURN_NS)
		return;
	tracers = pm_tracers(t->opts.pm);
	t->looked = now;
	if (now - t->swept >= CLOCK_NSEC_PER_SEC) {
		t->swept = now;
		tracing_sweep(t, now);
	}
	if (tracers != t->tracers)
		memset(t->mapped, 0xff, sizeof(t->mapped));
	else if (!t->any || !tracers)
		return;
	t->tracers = tracers;
	memcpy(marks, t->mapped, sizeof(marks));
	memset(t->mapped, 0, sizeof(t->mapped));
	t->any = false;
	tracing_turn(t, marks, now);
}

void tracing_fini(struct tracing *t)
{
	struct hash_node *n, *tmp;
	size_t i;

	if (!t->opts.pm)
		return;
	hash_for_each(&t->procs, i, n, tmp)
		free(container_of(n, struct tracing_proc, node));
	hash_fini(&t->procs);
	patience_fini(&t->patience);
}
