// SPDX-License-Identifier: Apache-2.0
/* services: see profiler/tracing/services.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/tracing/mapped.h"
#include "profiler/tracing/services.h"

#define SERVICES_CPU_SHARE 50 /* looks have one part in so many of a CPU */
#define SERVICES_USER_SHARE 4 /* ... and a user one in so many of that */
/* Until the next attempt to make a batch. */
#define SERVICES_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/*
 * What the worker needs for a context, with the messages: its own account of a hostile
 * one cannot be relied on.
 */
#define SERVICES_PARSE_NS (100 * 1000ULL)

static const uint64_t services_delay_ns[SERVICES_DELAYS] = {
	0,
	1 * CLOCK_NSEC_PER_SEC,
	10 * CLOCK_NSEC_PER_SEC,
	60 * CLOCK_NSEC_PER_SEC,
};

enum services_state {
	SERVICES_WAITING, /* in the queue of its delay */
	SERVICES_DUE, /* in that of its user */
	SERVICES_LOOKING, /* in a batch, or its context is being parsed */
	SERVICES_SETTLING, /* in that queue */
};

struct services_image {
	struct hash_node node;
	TAILQ_ENTRY(services_image) entry; /* in the queue of its state */
	struct abi_key key;
	enum services_state state;
	unsigned int delay; /* of services_delay_ns */
	uint64_t at; /* WAITING: the time of its look; SETTLING: it was read */
	struct services_user *user; /* NULL: not known yet */
	bool sampled; /* since its last look */
	bool traced; /* a thread of it had a trace */
	bool environ; /* was read */
	uint64_t mapping, published_ns; /* as in struct published */
	struct symbolizer_context *env, *stored, *context; /* NULL: none */
	char *socket; /* of its agent, read with its last look; NULL: none */
	uint32_t socket_uid; /* as of services_opts.agent() */
};

struct services_batch {
	struct patience_job job;
	size_t n;
	uint64_t cpu_ns[SERVICES_BATCH]; /* set by the thread */
	struct published looks[SERVICES_BATCH];
};

/* A context that the symbolizer parses. */
struct services_parse {
	LIST_ENTRY(services_parse) entry;
	struct services *s; /* NULL: it is no more */
	struct abi_key key;
	uint64_t read_at;
};

int services_init(struct services *s, const struct services_opts *opts)
{
	*s = (struct services){
		.opts = *opts,
		.patience.spare = PATIENCE_ABANDONED_MAX / 2,
	};
	if (!s->opts.images)
		s->opts.images = SERVICES_IMAGES;
	for (size_t i = 0; i < SERVICES_DELAYS; i++)
		TAILQ_INIT(&s->waiting[i]);
	for (size_t i = 0; i < SERVICES_USERS; i++)
		TAILQ_INIT(&s->users[i].due);
	TAILQ_INIT(&s->settling);
	LIST_INIT(&s->parses);
	return hash_init(&s->images, 0);
}

/* --- images ----------------------------------------------------------------- */

static bool services_is(const struct abi_key *a, const struct abi_key *b)
{
	return a->tgid == b->tgid && a->start_boottime == b->start_boottime &&
	       a->exec_id == b->exec_id;
}

static bool services_is_newer(const struct abi_key *a, const struct abi_key *b)
{
	return a->start_boottime != b->start_boottime
		       ? a->start_boottime > b->start_boottime
		       : a->exec_id > b->exec_id;
}

/* That of the process with this pid. */
static struct services_image *services_at(const struct services *s,
					  uint32_t tgid)
{
	struct services_image *i;

	HASH_FIND(i, &s->images, hash_u64(tgid), node, i->key.tgid == tgid);
	return i;
}

static struct services_image *services_find(const struct services *s,
					    const struct abi_key *key)
{
	struct services_image *i = services_at(s, key->tgid);

	return i && services_is(&i->key, key) ? i : NULL;
}

