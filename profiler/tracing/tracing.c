// SPDX-License-Identifier: Apache-2.0
/* tracing: see profiler/tracing/tracing.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/tracing/mapped.h"
#include "profiler/tracing/tracing.h"

/* Of the loop, to make a batch. */
#define TRACING_SPEND_NS (5 * CLOCK_NSEC_PER_MSEC)
#define TRACING_CPU_SHARE 50 /* looks have one part in so many of a CPU */
/* Of a batch, as long as others have something in it. */
#define TRACING_SHARE (TRACING_BATCH / 4)
#define TRACING_HUNG_NS (60 * CLOCK_NSEC_PER_SEC)
/* Images without an entry are checked in one of so many sweeps. */
#define TRACING_SWEEPS 10

/*
 * s after the look before. A tracer publishes when it likes: so its ids are missed for no
 * longer than its process was looked at before, or a minute.
 */
static const uint8_t tracing_again_s[] = { 1, 1, 2, 4, 8, 16, 32, 60 };

/* Why a process with a tracer has no entry. */
enum tracing_why {
	TRACING_TAKEN,
	TRACING_FULL,
	TRACING_USER,
};

struct tracing_proc {
	struct hash_node node;
	struct abi_key key; /* of its newest image */
	uint32_t user; /* its account; set with the first look */
	unsigned int tries;
	bool entry; /* it has one */
	enum tracing_why refused;
	uint64_t again; /* when to look without a reason; UINT64_MAX: never */
	uint64_t hung_until; /* it is not looked at before */
	struct abi_trace_slot slot; /* with 'entry' */
};

struct tracing_batch {
	struct patience_job job;
	size_t n;
	uint64_t cpu_ns; /* set by the thread */
	struct tracing_find finds[TRACING_BATCH];
};

int tracing_init(struct tracing *t, const struct tracing_opts *opts)
{
	*t = (struct tracing){
		.opts = *opts,
		.patience.spare = PATIENCE_ABANDONED_MAX / 2,
	};
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
	t->stats.processes--;
}

/* A user may have as many as are free. */
static enum tracing_why tracing_room(const struct tracing *t, uint32_t user)
{
	uint64_t used = t->stats.processes;

	return used >= t->opts.slots			? TRACING_FULL
	       : t->users[user] >= t->opts.slots - used ? TRACING_USER
							: TRACING_TAKEN;
}

static void tracing_refuse(struct tracing *t, struct tracing_proc *p,
			   enum tracing_why why)
{
	tracing_unset(t, p);
	t->stats.refused_full += why == TRACING_FULL && p->refused != why;
	t->stats.refused_user += why == TRACING_USER && p->refused != why;
	p->refused = why;
}

static void tracing_set(struct tracing *t, struct tracing_proc *p,
			const struct abi_trace_slot *slot)
{
	enum tracing_why why =
		p->entry ? TRACING_TAKEN : tracing_room(t, p->user);

	if (p->entry && !memcmp(&p->slot, slot, sizeof(*slot)))
		return;
	if (why == TRACING_TAKEN && t->opts.set(t->opts.arg, p->key.tgid, slot))
		why = TRACING_FULL;
	if (why != TRACING_TAKEN) {
		tracing_refuse(t, p, why);
		return;
	}
	if (!p->entry) {
		t->users[p->user]++;
		t->stats.processes++;
	}
	p->refused = TRACING_TAKEN;
	p->entry = true;
	p->slot = *slot;
}

/* --- processes ------------------------------------------------------------- */

static bool tracing_is(const struct tracing_proc *p, const struct abi_key *key)
{
	return p->key.start_boottime == key->start_boottime &&
	       p->key.exec_id == key->exec_id;
}

static struct tracing_proc *tracing_proc(const struct tracing *t,
					 const struct abi_key *key)
{
	struct tracing_proc *p;

	HASH_FIND(p, &t->procs, hash_u64(key->tgid), node,
		  p->key.tgid == key->tgid);
	return p && tracing_is(p, key) ? p : NULL;
}

static void tracing_forget(struct tracing *t, struct tracing_proc *p)
{
	tracing_unset(t, p);
	hash_remove(&t->procs, &p->node);
	free(p);
}

