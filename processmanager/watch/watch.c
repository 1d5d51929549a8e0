// SPDX-License-Identifier: Apache-2.0
/*
 * watch: see processmanager/watch/watch.h. The loop's thread owns subscribers, queues
 * and the ring; watch_work() owns what is loaded. They share what 'lock' protects: what
 * is wanted, and how far the hooks are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/watch/internal.h"

/* Records that wait for older ones; beyond it they do not wait. */
#define WATCH_HELD_MAX 32768
#define WATCH_HELD_BYTES (8 << 20)

struct watch_sub {
	LIST_ENTRY(watch_sub) entry;
	struct watch *w;
	uint64_t since; /* the change that it came with */
	struct watch_set names;
	uint32_t pids[WATCH_PIDS_MAX];
	size_t n_pids;
	uint64_t slower;
	bool failed;
	bool (*take)(void *arg, const struct watch_event *e);
	void *arg;
	struct watch_queue queue;
	struct watch_item *read; /* has the strings of the last event */
	uint32_t client;
	uint64_t lost[WATCH_N_NAMES];
};

struct watch {
	struct watch_opts opts;
	LIST_HEAD(, watch_sub) subs;
	size_t n_subs;
	struct ring *ring; /* of 'ring_of' */
	struct watch_load *ring_of;
	int ring_err; /* it could not be opened */
	struct watch_item **held; /* newer than the watermark */
	size_t n_held, cap_held;
	size_t held_bytes;
	struct abi_watch_loss losses[WATCH_N_NAMES]; /* counted so far */
	uint64_t skipped[WATCH_N_HOOKS]; /* the same, of whole hooks */
	struct watch_stats stats;
	struct watch_load *load; /* of watch_work() */
	pthread_mutex_t lock;
	/* Protected by 'lock'. */
	struct watch_wanted wanted;
	uint64_t changes; /* of 'wanted' */
	uint64_t done; /* the change that hooks are as wanted of */
	uint32_t failed; /* hooks that could not be attached then */
	int err; /* of that; or nothing could be loaded */
	const char *why;
	struct watch_load *loaded; /* for the loop; NULL: nothing is loaded */
	uint32_t hooks;
};

int watch_new(struct watch **wp, const struct watch_opts *opts)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->opts = *opts;
	pthread_mutex_init(&w->lock, NULL);
	LIST_INIT(&w->subs);
	*wp = w;
	return 0;
}

static void watch_close_ring(struct watch *w)
{
	ring_free(w->ring);
	w->ring = NULL;
	w->ring_of = NULL;
	w->ring_err = 0;
	while (w->n_held)
		watch_item_put(w->held[--w->n_held]);
	free(w->held);
	w->held = NULL;
	w->cap_held = w->held_bytes = 0;
	memset(w->losses, 0, sizeof(w->losses));
	memset(w->skipped, 0, sizeof(w->skipped));
}

static bool sub_wants_segments(const struct watch_sub *s)
{
	return s->names.w[0] & WATCH_SEGMENTS;
}

/* Ends to follow the first n of its processes. */
static void sub_unfollow(const struct watch_sub *s, size_t n)
{
	const struct watch_opts *opts = &s->w->opts;

	while (sub_wants_segments(s) && n-- > 0)
		opts->follow(opts->arg, s->pids[n], false);
}