/* Out of the queue that it is in. */
static void services_leave(struct services *s, struct services_image *i)
{
	if (i->state == SERVICES_WAITING)
		TAILQ_REMOVE(&s->waiting[i->delay], i, entry);
	if (i->state == SERVICES_SETTLING)
		TAILQ_REMOVE(&s->settling, i, entry);
	if (i->state == SERVICES_DUE) {
		TAILQ_REMOVE(&i->user->due, i, entry);
		s->ndue--;
	}
	i->state = SERVICES_LOOKING;
}

static void services_forget(struct services *s, struct services_image *i)
{
	services_leave(s, i);
	if (i->user)
		i->user->images--;
	hash_remove(&s->images, &i->node);
	s->stats.images--;
	free(i->env);
	free(i->stored);
	free(i->context);
	free(i->socket);
	free(i);
}

/* The same, if it waits for an answer: it may have been made anew meanwhile. */
static struct services_image *services_asked(const struct services *s,
					     const struct abi_key *key)
{
	struct services_image *i = services_find(s, key);

	return i && i->state == SERVICES_LOOKING ? i : NULL;
}

/* Later than all that have the same delay. */
static void services_wait(struct services *s, struct services_image *i,
			  unsigned int delay, uint64_t now)
{
	i->state = SERVICES_WAITING;
	i->delay = delay;
	i->at = now + services_delay_ns[delay];
	TAILQ_INSERT_TAIL(&s->waiting[delay], i, entry);
}

/* The image, while its process executes it. */
static struct pm_image *services_newest(const struct services *s,
					const struct abi_key *key,
					struct pm_image_info *info)
{
	struct pm_image *img = pm_newest(s->opts.pm, key);

	if (!img)
		return NULL;
	pm_image_info(img, info);
	return !info->exited && services_is(&info->key, key) ? img : NULL;
}

/* One of its files has a tracer's variable. */
static bool services_has_slot(const struct services *s,
			      const struct abi_key *key)
{
	struct pm_image *img;
	struct mapped_tracer t;

	if (!pm_tracers(s->opts.pm))
		return false;
	img = pm_newest(s->opts.pm, key);
	return img && mapped_tracer(s->opts.pm, img, &t);
}

/*
 * The address of the pointer to its storage; 0: it has none, or may have its parent's,
 * whose agent does not wait for it.
 */
static uint64_t services_storage(const struct services *s, struct pm_image *img)
{
	struct mapped_tracer t;

	if (!pm_tracers(s->opts.pm) || pm_image_forked(img) ||
	    !mapped_tracer(s->opts.pm, img, &t) || !t.slot->storage)
		return 0;
	return t.bias + t.slot->storage;
}

/* In the place of an earlier image, or process. NULL: out of memory, or too many. */
static struct services_image *
services_new(struct services *s, const struct abi_key *key, uint64_t now)
{
	struct services_image *i = services_at(s, key->tgid);

	/* A late sample, of an image that was. */
	if (i && services_is_newer(&i->key, key))
		return NULL;
	if (i)
		services_forget(s, i);
	if (s->stats.images >= s->opts.images) {
		s->stats.refused++;
		return NULL;
	}
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	i->key = *key;
	hash_insert(&s->images, &i->node, hash_u64(key->tgid));
	s->stats.images++;
	services_wait(s, i, services_has_slot(s, key) ? 0 : 1, now);
	return i;
}

void services_sampled(struct services *s, const struct abi_key *key,
		      bool traced, uint64_t now)
{
	struct services_image *i;

	if (!s->opts.pm || !key->tgid)
		return;
	i = services_find(s, key);
	if (!i)
		i = services_new(s, key, now);
	if (!i)
		return;
	i->sampled = true;
	if (!traced || i->traced)
		return;
	i->traced = true;
	if (i->state != SERVICES_WAITING || i->mapping)
		return;
	services_leave(s, i);
	services_wait(s, i, 0, now);
}

void services_agent_gone(struct services *s, const struct abi_key *key,
			 uint64_t now)
{
	struct services_image *i = s->opts.pm ? services_find(s, key) : NULL;

	if (!i || i->state != SERVICES_WAITING)
		return;
	services_leave(s, i);
	i->sampled = true;
	services_wait(s, i, 1, now);
}