/* In the place of an earlier image, or process. NULL: out of memory. */
static struct tracing_proc *tracing_proc_get(struct tracing *t,
					     const struct abi_key *key)
{
	struct tracing_proc *p;

	HASH_FIND(p, &t->procs, hash_u64(key->tgid), node,
		  p->key.tgid == key->tgid);
	if (p && tracing_is(p, key))
		return p;
	if (p)
		tracing_forget(t, p);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->key = *key;
	p->again = UINT64_MAX;
	hash_insert(&t->procs, &p->node, hash_u64(key->tgid));
	return p;
}

void tracing_sampled(struct tracing *t, const struct abi_key *key)
{
	struct tracing_proc *p;

	if (!t->tracers)
		return;
	p = tracing_proc(t, key);
	if (p) {
		t->stats.samples_full += p->refused == TRACING_FULL;
		t->stats.samples_user += p->refused == TRACING_USER;
		return;
	}
	/* A sample that is late is of an image that was: sweeps forget it. */
	if (tracing_proc_get(t, key))
		tracing_mapped(t, key->tgid);
}

/* --- a batch ---------------------------------------------------------------- */

static struct tracing_batch *tracing_batch_of(struct patience_job *job)
{
	return container_of(job, struct tracing_batch, job);
}

static uint64_t tracing_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* In the thread. */
static void tracing_batch_run(struct patience_job *job)
{
	struct tracing_batch *b = tracing_batch_of(job);
	uint64_t begin = tracing_cpu_ns();

	for (size_t i = 0; i < b->n; i++) {
		tracing_find(&b->finds[i]);
		patience_step(job);
	}
	b->cpu_ns = tracing_cpu_ns() - begin;
}

static void tracing_batch_free(struct patience_job *job)
{
	free(tracing_batch_of(job));
}

static void tracing_found(struct tracing *t, const struct tracing_find *f,
			  uint64_t now)
{
	struct tracing_proc *p = tracing_proc(t, &f->key);

	t->stats.found[f->found]++;
	if (!p)
		return;
	if (f->found == TRACING_FOUND)
		tracing_set(t, p, &f->entry);
	else
		tracing_unset(t, p);
	p->again = now + tracing_again_s[p->tries] * CLOCK_NSEC_PER_SEC;
	p->tries = MIN(p->tries + 1, ARRAY_SIZE(tracing_again_s) - 1);
}

/* The process that it waits for is left alone; the others are looked at again. */
static void tracing_batch_hung(struct tracing *t, size_t at, uint64_t now)
{
	struct tracing_proc *p;

	t->batch = NULL; /* the thread's */
	t->stats.hung++;
	for (size_t i = 0; i < t->nasked; i++) {
		p = tracing_proc(t, &t->asked[i]);
		if (i != at) {
			tracing_mapped(t, t->asked[i].tgid);
		} else if (p) {
			tracing_unset(t, p);
			p->again = p->hung_until = now + TRACING_HUNG_NS;
		}
	}
}

/* False: it is not done. */
static bool tracing_batch_end(struct tracing *t, uint64_t now)
{
	struct tracing_batch *b = t->batch;
	size_t at = 0;
	int err;

	if (!b)
		return true;
	err = patience_poll(&t->patience, &at);
	if (err == -EINPROGRESS)
		return false;
	if (err) {
		tracing_batch_hung(t, at, now);
		return true;
	}
	for (size_t i = 0; i < b->n; i++)
		tracing_found(t, &b->finds[i], now);
	t->next = now + (b->cpu_ns + t->batch_cpu) * TRACING_CPU_SHARE;
	t->batch = NULL;
	free(b);
	return true;
}

/* False: there is no room for it in this batch, so it stays marked. */
static bool tracing_look(struct tracing *t, struct tracing_batch *b,
			 struct pm_image *img, uint32_t *asked, uint64_t now)
{
	struct mapped_tracer c;
	struct pm_image_info info;
	struct tracing_proc *p;
	uint32_t user;

	pm_image_info(img, &info);
	user = info.uid % TRACING_USERS;
	p = tracing_proc(t, &info.key);
	if (p && p->hung_until > now)
		return true;
	if (!mapped_tracer(t->opts.pm, img, &c)) {
		if (p) {
			tracing_unset(t, p);
			p->again = UINT64_MAX;
		}
		return true;
	}
	if (b->n == TRACING_BATCH || asked[user] == TRACING_SHARE)
		return false;
	p = tracing_proc_get(t, &info.key);
	if (!p)
		return true;
	if (!p->entry)
		p->user = user;
	asked[user]++;
	t->asked[b->n] = p->key;
	b->finds[b->n++] = (struct tracing_find){
		.key = p->key,
		.slot = *c.slot,
		.bias = c.bias,
		.forked = pm_image_forked(img),
	};
	return true;
}

