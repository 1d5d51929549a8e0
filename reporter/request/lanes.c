// SPDX-License-Identifier: Apache-2.0
/* lanes: see reporter/request/lanes.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporter/request/lanes.h"

#define LANES_NEXT_NS ((int64_t)(2 * 3600 * CLOCK_NSEC_PER_SEC))
#define LANES_SLACK_NS CLOCK_NSEC_PER_MSEC

/* --- threads ------------------------------------------------------------------- */

static uint64_t lanes_hash(const struct abi_key *key, uint32_t tid)
{
	return hash_mix(key->start_boottime, (uint64_t)key->tgid << 32 | tid);
}

static struct lane *lanes_lane(const struct lanes *l, const struct abi_key *key,
			       uint32_t tid)
{
	uint64_t h = lanes_hash(key, tid);
	struct lane *at;

	HASH_FIND(at, &l->by_thread, h, node,
		  at->tid == tid && at->key.tgid == key->tgid &&
			  at->key.start_boottime == key->start_boottime);
	return at;
}

/* The thread of a side file, made if need be. NULL: no memory. */
static struct lane *lanes_get(struct lanes *l,
			      const struct store_times_thread *t)
{
	struct lane *at = lanes_lane(l, &t->key, t->tid);

	if (!at) {
		if (VECTOR_ROOM(l->lanes, l->nlanes, l->cap_lanes))
			return NULL;
		at = arena_alloc(&l->arena, sizeof(*at));
		if (!at)
			return NULL;
		*at = (struct lane){
			.key.tgid = t->key.tgid,
			.key.start_boottime = t->key.start_boottime,
			.tid = t->tid,
			.index = (uint32_t)l->nlanes,
		};
		hash_insert(&l->by_thread, &at->node,
			    lanes_hash(&at->key, at->tid));
		l->lanes[l->nlanes++] = at;
	}
	at->exec = MAX(at->exec, t->key.exec_id);
	if (*t->name)
		memcpy(at->name, t->name, sizeof(at->name));
	return at;
}

bool lanes_process(const struct lanes *l, struct abi_key *key)
{
	const struct lane *best = NULL;

	for (size_t i = 0; i < l->nlanes; i++) {
		const struct lane *at = l->lanes[i];

		if (at->key.tgid == key->tgid &&
		    (!key->start_boottime ||
		     key->start_boottime == at->key.start_boottime) &&
		    at->key.start_boottime < l->to &&
		    (!best ||
		     at->key.start_boottime > best->key.start_boottime))
			best = at;
	}
	if (best)
		*key = best->key;
	return best;
}

bool lanes_knows(const struct lanes *l, const struct abi_key *key, uint32_t tid)
{
	return lanes_lane(l, key, tid);
}

/* --- a window -------------------------------------------------------------------- */

static int lanes_room(struct lanes *l)
{
	if (l->n * sizeof(*l->waits) >= LANES_BYTES)
		return -EFBIG;
	return VECTOR_ROOM(l->waits, l->n, l->cap);
}

/* 'of' are the lanes of the file's threads. */
static int lanes_add_wait(struct lanes *l, const struct store_times *t,
			  const struct store_times_wait *w,
			  struct lane *const *of)
{
	bool by = w->waker != STORE_TIMES_NONE;
	int err;

	if (w->end <= l->from || w->begin >= l->to)
		return 0;
	err = lanes_room(l);
	if (err)
		return err;
	l->waits[l->n++] = (struct lanes_wait){
		.begin = w->begin,
		.end = w->end,
		.exec = store_times_thread(t, w->thread)->key.exec_id,
		.waker_exec =
			by ? store_times_thread(t, w->waker)->key.exec_id : 0,
		.lane = of[w->thread]->index,
		.waker = by ? of[w->waker]->index : STORE_TIMES_NONE,
		.what = w->what,
		.sample = w->sample,
		.window = (uint32_t)l->nwindows,
		.kind = (uint8_t)w->kind,
		.open = w->open,
	};
	return 0;
}

static int lanes_add_waits(struct lanes *l, const struct store_times *t)
{
	const struct store_times_info *info = store_times_info(t);
	struct lane **of = calloc(info->threads + 1, sizeof(struct lane *));
	struct store_times_waits c;
	struct store_times_wait w;
	int err = of ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < info->threads; i++) {
		of[i] = lanes_get(l, store_times_thread(t, i));
		err = of[i] ? 0 : -ENOMEM;
	}
	store_times_waits_begin(t, &c);
	while (!err && store_times_waits_next(&c, &w))
		err = lanes_add_wait(l, t, &w, of);
	free(of);
	return err;
}

static int lanes_add_run(struct lanes *l, uint64_t begin, uint64_t end)
{
	struct lanes_run *last = l->nruns ? &l->runs[l->nruns - 1] : NULL;

	if (last && begin <= last->end + LANES_SLACK_NS) {
		last->end = MAX(last->end, end);
		return 0;
	}
	if (VECTOR_ROOM(l->runs, l->nruns, l->cap_runs))
		return -ENOMEM;
	l->runs[l->nruns++] = (struct lanes_run){ begin, end };
	return 0;
}