/* --- a batch ------------------------------------------------------------------ */

static struct services_batch *services_batch_of(struct patience_job *job)
{
	return container_of(job, struct services_batch, job);
}

static uint64_t services_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* In the thread. */
static void services_batch_run(struct patience_job *job)
{
	struct services_batch *b = services_batch_of(job);
	uint64_t begin = services_cpu_ns(), end;

	for (size_t i = 0; i < b->n; i++) {
		published_read(&b->looks[i]);
		patience_step(job);
		end = services_cpu_ns();
		b->cpu_ns[i] = end - begin;
		begin = end;
	}
}

static void services_batch_free(struct services_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->looks[i].payload);
		free(b->looks[i].stored);
	}
	free(b);
}

static void services_batch_release(struct patience_job *job)
{
	services_batch_free(services_batch_of(job));
}

/* What is known is complete: it counts when its time has passed. */
static void services_settle(struct services *s, struct services_image *i,
			    uint64_t read_at)
{
	i->state = SERVICES_SETTLING;
	i->at = read_at;
	TAILQ_INSERT_TAIL(&s->settling, i, entry);
}

/* '*to' becomes a copy, or NULL if that has no name. */
static void services_keep(struct symbolizer_context **to,
			  const struct symbolizer_context *c)
{
	free(*to);
	*to = NULL;
	if (!*c->service && !*c->instance && !*c->environment)
		return;
	*to = malloc(sizeof(*c));
	if (*to)
		**to = *c;
}

/* Nothing could parse it now: it is read again, after the same delay. */
static void services_unread(struct services *s, struct services_image *i,
			    uint64_t read_at)
{
	i->published_ns = 0;
	i->delay -= i->delay > 0;
	services_settle(s, i, read_at);
}

static void services_on_parsed(void *arg, int err,
			       const struct symbolizer_context *c)
{
	static const struct symbolizer_context none;
	struct services_parse *p = arg;
	struct services *s = p->s;
	struct services_image *i = s ? services_asked(s, &p->key) : NULL;

	if (s)
		LIST_REMOVE(p, entry);
	if (i && (err == -EIO || err == -ENOMEM)) {
		services_unread(s, i, p->read_at);
	} else if (i && err != -ECANCELED) {
		s->stats.unparsed += err != 0;
		services_keep(&i->context, err ? &none : c);
		services_settle(s, i, p->read_at);
	}
	free(p);
}

static void services_parse(struct services *s, struct services_image *i,
			   const struct published *look)
{
	struct services_parse *p = calloc(1, sizeof(*p));
	struct pm_image_info info;
	int err = -ENOMEM;

	if (p && services_newest(s, &i->key, &info)) {
		p->key = i->key;
		p->read_at = look->read_at;
		err = symbolizer_context(s->opts.symbolizer, look->payload,
					 look->size, info.uid,
					 services_on_parsed, p);
	}
	if (err) {
		free(p);
		services_unread(s, i, look->read_at);
		return;
	}
	p->s = s;
	LIST_INSERT_HEAD(&s->parses, p, entry);
}

static void services_looked_stored(struct services *s, struct services_image *i,
				   const struct published *look)
{
	static const struct symbolizer_context none;

	if (look->found == PUBLISHED_GONE)
		return;
	s->stats.stored += look->stored != NULL;
	free(i->socket);
	i->socket = look->stored && *look->stored->socket
			    ? strdup(look->stored->socket)
			    : NULL;
	i->socket_uid = look->uid;
	services_keep(&i->stored, look->stored ? &look->stored->names : &none);
}

/* One that was being written keeps what it had. */
static void services_looked(struct services *s, struct services_image *i,
			    const struct published *look)
{
	if (look->environ && look->found != PUBLISHED_GONE) {
		i->environ = true;
		services_keep(&i->env, &look->names);
	}
	services_looked_stored(s, i, look);
	i->mapping = look->mapping;
	if (look->found != PUBLISHED_WRITING)
		i->published_ns = look->published_ns;
	if (look->found == PUBLISHED_NEW) {
		services_parse(s, i, look);
		return;
	}
	if (look->found == PUBLISHED_NONE || look->found == PUBLISHED_INVALID) {
		free(i->context);
		i->context = NULL;
	}
	services_settle(s, i, look->read_at);
}

