// SPDX-License-Identifier: Apache-2.0
/* sites: see profiler/waiting/sites.h. */
#include <errno.h>
#include <stdlib.h>

#include "profiler/waiting/sites.h"

#define SITES_BYTES ((size_t)16 << 20)
#define SITES_LASTING_BYTES ((size_t)4 << 20)
/* Sums are read once a second, and given some seconds later, when names are late. */
#define SITES_UNUSED_NS (10 * CLOCK_NSEC_PER_SEC)

int waiting_sites_init(struct waiting_sites *ws, struct trace_handler *th)
{
	*ws = (struct waiting_sites){ .th = th };
	TAILQ_INIT(&ws->unused);
	return hash_init(&ws->known, 0);
}

static bool sites_room(const struct waiting_share *s, size_t max, uint32_t user,
		       size_t bytes)
{
	return s->bytes + bytes <= max &&
	       s->users[user] + bytes <= max - s->bytes;
}

static void sites_take(struct waiting_share *s, uint32_t user, size_t bytes)
{
	s->bytes += bytes;
	s->users[user] += bytes;
}

static void sites_return(struct waiting_share *s, uint32_t user, size_t bytes)
{
	s->bytes -= bytes;
	s->users[user] -= bytes;
}

/* It does not last. */
static void sites_forget_stack(struct waiting_sites *ws, struct waiting_site *s)
{
	if (s->stack)
		trace_handler_unkeep(ws->th, s->stack);
	s->stack = NULL;
	s->memo = (struct reporter_memo){ 0 };
	sites_return(&ws->held, s->user, s->bytes);
	s->bytes = 0;
}

/* From the list, or the share, of those without sums. */
static void sites_take_out(struct waiting_sites *ws, struct waiting_site *s)
{
	if (s->lasts)
		sites_return(&ws->lasting, s->user, s->bytes);
	else
		TAILQ_REMOVE(&ws->unused, s, link);
	s->lasts = false;
}

/* It is in neither. */
static void sites_drop(struct waiting_sites *ws, struct waiting_site *s)
{
	hash_remove(&ws->known, &s->node);
	sites_forget_stack(ws, s);
	free(s);
}

/* It is in neither, and nothing but segments has it. */
static void sites_end(struct waiting_sites *ws, struct waiting_site *s)
{
	s->lasts = s->segments && s->stack &&
		   sites_room(&ws->lasting, SITES_LASTING_BYTES, s->user,
			      s->bytes);
	if (s->lasts) {
		sites_take(&ws->lasting, s->user, s->bytes);
		return;
	}
	ws->forgotten += s->segments && s->stack;
	sites_drop(ws, s);
}

void waiting_sites_fini(struct waiting_sites *ws)
{
	struct hash_node *n, *next;
	struct waiting_site *s;
	size_t i;

	if (!ws->known.buckets)
		return;
	hash_for_each(&ws->known, i, n, next) {
		s = container_of(n, struct waiting_site, node);
		if (!s->sums)
			sites_take_out(ws, s);
		sites_drop(ws, s);
	}
	hash_fini(&ws->known);
	free(ws->frames);
}

struct waiting_site *waiting_sites_find(struct waiting_sites *ws, uint64_t site)
{
	struct waiting_site *s;

	HASH_FIND(s, &ws->known, site, node, s->site == site);
	return s;
}

/* The site, made if need be at 'now', without sums then. NULL: no memory. */
static struct waiting_site *sites_get(struct waiting_sites *ws, uint64_t site,
				      uint64_t now)
{
	struct waiting_site *s = waiting_sites_find(ws, site);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->site = site;
	s->since = now;
	hash_insert(&ws->known, &s->node, site);
	TAILQ_INSERT_TAIL(&ws->unused, s, link);
	return s;
}

static uint32_t sites_user(const struct reporter_trace *t)
{
	struct pm_image_info info;

	pm_image_info(t->image, &info);
	return info.uid % WAITING_SITES_USERS;
}

/* The frames of a site's stack, in ws->frames. False: no memory. */
static bool sites_frames(struct waiting_sites *ws, const struct waiting_site *s,
			 size_t *np)
{
	size_t n = trace_handler_kept(s->stack, NULL, 0);
	struct reporter_frame *frames;

	*np = n;
	if (n > ws->cap) {
		frames = realloc(ws->frames, n * sizeof(*frames));
		if (!frames)
			return false;
		ws->frames = frames;
		ws->cap = n;
	}
	trace_handler_kept(s->stack, ws->frames, n);
	return true;
}

/* The functions of a frame; 'out' has room for 'max'. Returns how many there are. */
static size_t sites_lines(const struct reporter_frame *f,
			  struct reporter_step_frame *out, size_t max)
{
	const struct pm_exe *exe = reporter_place_exe(&f->place);
	struct pm_exe_info info = { .path = "" };