static void sub_free(struct watch_sub *s)
{
	LIST_REMOVE(s, entry);
	s->w->n_subs--;
	sub_unfollow(s, s->n_pids);
	watch_queue_fini(&s->queue);
	watch_item_put(s->read);
	free(s);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	while (!LIST_EMPTY(&w->subs))
		sub_free(LIST_FIRST(&w->subs));
	watch_close_ring(w);
	watch_load_free(w->load);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* --- what is wanted ---------------------------------------------------------- */

static int watch_cmp_pid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Adds pids; false: there are too many for the kernel's filter. */
static bool wanted_add_pids(struct watch_wanted *all, const struct watch_sub *s)
{
	size_t n = all->n_pids;

	for (size_t i = 0; i < s->n_pids; i++) {
		if (bsearch(&s->pids[i], all->pids, n, sizeof(*all->pids),
			    watch_cmp_pid))
			continue;
		if (all->n_pids == WATCH_PIDS_MAX)
			return false;
		all->pids[all->n_pids++] = s->pids[i];
	}
	qsort(all->pids, all->n_pids, sizeof(*all->pids), watch_cmp_pid);
	return true;
}

static void wanted_add_client(struct watch_wanted *all, uint32_t client)
{
	for (size_t i = 0; i < all->n_clients; i++)
		if (all->clients[i] == client)
			return;
	if (client)
		all->clients[all->n_clients++] = client;
}

/* Whether it has names of a class. */
static bool sub_class(const struct watch_sub *s, size_t class)
{
	uint32_t mask = watch_mask_of(&s->names);

	return class == ABI_WATCH_SYSCALLS ? mask >= WATCH_MASK_CALLS
					   : mask & (WATCH_MASK_CALLS - 1);
}

static void wanted_widen(struct abi_watch_filter *f, const struct watch_sub *s)
{
	f->failed &= s->failed;
	f->by_pid &= s->n_pids > 0;
	f->slower = MIN(f->slower, s->slower);
}

static void watch_changed(struct watch *w)
{
	struct watch_wanted all = { 0 };
	const struct watch_sub *s;
	bool fit = true, by_pid = false;

	for (size_t i = 0; i < ABI_WATCH_CLASSES; i++)
		all.filters[i] = (struct abi_watch_filter){
			.slower = UINT64_MAX, .failed = 1, .by_pid = 1
		};
	LIST_FOREACH(s, &w->subs, entry) {
		watch_set_join(&all.names, &s->names);
		for (size_t i = 0; i < ABI_WATCH_CLASSES; i++)
			if (sub_class(s, i))
				wanted_widen(&all.filters[i], s);
		if (watch_mask_of(&s->names))
			fit = fit && wanted_add_pids(&all, s);
		wanted_add_client(&all, s->client);
	}
	for (size_t i = 0; i < ABI_WATCH_CLASSES; i++) {
		all.filters[i].by_pid &= fit;
		by_pid |= all.filters[i].by_pid;
	}
	if (!by_pid)
		all.n_pids = 0;
	pthread_mutex_lock(&w->lock);
	w->wanted = all;
	w->changes++;
	pthread_mutex_unlock(&w->lock);
	if (w->opts.wake)
		w->opts.wake(w->opts.arg);
}

static const struct {
	int err;
	const char *why;
} follow_errors[] = {
	{ -EINVAL, "it needs --pid, and comes from these processes only" },
	{ -ENOTSUP, "this profd runs without --wait: start it with --wait, or "
		    "set wait = yes" },
	{ -E2BIG, "64 processes are recorded already: name fewer by --pid, end "
		  "other watches, or wait until timelines that were asked for "
		  "end, after 5 minutes" },
};

/* The processes whose segments it wants. */
static int sub_follow(struct watch_sub *s, struct strbuf *why)
{
	const struct watch_opts *opts = &s->w->opts;
	int err = 0;

	if (!sub_wants_segments(s))
		return 0;
	if (!opts->follow)
		err = -ENOTSUP;
	else if (!s->n_pids)
		err = -EINVAL;
	for (size_t i = 0; !err && i < s->n_pids; i++) {
		err = opts->follow(opts->arg, s->pids[i], true);
		if (err)
			sub_unfollow(s, i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(follow_errors); i++)
		if (follow_errors[i].err == err)
			strbuf_printf(why, "%s: %s",
				      watch_set_has(&s->names,
						    ABI_WATCH_SCHED_SWITCH)
					      ? "sched_switch"
					      : "cpu_analysis",
				      follow_errors[i].why);
	return err;
}

static int sub_names(struct watch_sub *s, const struct watch_want *want,
		     struct strbuf *why)
{
	int err = 0;

	if (!want->n_names) {
		strbuf_puts(why, "no event is named");
		return -EINVAL;
	}
	for (size_t i = 0; !err && i < want->n_names; i++)
		err = watch_names_match(want->names[i], &s->names, why);
	if (!err && want->n_pids > WATCH_PIDS_MAX) {
		strbuf_printf(why, "more than %d pids", WATCH_PIDS_MAX);
		err = -EINVAL;
	}
	return err;
}

int watch_subscribe(struct watch *w, const struct watch_want *want,
		    struct watch_sub **out, struct strbuf *why)
{
	struct watch_sub *s;
	int err;

	if (w->n_subs == WATCH_SUBS_MAX) {
		strbuf_printf(why, "there are %d subscribers already",
			      WATCH_SUBS_MAX);
		return -EUSERS;
	}
	s = calloc(1, sizeof(*s));
	err = s ? sub_names(s, want, why) : -ENOMEM;
	if (err) {
		free(s);
		return err;
	}
	if (want->n_pids)
		memcpy(s->pids, want->pids, want->n_pids * sizeof(*s->pids));
	s->n_pids = want->n_pids;
	qsort(s->pids, s->n_pids, sizeof(*s->pids), watch_cmp_pid);
	s->w = w;
	s->slower = want->slower_ns;
	s->failed = want->failed;
	s->client = want->client;
	s->take = want->take;
	s->arg = want->arg;
	err = sub_follow(s, why);
	if (err) {
		free(s);
		return err;
	}
	LIST_INSERT_HEAD(&w->subs, s, entry);
	w->n_subs++;
	watch_changed(w);
	s->since = w->changes;
	*out = s;
	return 0;
}

void watch_unsubscribe(struct watch_sub *s)
{
	struct watch *w;

	if (!s)
		return;
	w = s->w;
	sub_free(s);
	watch_changed(w);
}

bool watch_wants(const struct watch_sub *s, size_t name)
{
	return name < WATCH_N_NAMES && watch_set_has(&s->names, name);
}

void watch_hooks(const struct watch_sub *s, struct strbuf *out)
{
	struct watch *w = s->w;
	uint32_t hooks = watch_hooks_of(&s->names);

	pthread_mutex_lock(&w->lock);
	hooks &= w->hooks;
	pthread_mutex_unlock(&w->lock);
	watch_hooks_list(hooks, out);
}

/* --- hooks ------------------------------------------------------------------- */

bool watch_pending(const struct watch *w)
{
	struct watch *lock = (struct watch *)w;
	bool pending;

	pthread_mutex_lock(&lock->lock);
	pending = w->changes != w->done;
	pthread_mutex_unlock(&lock->lock);
	return pending;
}

static int work_hooks(struct watch *w, const struct watch_wanted *all,
		      uint32_t *failed, const char **why)
{
	uint32_t hooks = watch_hooks_of(&all->names);
	int err = 0, filter;

	if (!w->load && hooks)
		err = watch_load_new(&w->load, &w->opts, why);
	if (err || !w->load)
		return err;
	*why = "attaching to tracepoints";
	/* A hook sends nothing before the filter has its name. */
	err = watch_load_attach(w->load, hooks, failed);
	filter = watch_load_filter(w->load, all);
	return err ?: filter;
}

int watch_work(struct watch *w)
{
	const char *why = "";
	struct watch_wanted all;
	uint32_t failed = 0;
	uint64_t change;
	int err;

	pthread_mutex_lock(&w->lock);
	all = w->wanted;
	change = w->changes;
	pthread_mutex_unlock(&w->lock);
	err = work_hooks(w, &all, &failed, &why);
	pthread_mutex_lock(&w->lock);
	w->done = change;
	w->failed = failed;
	w->err = err;
	w->why = why;
	w->hooks = err && !failed ? 0 : watch_hooks_of(&all.names);
	w->hooks &= ~failed;
	w->loaded = w->load;
	pthread_mutex_unlock(&w->lock);
	return err;
}

static int watch_record(void *arg, void *data, size_t len);

void watch_worked(struct watch *w)
{
	bool idle;

	pthread_mutex_lock(&w->lock);
	idle = !watch_hooks_of(&w->wanted.names) && w->done == w->changes;
	w->stats.hooks = (uint64_t)__builtin_popcount(w->hooks);
	pthread_mutex_unlock(&w->lock);
	if (w->load && idle) {
		watch_close_ring(w);
		watch_load_free(w->load);
		w->load = w->loaded = NULL;
	}
	if (w->load && !w->ring) {
		w->ring_err = ring_new(&w->ring, watch_load_ring(w->load),
				       watch_record, w);
		if (!w->ring_err)
			w->ring_of = w->load;
	}
}

int watch_ready(const struct watch_sub *s, const char **why)
{
	uint32_t hooks = watch_hooks_of(&s->names);
	struct watch_load *loaded;
	struct watch *w = s->w;
	int ready;

	pthread_mutex_lock(&w->lock);
	loaded = w->loaded;
	*why = w->why ?: "";
	if (w->done < s->since)
		ready = 0;
	else if (w->err && hooks && (!w->failed || w->failed & hooks))
		ready = w->err;
	else
		ready = 1;
	pthread_mutex_unlock(&w->lock);
	/* watch_work() may have ended, and watch_worked() is still to come. */
	if (ready > 0 && hooks && loaded && w->ring_of != loaded)
		ready = w->ring_err;
	return ready;
}

/* --- records ------------------------------------------------------------------ */

static void sub_lose(struct watch_sub *s, size_t name)
{
	s->lost[name]++;
	s->w->stats.overrun++;
}

static int watch_record(void *arg, void *data, size_t len)
{
	int name = watch_decode_name(data, len);
	struct watch *w = arg;
	struct watch_item *item;
	struct watch_sub *s;

	if (name < 0)
		return 0;
	w->stats.records++;
	item = VECTOR_ROOM(w->held, w->n_held, w->cap_held)
		       ? NULL
		       : watch_item_new(data, len, name);
	if (item) {
		w->held[w->n_held++] = item;
		w->held_bytes += len;
		return 0;
	}
	LIST_FOREACH(s, &w->subs, entry)
		if (watch_set_has(&s->names, (size_t)name))
			sub_lose(s, (size_t)name);
	return 0;
}

/*
 * Less than the threshold; also the end of a call, and a switch, whose latency is not
 * known.
 */
static bool sub_is_quick(const struct watch_sub *s,
			 const struct watch_item *item)
{
	bool exit;

	if (item->head.flags & ABI_WATCH_TIMED)
		return item->head.latency < s->slower;
	if (!s->slower)
		return false;
	return item->name == ABI_WATCH_SCHED_SWITCH ||
	       (watch_call_nr(item->name, &exit) >= 0 && exit);
}

/* Whether its descriptor is of a category that is wanted. */
static bool sub_has_category(const struct watch_sub *s,
			     const struct watch_item *item)
{
	const struct abi_watch_fd *fd;

	if (!watch_name(item->name)->by_fd)
		return true;
	fd = watch_call_fd((const struct abi_watch_call *)&item->head);
	return s->names.categories[item->name] >> watch_fd_category(fd) & 1;
}

static bool sub_has_pid(const struct watch_sub *s, uint32_t pid)
{
	return !s->n_pids || bsearch(&pid, s->pids, s->n_pids, sizeof(*s->pids),
				     watch_cmp_pid);
}

static void sub_offer(struct watch_sub *s, struct watch_item *item)
{
	const struct abi_watch_head *h = &item->head;
	struct watch_event e;

	if (!watch_set_has(&s->names, item->name) || sub_is_quick(s, item) ||
	    !sub_has_category(s, item) ||
	    (s->failed && !(h->flags & ABI_WATCH_FAILED)) ||
	    !sub_has_pid(s, h->key.tgid))
		return;
	if (s->take && (watch_decode(h, item->len, &e) || !s->take(s->arg, &e)))
		return;
	if (!watch_queue_add(&s->queue, item))
		sub_lose(s, item->name);
}

static int watch_cmp_item(const void *a, const void *b)
{
	const struct watch_item *const *x = a, *const *y = b;
	uint64_t t = (*x)->head.time, u = (*y)->head.time;

	return t < u ? -1 : t > u;
}

/* Records come in the order of their reservation: base/ring.h. */
static void watch_deliver(struct watch *w)
{
	uint64_t until =
		w->n_held > WATCH_HELD_MAX || w->held_bytes > WATCH_HELD_BYTES
			? UINT64_MAX
			: ring_watermark(w->ring);
	struct watch_sub *s;
	size_t n;

	qsort(w->held, w->n_held, sizeof(struct watch_item *), watch_cmp_item);
	for (n = 0; n < w->n_held && w->held[n]->head.time < until; n++) {
		LIST_FOREACH(s, &w->subs, entry)
			sub_offer(s, w->held[n]);
		w->held_bytes -= w->held[n]->len;
		watch_item_put(w->held[n]);
	}
	w->n_held -= n;
	memmove(w->held, w->held + n, w->n_held * sizeof(struct watch_item *));
}

/* The kernel's counters of a name. */
static const struct abi_watch_loss *watch_losses_of(const struct watch *w,
						    size_t name)
{
	const struct abi_watch_loss *all = watch_load_losses(w->ring_of);
	bool exit;
	int nr = watch_call_nr(name, &exit);

	return &all[nr < 0 ? (int)name : ABI_WATCH_CALL(nr, exit)];
}

/* Whose events they were is not known: each subscriber of the name lost them. */
static void watch_lose(struct watch *w, size_t name, uint64_t n)
{
	struct watch_sub *s;

	LIST_FOREACH(s, &w->subs, entry)
		if (watch_set_has(&s->names, name))
			s->lost[name] += n;
}

/* A program that did not run might have sent any event of its hook. */
static void watch_count_skipped(struct watch *w)
{
	uint64_t more[WATCH_N_HOOKS + 1] = { 0 }, any = 0;

	for (size_t i = 0; i < WATCH_N_HOOKS; i++) {
		more[i] = watch_load_skipped(w->ring_of, i) - w->skipped[i];
		w->skipped[i] += more[i];
		any += more[i];
	}
	w->stats.skipped += any;
	for (size_t i = 0; any && i < WATCH_N_NAMES; i++)
		if (more[watch_hook_of(i)])
			watch_lose(w, i, more[watch_hook_of(i)]);
}

static void watch_count(struct watch *w)
{
	const struct abi_watch_loss *now;
	struct abi_watch_loss more;

	for (size_t i = 0; i < WATCH_N_NAMES; i++) {
		now = watch_losses_of(w, i);
		more.dropped = now->dropped - w->losses[i].dropped;
		more.limited = now->limited - w->losses[i].limited;
		if (!more.dropped && !more.limited)
			continue;
		w->stats.dropped += more.dropped;
		w->stats.limited += more.limited;
		w->losses[i].dropped += more.dropped;
		w->losses[i].limited += more.limited;
		watch_lose(w, i, more.dropped + more.limited);
	}
	watch_count_skipped(w);
}

/* --- records of user space ---------------------------------------------------- */

bool watch_is_wanted(const struct watch *w, size_t name)
{
	const struct watch_sub *s;

	LIST_FOREACH(s, &w->subs, entry)
		if (watch_set_has(&s->names, name))
			return true;
	return false;
}

void watch_post(struct watch *w, const void *record, size_t len)
{
	int name = watch_decode_name(record, len);
	struct watch_item *item;
	struct watch_sub *s;

	if (name < 0)
		return;
	w->stats.made++;
	item = watch_item_new(record, len, name);
	LIST_FOREACH(s, &w->subs, entry)
		if (item)
			sub_offer(s, item);
		else if (watch_set_has(&s->names, (size_t)name))
			sub_lose(s, (size_t)name);
	watch_item_put(item);
}

void watch_post_lost(struct watch *w, uint32_t pid, uint64_t dropped,
		     uint64_t limited)
{
	struct watch_sub *s;

	w->stats.dropped += dropped;
	w->stats.limited += limited;
	LIST_FOREACH(s, &w->subs, entry) {
		if (!sub_has_pid(s, pid))
			continue;
		for (size_t i = 0; i < ABI_WATCH_NAMES; i++)
			if (WATCH_BIT(i) & WATCH_SEGMENTS &&
			    watch_set_has(&s->names, i))
				s->lost[i] += dropped + limited;
	}
}

int watch_fd(const struct watch *w)
{
	return w->ring ? ring_epoll_fd(w->ring) : -1;
}

int watch_read(struct watch *w)
{
	int n;

	if (!w->ring)
		return 0;
	n = ring_consume(w->ring);
	if (w->n_held)
		watch_deliver(w);
	watch_count(w);
	return n;
}

int watch_next(struct watch_sub *s, struct watch_event *out)
{
	int err;

	do {
		watch_item_put(s->read);
		s->read = watch_queue_take(&s->queue);
		if (!s->read)
			return -EAGAIN;
		err = watch_decode(&s->read->head, s->read->len, out);
	} while (err);
	return 0;
}

uint64_t watch_lost(const struct watch_sub *s, size_t name)
{
	return name < WATCH_N_NAMES ? s->lost[name] : 0;
}

void watch_stats(const struct watch *w, struct watch_stats *out)
{
	*out = w->stats;
	out->subscribers = w->n_subs;
}