static void services_charge(struct services *s, struct services_user *u,
			    uint64_t cpu_ns, uint64_t now)
{
	s->next = MAX(s->next, now) + cpu_ns * SERVICES_CPU_SHARE;
	if (u)
		u->next = MAX(u->next, now) +
			  cpu_ns * SERVICES_CPU_SHARE * SERVICES_USER_SHARE;
}

static void services_batch_done(struct services *s, uint64_t now)
{
	struct services_batch *b = s->batch;
	struct services_image *i;
	uint64_t cpu;

	s->batch = NULL;
	for (size_t k = 0; k < b->n; k++) {
		s->stats.found[b->looks[k].found]++;
		i = services_asked(s, &b->looks[k].key);
		cpu = b->cpu_ns[k] + s->batch_cpu / b->n +
		      (b->looks[k].payload ? SERVICES_PARSE_NS : 0);
		services_charge(s, i ? i->user : NULL, cpu, now);
		if (i)
			services_looked(s, i, &b->looks[k]);
	}
	services_batch_free(b);
}

/* The process that it waits for is left alone; the others are looked at again. */
static void services_batch_hung(struct services *s, size_t at, uint64_t now)
{
	struct services_image *i;

	s->batch = NULL; /* the thread's */
	s->stats.hung++;
	for (size_t k = 0; k < s->nasked; k++) {
		i = services_asked(s, &s->asked[k]);
		if (!i)
			continue;
		i->sampled = true;
		services_wait(s, i, k == at ? SERVICES_DELAYS - 1 : 0, now);
	}
}

/* False: it is not done. */
static bool services_batch_end(struct services *s, uint64_t now)
{
	size_t at = 0;
	int err;

	if (!s->batch)
		return true;
	err = patience_poll(&s->patience, &at);
	if (err == -EINPROGRESS)
		return false;
	if (err)
		services_batch_hung(s, at, now);
	else
		services_batch_done(s, now);
	return true;
}

/* The first of a user whose turn it is; NULL: none may be looked at now. */
static struct services_image *services_take(struct services *s, uint64_t now)
{
	struct services_image *i = NULL;
	struct services_user *u;

	for (size_t n = 0; n < SERVICES_USERS && !i; n++) {
		u = &s->users[s->turn++ % SERVICES_USERS];
		if (u->next <= now)
			i = TAILQ_FIRST(&u->due);
	}
	if (i)
		services_leave(s, i);
	return i;
}

static void services_fill(struct services *s, struct services_batch *b,
			  uint64_t now)
{
	struct pm_image_info info;
	struct services_image *i;
	struct pm_image *img;

	while (b->n < SERVICES_BATCH && (i = services_take(s, now))) {
		img = services_newest(s, &i->key, &info);
		if (!img) {
			services_forget(s, i);
			continue;
		}
		i->sampled = false;
		s->asked[b->n] = i->key;
		b->looks[b->n++] = (struct published){
			.key = i->key,
			.environ = !i->environ,
			.storage = services_storage(s, img),
			.mapping = i->mapping,
			.published_ns = i->published_ns,
		};
	}
	s->nasked = b->n;
}

static void services_batch_begin(struct services *s, uint64_t now)
{
	struct services_batch *b = calloc(1, sizeof(*b));
	uint64_t begin = services_cpu_ns();
	struct services_image *i;

	if (!b)
		return;
	b->job.run = services_batch_run;
	b->job.release = services_batch_release;
	services_fill(s, b, now);
	s->batch_cpu = services_cpu_ns() - begin;
	if (b->n && !patience_begin(&s->patience, &b->job)) {
		s->batch = b;
		return;
	}
	s->next = now + SERVICES_PAUSE_NS;
	/* All users have had their share; or too many threads wait. */
	for (size_t k = 0; k < b->n; k++) {
		i = services_asked(s, &b->looks[k].key);
		if (!i)
			continue;
		i->sampled = true;
		services_wait(s, i, 1, now);
	}
	free(b);
}