	if (exe)
		pm_exe_info(exe, &info);
	for (size_t i = 0; i < f->nlines && i < max; i++)
		out[i] = (struct reporter_step_frame){
			.function = f->lines[i].function->name,
			.file = f->lines[i].function->file,
			.line = f->lines[i].line,
			.mapping = info.path,
			.inlined = i + 1 < f->nlines,
		};
	return f->nlines;
}

size_t waiting_sites_lines(void *arg, uint64_t site,
			   struct reporter_step_frame *out, size_t max)
{
	struct waiting_sites *ws = arg;
	struct waiting_site *s = waiting_sites_find(ws, site);
	size_t n = 0, nframes;

	if (!s || !s->stack || !sites_frames(ws, s, &nframes))
		return 0;
	for (size_t i = 0; i < nframes; i++)
		n += sites_lines(&ws->frames[i], out + MIN(n, max),
				 max - MIN(n, max));
	return n;
}

/* What ends with a mark says why it is not whole. */
static bool sites_whole(const struct reporter_frame *frames, size_t n)
{
	return n && frames[n - 1].place.kind != REPORTER_PLACE_MARK;
}

/*
 * Two threads may have copied it at the same time. True: the new one is better: that of
 * before came when not all tables were there.
 */
static bool sites_compare(struct waiting_sites *ws,
			  const struct waiting_site *s,
			  const struct reporter_trace *t)
{
	size_t n, i;

	if (!sites_whole(t->frames, t->nframes) || !sites_frames(ws, s, &n))
		return false;
	if (!sites_whole(ws->frames, n))
		return true;
	for (i = 0; i < n && i < t->nframes; i++)
		if (!reporter_place_equal(&ws->frames[i].place,
					  &t->frames[i].place))
			break;
	ws->again++;
	ws->differ += i < n || n != t->nframes;
	return false;
}

void waiting_sites_add(struct waiting_sites *ws, const struct reporter_trace *t,
		       uint64_t now)
{
	size_t bytes = sizeof(struct waiting_site) +
		       t->nframes * sizeof(struct trace_frame *);
	struct waiting_site *s;
	uint32_t user = sites_user(t);

	s = sites_room(&ws->held, SITES_BYTES, user, bytes)
		    ? sites_get(ws, t->value, now)
		    : NULL;
	if (!s) {
		ws->refused++;
		return;
	}
	if (!s->sums) {
		sites_take_out(ws, s);
		TAILQ_INSERT_TAIL(&ws->unused, s, link);
		s->since = now;
	}
	if (s->stack && !sites_compare(ws, s, t))
		return;
	sites_forget_stack(ws, s);
	s->stack = trace_handler_keep(ws->th);
	if (!s->stack) {
		ws->refused++;
		return;
	}
	s->user = user;
	s->bytes = bytes;
	sites_take(&ws->held, user, bytes);
}

void waiting_sites_use(struct waiting_sites *ws, uint64_t site)
{
	struct waiting_site *s = sites_get(ws, site, 0);

	if (!s)
		return;
	if (!s->sums)
		sites_take_out(ws, s);
	s->sums++;
}

/* Without memory its use was not counted. */
void waiting_sites_unuse(struct waiting_sites *ws, uint64_t site)
{
	struct waiting_site *s = waiting_sites_find(ws, site);

	if (s && s->sums && !--s->sums)
		sites_end(ws, s);
}

/*
 * The sum of a site that is not known yet will be read soon: it is there when a segment
 * has it, so there are not more of these than of sums.
 */
void waiting_sites_record(struct waiting_sites *ws, uint64_t site, uint64_t now)
{
	struct waiting_site *s;

	if (site < ABI_WAIT_SITE_LEAST)
		return;
	s = sites_get(ws, site, now);
	if (s)
		s->segments++;
}

/* A record may be older than the site: it was dropped without a stack, and is new. */
void waiting_sites_unrecord(struct waiting_sites *ws, uint64_t site)
{
	struct waiting_site *s;

	if (site < ABI_WAIT_SITE_LEAST)
		return;
	s = waiting_sites_find(ws, site);
	if (!s || !s->segments || --s->segments || !s->lasts)
		return;
	sites_take_out(ws, s);
	sites_drop(ws, s);
}

void waiting_sites_tick(struct waiting_sites *ws, uint64_t now)
{
	struct waiting_site *s;

	while ((s = TAILQ_FIRST(&ws->unused)) &&
	       s->since + SITES_UNUSED_NS < now) {
		sites_take_out(ws, s);
		sites_end(ws, s);
	}
}