static bool tracing_marked(const uint64_t *marks, uint32_t tgid)
{
	uint32_t bit = tgid % TRACING_BITS;

	return marks[bit / 64] >> bit % 64 & 1;
}

/* Those for which there is no time or room are marked again. */
static void tracing_fill(struct tracing *t, struct tracing_batch *b,
			 const uint64_t *marks, uint64_t now)
{
	uint64_t end = clock_awake_ns() + TRACING_SPEND_NS;
	uint32_t asked[TRACING_USERS] = { 0 };
	struct abi_key *keys;
	struct pm_image *img;
	size_t n = 0;

	keys = pm_keys(t->opts.pm, false, &n);
	for (size_t i = 0; keys && i < n; i++) {
		const struct abi_key *key = &keys[(t->turn + i) % n];

		if (!tracing_marked(marks, key->tgid))
			continue;
		img = pm_newest(t->opts.pm, key);
		if (img && (clock_awake_ns() >= end ||
			    !tracing_look(t, b, img, asked, now)))
			tracing_mapped(t, key->tgid);
	}
	t->turn += TRACING_BATCH;
	t->nasked = b->n;
	free(keys);
}

static void tracing_batch_begin(struct tracing *t, uint64_t now)
{
	struct tracing_batch *b = calloc(1, sizeof(*b));
	uint64_t marks[TRACING_BITS / 64], begin = tracing_cpu_ns();

	if (!b)
		return;
	memcpy(marks, t->mapped, sizeof(marks));
	memset(t->mapped, 0, sizeof(t->mapped));
	t->any = false;
	b->job.run = tracing_batch_run;
	b->job.release = tracing_batch_free;
	tracing_fill(t, b, marks, now);
	t->batch_cpu = tracing_cpu_ns() - begin;
	t->next = now + t->batch_cpu * TRACING_CPU_SHARE;
	if (b->n && !patience_begin(&t->patience, &b->job)) {
		t->batch = b;
		return;
	}
	/* Too many threads wait: later. */
	for (size_t i = 0; i < b->n; i++)
		tracing_mapped(t, t->asked[i].tgid);
	free(b);
}

/* --- turns ----------------------------------------------------------------- */

static bool tracing_gone(const struct tracing *t, const struct tracing_proc *p)
{
	struct pm_image *img = pm_newest(t->opts.pm, &p->key);
	struct pm_image_info info;

	if (!img)
		return true;
	pm_image_info(img, &info);
	return info.exited || !tracing_is(p, &info.key);
}

/* Forgets images that are no more; marks what is to be looked at again. */
static void tracing_sweep(struct tracing *t, uint64_t now)
{
	bool all = t->sweeps++ % TRACING_SWEEPS == 0;
	struct hash_node *n, *tmp;
	struct tracing_proc *p;
	size_t i;

	hash_for_each(&t->procs, i, n, tmp) {
		p = container_of(n, struct tracing_proc, node);
		if ((all || p->entry) && tracing_gone(t, p))
			tracing_forget(t, p);
		else if (p->again <= now)
			tracing_mapped(t, p->key.tgid);
	}
}

bool tracing_busy(const struct tracing *t, uint64_t now)
{
	return t->batch || (t->any && t->tracers && t->next <= now);
}

void tracing_tick(struct tracing *t, uint64_t now)
{
	uint64_t tracers;

	if (!t->opts.pm || !tracing_batch_end(t, now))
		return;
	tracers = pm_tracers(t->opts.pm);
	if (!tracers)
		return;
	if (tracers != t->tracers)
		tracing_mapped(t, 0);
	t->tracers = tracers;
	if (now - t->swept >= CLOCK_NSEC_PER_SEC) {
		t->swept = now;
		tracing_sweep(t, now);
	}
	if (t->any && t->next <= now)
		tracing_batch_begin(t, now);
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
	if (t->batch) {
		struct tracing_batch *b = t->batch;

		if (patience_abandon(&t->patience))
			free(b);
	}
	patience_fini(&t->patience);
}