static int lanes_add(struct lanes *l, const struct store_window *w,
		     const struct store_times *t)
{
	const struct store_times_info *info = store_times_info(t);
	int err = lanes_add_waits(l, t);

	if (!err && VECTOR_ROOM(l->windows, l->nwindows, l->cap_windows))
		err = -ENOMEM;
	if (err)
		return err;
	l->windows[l->nwindows++] = *w;
	l->min = MAX(l->min, info->wait_top);
	l->unrecorded += info->unrecorded;
	return lanes_add_run(l, info->boot_ns,
			     info->boot_ns + info->duration_ns);
}

/* --- which windows --------------------------------------------------------------- */

static bool lanes_overlaps(const struct store_window *w,
			   const struct reporter_query_span *span)
{
	int64_t end = w->begin_ns + (int64_t)w->duration_ns;

	/* Rounded durations: a second more at each side. */
	return w->begin_ns < span->to + (int64_t)CLOCK_NSEC_PER_SEC &&
	       end + (int64_t)CLOCK_NSEC_PER_SEC > span->from;
}

/* 0; -ENOENT: it has none, or is gone, or damaged, which is counted. */
static int lanes_open(struct lanes *l, const struct store_window *w,
		      struct store_times **tp)
{
	int err;

	*tp = NULL;
	if (!w->wait_times_bytes)
		return -ENOENT;
	err = store_times_open(w, l->dirfd, STORE_WAIT_TIMES, tp);
	if (err == -ENOMEM || !err)
		return err;
	l->damaged += err != -ENOENT;
	return -ENOENT;
}

/* The clocks are those of the last window of the span. */
static bool lanes_set_clocks(struct lanes *l, const struct store_times *t,
			     const struct reporter_query_span *span)
{
	const struct store_times_info *info = store_times_info(t);
	int64_t end = info->wall_ns + (int64_t)info->duration_ns;

	if (info->wall_ns >= span->to || end <= span->from)
		return false;
	l->wall = info->wall_ns - (int64_t)info->boot_ns;
	memcpy(l->boot_id, info->boot_id, sizeof(l->boot_id));
	l->from = (uint64_t)MAX(span->from - l->wall, 0);
	l->to = (uint64_t)MAX(span->to - l->wall, 0);
	return true;
}

static int lanes_find_clocks(struct lanes *l, const struct store_list *list,
			     const struct reporter_query_span *span)
{
	struct store_times *t;
	bool found = false;
	int err;

	for (size_t i = list->n; i-- && !found;) {
		if (!lanes_overlaps(&list->windows[i], span))
			continue;
		err = lanes_open(l, &list->windows[i], &t);
		if (err && err != -ENOENT)
			return err;
		l->without += err != 0;
		found = !err && lanes_set_clocks(l, t, span);
		store_times_free(t);
	}
	if (!found)
		return -ENODATA;
	/* Those are read once more. */
	l->without = l->damaged = 0;
	return 0;
}

/* Whether a window of another boot, or none of the span and no next one. */
static bool lanes_is_other(const struct lanes *l, const struct store_times *t,
			   bool *next)
{
	const struct store_times_info *info = store_times_info(t);

	if (memcmp(info->boot_id, l->boot_id, sizeof(l->boot_id)) != 0 ||
	    info->boot_ns + info->duration_ns <= l->from)
		return true;
	*next = info->boot_ns >= l->to;
	return false;
}

static int lanes_read_window(struct lanes *l, const struct store_window *w,
			     const struct reporter_query_span *span, bool *next)
{
	struct store_times *t;
	int err = lanes_open(l, w, &t);

	if (err == -ENOENT) {
		l->without += lanes_overlaps(w, span);
		return 0;
	}
	if (!err && !lanes_is_other(l, t, next))
		err = lanes_add(l, w, t);
	store_times_free(t);
	return err;
}

static int lanes_read_windows(struct lanes *l, const struct store_list *list,
			      const struct reporter_query_span *span,
			      bool (*go_on)(void *arg), void *arg)
{
	int err = lanes_find_clocks(l, list, span);
	bool next = false;

	for (size_t i = 0; i < list->n && !err && !next; i++)
		err = go_on(arg) ? lanes_read_window(l, &list->windows[i], span,
						     &next)
				 : -ECANCELED;
	return err;
}

/* --- in order -------------------------------------------------------------------- */