/* --- turns ------------------------------------------------------------------- */

/* The user of an image may have as many as are free. */
static bool services_room(const struct services *s,
			  const struct services_user *u)
{
	return u->images < s->opts.images - s->stats.images;
}

/* It is time to look at it. */
static void services_ripe(struct services *s, struct services_image *i,
			  uint64_t now)
{
	struct pm_image_info info;

	services_leave(s, i);
	if (!services_newest(s, &i->key, &info)) {
		services_forget(s, i);
		return;
	}
	if (info.kthread) {
		services_wait(s, i, SERVICES_DELAYS - 1, now);
		return;
	}
	if (!i->user) {
		i->user = &s->users[info.uid % SERVICES_USERS];
		if (!services_room(s, i->user)) {
			i->user = NULL;
			s->stats.refused++;
			services_forget(s, i);
			return;
		}
		i->user->images++;
	}
	if (!i->sampled) {
		services_wait(s, i, SERVICES_DELAYS - 1, now);
		return;
	}
	i->state = SERVICES_DUE;
	TAILQ_INSERT_TAIL(&i->user->due, i, entry);
	s->ndue++;
}

/* Names of the context go before those of the storage, and these before the environment's. */
static struct symbolizer_context services_names(const struct services_image *i)
{
	const struct symbolizer_context *all[] = { i->env, i->stored,
						   i->context };
	struct symbolizer_context out = { 0 };

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		if (!all[k])
			continue;
#define X(name, key)       \
	if (*all[k]->name) \
		memcpy(out.name, all[k]->name, sizeof(out.name));
		SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
	}
	return out;
}

static void services_settled(struct services *s, struct services_image *i,
			     uint64_t now)
{
	struct symbolizer_context names = services_names(i);
	struct pm_image_info info;
	struct pm_image *img;

	services_leave(s, i);
	img = services_newest(s, &i->key, &info);
	if (!img) {
		services_forget(s, i);
		return;
	}
	/* The delay of the look that was: 0 was the first of three, or between. */
	services_wait(s, i, MIN(i->delay + 1, SERVICES_DELAYS - 1U), now);
	if (i->socket && s->opts.agent)
		s->opts.agent(s->opts.arg, img, i->socket_uid, i->socket);
	free(i->socket);
	i->socket = NULL;
	if (!pm_image_set_context(s->opts.pm, img, &names))
		return;
	s->stats.named++;
	s->opts.named(s->opts.arg, img);
}

bool services_busy(const struct services *s, uint64_t now)
{
	return s->batch || (s->ndue && s->next <= now);
}

void services_tick(struct services *s, uint64_t now, uint64_t passed)
{
	struct services_image *i;

	if (!s->opts.pm)
		return;
	for (size_t k = 0; k < SERVICES_DELAYS; k++)
		while ((i = TAILQ_FIRST(&s->waiting[k])) && i->at <= now)
			services_ripe(s, i, now);
	if (services_batch_end(s, now) && s->ndue && s->next <= now)
		services_batch_begin(s, now);
	while ((i = TAILQ_FIRST(&s->settling)) && i->at <= passed)
		services_settled(s, i, now);
}

void services_fini(struct services *s)
{
	struct services_parse *p;
	struct hash_node *n, *tmp;
	size_t k;

	if (!s->opts.pm)
		return;
	LIST_FOREACH(p, &s->parses, entry)
		p->s = NULL;
	hash_for_each(&s->images, k, n, tmp)
		services_forget(s,
				container_of(n, struct services_image, node));
	hash_fini(&s->images);
	if (s->batch && patience_abandon(&s->patience))
		services_batch_free(s->batch);
	patience_fini(&s->patience);
	memset(s, 0, sizeof(*s));
}