static int lanes_compare(const void *a, const void *b)
{
	const struct lanes_wait *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	/* That which has ended, or is known the longest. */
	if (x->open != y->open)
		return x->open ? 1 : -1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* By lane, and each wait once: it may have been open at the end of some windows. */
static void lanes_sort(struct lanes *l)
{
	size_t n = 0;

	if (l->n)
		qsort(l->waits, l->n, sizeof(*l->waits), lanes_compare);
	for (size_t i = 0; i < l->n; i++) {
		const struct lanes_wait *w = &l->waits[i];
		const struct lanes_wait *last = n ? &l->waits[n - 1] : NULL;

		if (last && last->lane == w->lane && w->begin < last->end)
			continue;
		if (!last || last->lane != w->lane)
			l->lanes[w->lane]->first = n;
		l->lanes[w->lane]->n++;
		l->waits[n++] = *w;
	}
	l->n = n;
}

int lanes_read(struct lanes *l, const char *archive,
	       const struct reporter_query_span *span, bool (*go_on)(void *arg),
	       void *arg)
{
	int64_t to = span->to < INT64_MAX - LANES_NEXT_NS
			     ? span->to + LANES_NEXT_NS
			     : INT64_MAX;
	struct store_list list;
	int err;

	*l = (struct lanes){ .dirfd = -1 };
	arena_init(&l->arena);
	err = hash_init(&l->by_thread, 0);
	if (err)
		return err;
	err = store_list(&list, archive, span->from, to);
	if (err)
		return err;
	l->dirfd = open(archive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = l->dirfd < 0 ? -errno : 0;
	if (!err)
		err = lanes_read_windows(l, &list, span, go_on, arg);
	store_list_free(&list);
	lanes_sort(l);
	return err;
}

void lanes_fini(struct lanes *l)
{
	if (l->dirfd >= 0)
		close(l->dirfd);
	free(l->windows);
	free(l->runs);
	free(l->waits);
	free(l->lanes);
	hash_fini(&l->by_thread);
	arena_fini(&l->arena);
	*l = (struct lanes){ .dirfd = -1 };
}

/* --- segments -------------------------------------------------------------------- */

static struct reporter_segment *
lanes_segment(struct lanes *l, const struct lane *at, uint64_t exec)
{
	struct reporter_segment *s = arena_alloc(&l->arena, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct reporter_segment){ .latency = 0 };
	s->of.key = at->key;
	s->of.key.exec_id = exec;
	s->of.tid = at->tid;
	memcpy(s->of.comm, at->name, sizeof(s->of.comm));
	return s;
}

/* A wait has one segment, by which why.c knows it. */
static const struct reporter_segment *lanes_wait_segment(struct lanes *l,
							 struct lanes_wait *w)
{
	struct reporter_segment *s = w->segment;

	if (s)
		return s;
	s = w->segment = lanes_segment(l, l->lanes[w->lane], w->exec);
	if (!s)
		return NULL;
	s->of.begin = w->begin;
	s->of.end = w->end;
	s->of.what = w->what;
	s->of.flags = w->open ? ABI_SEGMENT_OPEN : 0;
	s->of.waker.kind = w->kind;
	if (w->sample != STORE_TIMES_NONE)
		s->of.site = ABI_WAIT_SITE_LEAST +
			     ((uint64_t)w->window << 32 | w->sample);
	if (w->waker != STORE_TIMES_NONE) {
		const struct lane *by = l->lanes[w->waker];

		s->of.waker.key = by->key;
		s->of.waker.key.exec_id = w->waker_exec;
		s->of.waker.tid = by->tid;
		memcpy(s->waker, by->name, sizeof(s->waker));
	}
	return s;
}

/* How many waits of a thread begin before 'time'. */
static size_t lanes_before(const struct lanes *l, const struct lane *at,
			   uint64_t time)
{
	size_t from = 0, n = at->n, mid;

	while (from < n) {
		mid = from + (n - from) / 2;
		if (l->waits[at->first + mid].begin < time)
			from = mid + 1;
		else
			n = mid;
	}
	return from;
}

/* Of time that the windows have, the begin; 0, and the end of what is before it. */
static uint64_t lanes_covered(const struct lanes *l, uint64_t time,
			      uint64_t *before)
{
	*before = 0;
	for (size_t i = l->nruns; i--;) {
		if (l->runs[i].begin < time && l->runs[i].end >= time)
			return l->runs[i].begin;
		if (l->runs[i].end < time) {
			*before = l->runs[i].end;
			return 0;
		}
	}
	return 0;
}

/* What it did from 'since' on, if a long wait of that time would be known. */
static const struct reporter_segment *
lanes_between(struct lanes *l, const struct lane *at, uint64_t since,
	      uint64_t exec, uint64_t time, uint64_t *until)
{
	struct reporter_segment *s = NULL;
	uint64_t before, begin = lanes_covered(l, time, &before);

	*until = MAX(since, before);
	if (!begin)
		return NULL;
	*until = since;
	begin = MAX(MAX(begin, since), at->key.start_boottime);
	if (begin < time)
		s = lanes_segment(l, at, exec);
	if (!s)
		return NULL;
	s->of.begin = begin;
	s->of.end = time;
	s->of.what = ABI_WAIT_WHAT_ON;
	s->between = true;
	return s;
}

const struct reporter_segment *lanes_find(void *arg, const struct abi_key *key,
					  uint32_t tid, uint64_t time,
					  uint64_t *until)
{
	struct lanes *l = arg;
	const struct lane *at = lanes_lane(l, key, tid);
	struct lanes_wait *w;
	size_t n;

	*until = 0;
	if (!at)
		return NULL;
	n = lanes_before(l, at, time);
	w = n ? &l->waits[at->first + n - 1] : NULL;
	if (w && w->end >= time)
		return lanes_wait_segment(l, w);
	return lanes_between(l, at, w ? w->end : 0, w ? w->exec : at->exec,
			     time, until);
}
