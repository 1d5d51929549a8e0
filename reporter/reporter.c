// SPDX-License-Identifier: Apache-2.0
/*
 * reporter: see reporter/reporter.h. This file manages the windows: which are
 * open, which one a trace is added to, when one closes; job.c does the rest.
 *
 * The archive's windows are contiguous, and end when the wall clock is a multiple
 * of window_ns. Where that is in boot time is measured when a window is opened, so
 * that after a step of the clock the next window ends at a boundary again, and one
 * or two are shorter. A window is opened when a trace falls into it or the watermark
 * reaches it. One without a trace is not written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http_access.h"
#include "reporter/internal.h"
#include "reporter/job.h"
#include "reporter/ledger/ledger.h"

static const char *const reporter_endings[] = {
#define X(name, ending) [REPORTER_##name] = (ending),
	REPORTER_FORMATS(X)
#undef X
};

int reporter_format_of(const char *path)
{
	size_t i, n, len = strlen(path);

	for (i = 0; i < ARRAY_SIZE(reporter_endings); i++) {
		n = strlen(reporter_endings[i]);
		if (len > n && !strcmp(path + len - n, reporter_endings[i]))
			return (int)i;
	}
	return -EINVAL;
}

const char *reporter_ending(enum reporter_format format)
{
	return reporter_endings[format];
}

/* --- the object ---------------------------------------------------------- */

static void reporter_destroy(struct reporter *r)
{
	catalog_free(r->catalog);
	store_free(r->store);
	free(r->losses);
	free(r->losses_archived);
	free(r->type_samples);
	ledger_events_free(r->events);
	http_access_free(r->access);
	free(r->hostname);
	free(r->version);
	free(r);
}

/* By event: its count, then its value. */
static const struct reporter_sample_type *
reporter_type_at(const struct reporter_event_type *events, size_t i)
{
	return i % 2 ? &events[i / 2].value : &events[i / 2].count;
}

/* Readers select a sample type by its name, so names have to be unique. */
static bool reporter_type_ok(const struct reporter_event_type *events, size_t i)
{
	const struct reporter_event_type *e = &events[i / 2];
	const struct reporter_sample_type *t = reporter_type_at(events, i), *u;

	if (!t->type && i % 2)
		return !e->periodic;
	if (!e->name || !e->label || !t->type || !*t->type ||
	    strchr(t->type, '-') || !t->unit || !*t->unit)
		return false;
	while (i-- > 0) {
		u = reporter_type_at(events, i);
		if (u->type && !strcmp(u->type, t->type))
			return false;
	}
	return true;
}

static int reporter_init_events(struct reporter *r,
				const struct reporter_opts *opts)
{
	size_t i;

	if (!opts->nevent_types || opts->nevent_types > REPORTER_EVENTS_MAX)
		return -EINVAL;
	for (i = 0; i < 2 * opts->nevent_types; i++)
		if (!reporter_type_ok(opts->event_types, i))
			return -EINVAL;
	r->type_samples = calloc(opts->nevent_types, sizeof(*r->type_samples));
	return r->type_samples ? 0 : -ENOMEM;
}

static int reporter_init(struct reporter *r, const struct reporter_opts *opts)
{
	r->opts = *opts;
	r->opts.archive = r->opts.hostname = r->opts.version = NULL;
	r->opts.freq_hz = MAX(opts->freq_hz, 1);
	r->window_ns = MAX(opts->window_s, 1) * CLOCK_NSEC_PER_SEC;
	TAILQ_INIT(&r->windows);
	TAILQ_INIT(&r->extras);
	TAILQ_INIT(&r->queries);
	r->hostname = strdup(opts->hostname);
	r->version = strdup(opts->version);
	r->losses = calloc(opts->nlosses + 1, sizeof(*r->losses));
	r->losses_archived = calloc(opts->nlosses + 1, sizeof(*r->losses));
	if (!r->hostname || !r->version || !r->losses || !r->losses_archived)
		return -ENOMEM;
	return reporter_init_events(r, opts);
}

static void reporter_catalog_job(void *arg, bool ended)
{
	struct reporter *r = arg;

	if (!ended) {
		r->jobs++;
		return;
	}
	r->jobs--;
	reporter_check_finished(r);
}

/* From a pool thread: windows are written once there is a catalog. */
static void reporter_removed(void *arg, const struct store_window *w)
{
	const struct reporter *r = arg;

	catalog_removed(r->catalog, w);
}

static int reporter_open_store(struct reporter *r,
			       const struct reporter_opts *opts)
{
	const struct store_opts so = {
		.path = opts->archive,
		.keep = opts->keep,
		.removed = reporter_removed,
		.arg = r,
	};

	store_boot_id(r->boot_id);
	return store_new(&r->store, &so, &r->stats.swept);
}

static void reporter_catalog_limited(void *arg, uint32_t uid)
{
	struct reporter *r = arg;

	if (r->opts.limited)
		r->opts.limited(r->opts.arg, uid, REPORTER_LIMIT_PROCESSES);
}

static int reporter_open_catalog(struct reporter *r,
				 const struct reporter_opts *opts)
{
	struct catalog_opts co = {
		.loop = opts->loop,
		.pm = opts->pm,
		.dir = opts->archive,
		.freq_hz = r->opts.freq_hz,
		.version = r->version,
		.args = opts->archive_args,
		.bytes = opts->keep.bytes,
		.job = reporter_catalog_job,
		.limited = reporter_catalog_limited,
		.arg = r,
	};

	memcpy(co.boot_id, r->boot_id, sizeof(co.boot_id));
	return catalog_new(&r->catalog, &co);
}

pid_t reporter_archive_holder(const char *dir)
{
	return store_holder(dir);
}

int reporter_new(struct reporter **rp, const struct reporter_opts *opts,
		 const char **where)
{
	struct reporter *r = calloc(1, sizeof(*r));
	int err;

	*where = "reporter";
	if (!r)
		return -ENOMEM;
	err = reporter_init(r, opts);
	if (!err && opts->archive) {
		*where = opts->archive;
		err = reporter_open_store(r, opts);
	}
	if (!err)
		err = uv_timer_init(opts->loop, &r->timer);
	if (err) {
		reporter_destroy(r);
		return err;
	}
	r->timer.data = r;
	r->handles = 1;
	/* The last, since it begins a job. */
	if (r->store)
		err = reporter_open_catalog(r, opts);
	if (err) {
		reporter_free(r);
		return err;
	}
	*rp = r;
	return 0;
}

static void reporter_check_freed(struct reporter *r)
{
	if (r->freed && !r->handles && !r->jobs)
		reporter_destroy(r);
}

void reporter_handle_closed(struct reporter *r)
{
	r->handles--;
	reporter_check_freed(r);
}

static void reporter_timer_closed(uv_handle_t *h)
{
	reporter_handle_closed(h->data);
}

static void reporter_free_windows(struct reporter_windows *list)
{
	struct reporter_window *w;

	while ((w = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, w, entry);
		job_window_free(w);
	}
}

void reporter_free(struct reporter *r)
{
	if (!r)
		return;
	r->freed = true;
	r->finished = NULL;
	r->opts.written = NULL;
	r->opts.refresh = NULL;
	r->opts.edges = NULL;
	http_stop(r);
	reporter_free_windows(&r->windows);
	reporter_free_windows(&r->extras);
	catalog_stop(r->catalog);
	uv_close((uv_handle_t *)&r->timer, reporter_timer_closed);
}

static size_t reporter_window_bytes(const struct reporter_window *w)
{
	return window_bytes(&w->tables) +
	       (w->waits ? window_bytes(&w->waits->tables) +
				   singles_bytes(&w->waits->singles)
			 : 0);
}

void reporter_get_stats(const struct reporter *r, struct reporter_stats *out)
{
	const struct reporter_window *w;

	struct catalog_stats catalog = { 0 };

	if (r->catalog)
		catalog_get_stats(r->catalog, &catalog);
	*out = r->stats;
#define X(name) out->name = catalog.name;
	CATALOG_STATS(X)
#undef X
	TAILQ_FOREACH(w, &r->windows, entry)
		out->memory_bytes += reporter_window_bytes(w);
	TAILQ_FOREACH(w, &r->extras, entry)
		out->memory_bytes += reporter_window_bytes(w);
}

int reporter_access(struct reporter *r, const struct reporter_access *access,
		    const char **where, const char **why)
{
	return http_access_new(&r->access, access, where, why);
}

/* Numbers of events grow over restarts, too: fewer than one comes each microsecond. */
static uint64_t reporter_first_event(void)
{
	return (clock_boottime_ns() + clock_wall_offset_ns()) / 1000;
}

int reporter_listen(struct reporter *r, const char *address)
{
	if (!r->events)
		r->events = ledger_events_new(r->opts.freq_hz, r->hostname,
					      reporter_first_event());
	return r->events ? http_listen(r, address) : -ENOMEM;
}

int reporter_event(struct reporter *r, const struct quark_event *ev)
{
	if (r->catalog)
		catalog_event(r->catalog, ev);
	return r->events ? ledger_events_add(r->events, ev) : 0;
}

int reporter_ended(struct reporter *r, const struct pm_image *last)
{
	if (r->catalog)
		catalog_ended(r->catalog, last);
	return r->events ? ledger_events_add_ended(r->events, last) : 0;
}

void reporter_losses(struct reporter *r, const uint64_t *counts)
{
	if (r->opts.nlosses)
		memcpy(r->losses, counts, r->opts.nlosses * sizeof(*counts));
}

/* --- windows ------------------------------------------------------------- */

static uint64_t reporter_all_events(const struct reporter *r)
{
	return UINT64_MAX >> (REPORTER_EVENTS_MAX - r->opts.nevent_types) &
	       ~reporter_apart(r);
}

static struct window_opts window_opts_of(const struct reporter *r,
					 uint64_t begin, uint64_t events)
{
	unsigned int hz = r->opts.freq_hz;

	return (struct window_opts){
		.types = r->opts.event_types,
		.ntypes = r->opts.nevent_types,
		.events = events,
		.period = (CLOCK_NSEC_PER_SEC + hz / 2) / hz,
		.begin = begin,
	};
}

static struct reporter_window *window_new(struct reporter *r, uint64_t begin,
					  uint64_t end, uint64_t events,
					  const struct reporter_form *form)
{
	struct reporter_window *w = calloc(1, sizeof(*w));
	struct window_opts opts = window_opts_of(r, begin, events);

	opts.drop_marks = form && form->drop_marks;
	opts.traces = form && form->traces;
	opts.ids = !form;
	if (!w)
		return NULL;
	if (window_init(&w->tables, &opts)) {
		free(w);
		return NULL;
	}
	w->file = REPORTER_OUTFILE_NONE;
	w->tables.serial = ++r->opened;
	w->r = r;
	w->begin = begin;
	w->end = end;
	return w;
}

static int window_add_waits(struct reporter_window *w)
{
	uint64_t apart = reporter_apart(w->r);
	const struct window_opts opts = window_opts_of(w->r, w->begin, apart);

	if (!apart)
		return 0;
	w->waits = waits_new(&opts);
	return w->waits ? 0 : -ENOMEM;
}

static struct reporter_window *
reporter_archive_window(struct reporter *r, uint64_t begin, uint64_t end)
{
	struct reporter_window *w, *next;

	w = window_new(r, begin, end, reporter_all_events(r), NULL);
	if (!w)
		return NULL;
	if (r->opts.waits && (window_add_waits(w) ||
			      waits_keep_singles(w->waits, r->opts.wait_min))) {
		job_window_free(w);
		return NULL;
	}
	w->archive = true;
	w->format = r->opts.archive_format;
	TAILQ_FOREACH(next, &r->windows, entry)
		if (next->begin >= begin)
			break;
	if (next)
		TAILQ_INSERT_BEFORE(next, w, entry);
	else
		TAILQ_INSERT_TAIL(&r->windows, w, entry);
	return w;
}

static struct reporter_window *reporter_find(struct reporter *r, uint64_t time)
{
	struct reporter_window *w;

	TAILQ_FOREACH(w, &r->windows, entry)
		if (time >= w->begin && time < w->end)
			return w;
	return NULL;
}

/*
 * A boundary may be measured a little earlier or later than before, and the clock
 * may be slewed: no window of less than that is made between two boundaries.
 */
#define REPORTER_SLACK(r) MIN((r)->window_ns / 4, CLOCK_NSEC_PER_SEC / 2)

/* The window that 'time' falls into: up to a boundary of the wall clock. */
static void reporter_bounds(const struct reporter *r, uint64_t time,
			    uint64_t *begin, uint64_t *end)
{
	uint64_t slack = REPORTER_SLACK(r), before = r->base;
	int64_t wall = (int64_t)time + clock_wall_offset_ns();
	const struct reporter_window *w;

	/* An offset of whole windows keeps a clock before 1970 positive. */
	wall += (int64_t)(INT64_MAX / 2 / r->window_ns * r->window_ns);
	*begin = time - MIN(time, (uint64_t)wall % r->window_ns);
	*end = time + r->window_ns - (uint64_t)wall % r->window_ns;
	TAILQ_FOREACH(w, &r->windows, entry)
		if (w->end <= time)
			before = MAX(before, w->end);
	if (*begin < before + slack)
		*begin = before;
	if (*end - *begin < slack)
		*end += r->window_ns;
	/* Whole seconds are easier to read than the noise of the measurement. */
	if (*end - *begin > r->window_ns - CLOCK_NSEC_PER_MSEC &&
	    *end - *begin < r->window_ns + CLOCK_NSEC_PER_MSEC)
		*end = *begin + r->window_ns;
	TAILQ_FOREACH(w, &r->windows, entry)
		if (w->begin > time)
			*end = MIN(*end, w->begin);
}

struct reporter_window *reporter_window_at(struct reporter *r, uint64_t time)
{
	struct reporter_window *w = reporter_find(r, time);
	uint64_t begin, end;

	if (w)
		return w;
	if (TAILQ_EMPTY(&r->windows))
		time = MAX(time, r->advanced);
	if (time >= r->base) {
		reporter_bounds(r, time, &begin, &end);
		if (end > r->advanced)
			return reporter_archive_window(r, begin, end);
	}
	return TAILQ_FIRST(&r->windows);
}

void reporter_start(struct reporter *r, uint64_t time)
{
	r->base = r->advanced = r->started = time;
	memcpy(r->losses_archived, r->losses,
	       r->opts.nlosses * sizeof(*r->losses));
	if (r->store)
		reporter_window_at(r, time);
}

static int reporter_add_to(struct reporter_window *w,
			   const struct reporter_trace *t,
			   const struct pm_image_info *info)
{
	int err = window_add(&w->tables, t, info);

	if (err)
		w->nomem++;
	return err;
}

static bool reporter_takes(const struct reporter_window *w, uint32_t event)
{
	return window_takes(&w->tables, event) ||
	       (w->waits && w->r->opts.event_types[event].apart);
}

static int reporter_archive(struct reporter *r, const struct reporter_trace *t,
			    const struct pm_image_info *info)
{
	bool apart = r->opts.event_types[t->event].apart;
	struct reporter_window *w;

	/* Sums of before the first window, which is cut at its begin, too. */
	if (apart && t->time < r->started)
		return 0;
	w = reporter_window_at(r, t->time);
	if (!w)
		return -ENOMEM;
	if (apart)
		return waits_add(w->waits, t, info);
	if (t->time < w->begin) {
		r->stats.traces_late++;
		w->late++;
	}
	return reporter_add_to(w, t, info);
}

int reporter_add(struct reporter *r, const struct reporter_trace *t)
{
	struct reporter_window *w;
	struct pm_image_info info;
	int err = 0, e;

	if (t->event >= r->opts.nevent_types)
		return -EINVAL;
	pm_image_info(t->image, &info);
	r->stats.traces++;
	r->type_samples[t->event]++;
	if (!r->opts.event_types[t->event].apart)
		r->latest = MAX(r->latest, t->time);
	if (r->store && (r->opts.waits || !r->opts.event_types[t->event].apart))
		err = reporter_archive(r, t, &info);
	TAILQ_FOREACH(w, &r->extras, entry) {
		if (t->time < w->begin || t->time >= w->end ||
		    !reporter_takes(w, t->event) ||
		    (w->selected_only && !info.selected))
			continue;
		e = window_takes(&w->tables, t->event)
			    ? reporter_add_to(w, t, &info)
			    : waits_add(w->waits, t, &info);
		err = err ? err : e;
	}
	if (err)
		r->stats.traces_nomem++;
	return err;
}

void reporter_rename(struct reporter *r, const struct reporter_frame *f)
{
	struct reporter_window *w;

	/* Only windows that were opened for a recording wait for names. */
	TAILQ_FOREACH(w, &r->extras, entry)
		if (window_rename(&w->tables, f) ||
		    (w->waits && window_rename(&w->waits->tables, f)))
			r->stats.traces_nomem++;
}

static void reporter_describe_in(struct reporter *r,
				 const struct reporter_windows *list,
				 const struct pm_image_info *info)
{
	struct reporter_window *w;

	TAILQ_FOREACH(w, list, entry)
		if (window_describe(&w->tables, info) ||
		    (w->waits && window_describe(&w->waits->tables, info)))
			r->stats.traces_nomem++;
}

void reporter_describe(struct reporter *r, const struct pm_image *img)
{
	struct pm_image_info info;

	pm_image_info(img, &info);
	reporter_describe_in(r, &r->windows, &info);
	reporter_describe_in(r, &r->extras, &info);
}

static void reporter_close_windows(struct reporter_windows *list, uint64_t time)
{
	struct reporter_window *w, *next;

	for (w = TAILQ_FIRST(list); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		if (w->end > time)
			continue;
		TAILQ_REMOVE(list, w, entry);
		if (w->archive)
			w->r->base = MAX(w->r->base, w->end);
		job_start(w);
	}
}

/* Closes the windows that end at 'time' or before. */
static void reporter_close_ended(struct reporter *r, uint64_t time)
{
	reporter_close_windows(&r->windows, time);
	reporter_close_windows(&r->extras, time);
}

#define REPORTER_ROTATE_NS CLOCK_NSEC_PER_SEC

/* The time of a cut: after each trace that was added, so none is misplaced. */
static uint64_t reporter_cut(const struct reporter *r, uint64_t time)
{
	return MAX(MAX(time, r->advanced), r->latest + 1);
}

void reporter_shed(struct reporter *r, bool shed)
{
	r->shed = shed;
}

void reporter_rotate(struct reporter *r, uint64_t time)
{
	uint64_t cut = reporter_cut(r, reporter_apart_ahead(r, time));
	struct reporter_window *w;

	if (!r->store || r->finishing)
		return;
	if (r->rotated && cut < r->rotated + REPORTER_ROTATE_NS) {
		r->rotate_at = r->rotated + REPORTER_ROTATE_NS;
		return;
	}
	r->rotated = cut;
	r->rotate_at = 0;
	w = reporter_window_at(r, cut);
	if (!w || w->begin == cut) /* no empty windows */
		return;
	w->end = r->base = cut;
	reporter_close_ended(r, r->advanced);
	reporter_window_at(r, cut);
	reporter_edges_changed(r);
}

void reporter_advance(struct reporter *r, uint64_t time)
{
	if (r->finishing || time <= r->advanced)
		return;
	r->advanced = time;
	/* Edges of waits have to be ahead of the clock. */
	if (r->rotate_at && time >= r->rotate_at)
		reporter_rotate(r, r->opts.waits ? clock_boottime_ns() : time);
	http_wake(r);
	reporter_close_ended(r, time);
	/* If this fails (-ENOMEM), the next trace or call tries again. */
	if (r->store && !reporter_find(r, time))
		reporter_window_at(r, time);
	http_queries_wake(r);
}

uint64_t reporter_due(const struct reporter *r)
{
	const struct reporter_window *w;
	uint64_t due = r->rotate_at ? r->rotate_at : UINT64_MAX;

	if (r->stats.http_followers)
		return 0;
	due = MIN(due, http_queries_due(r));
	TAILQ_FOREACH(w, &r->extras, entry)
		due = MIN(due, w->end);
	return due;
}

/* --- windows beside the archive's ---------------------------------------- */

int reporter_window_open(struct reporter *r,
			 const struct reporter_window_opts *opts,
			 struct reporter_window **wp)
{
	uint64_t all = reporter_all_events(r);
	uint64_t events = opts->events ? opts->events : all;
	struct reporter_window *w;
	int err = 0;

	if (opts->begin >= opts->end || (opts->wall && opts->path) ||
	    (events & ~all && events & ~reporter_apart(r)))
		return -EINVAL;
	w = window_new(r, opts->begin, opts->end, events, &opts->form);
	if (!w)
		return -ENOMEM;
	w->tables.opts.traces |= reporter_query_terms_traced(&opts->terms);
	w->losses = calloc(r->opts.nlosses + 1, sizeof(*w->losses));
	if (!w->losses || (opts->wall && window_add_waits(w)))
		err = -ENOMEM;
	/* Now, so that the caller sees at once that it cannot be written. */
	if (!err && opts->path)
		err = reporter_outfile_open(&w->file, opts->path);
	if (err) {
		job_window_free(w);
		return err;
	}
	memcpy(w->losses, r->losses, r->opts.nlosses * sizeof(*w->losses));
	w->selected_only = opts->selected_only;
	w->form = opts->form;
	w->terms = opts->terms;
	w->format = opts->format;
	w->done = opts->done;
	w->arg = opts->arg;
	w->edge = opts->edge;
	TAILQ_INSERT_HEAD(&r->extras, w, entry);
	reporter_edges_changed(r);
	*wp = w;
	return 0;
}

void reporter_window_end(struct reporter *r, struct reporter_window *w,
			 uint64_t end)
{
	w->end = MAX(end, w->begin);
	/* Sums of before the end come after it: see reporter_apart_edge(). */
	if (w->end <= r->advanced && !reporter_window_apart(w))
		reporter_close_ended(r, r->advanced);
	reporter_edges_changed(r);
}

void reporter_window_cancel(struct reporter_window *w)
{
	w->done = NULL;
	if (w->closed)
		return; /* the job frees it */
	TAILQ_REMOVE(&w->r->extras, w, entry);
	job_window_free(w);
}

uint64_t reporter_window_samples(const struct reporter_window *w)
{
	return w->tables.nsamples;
}

/* --- the end ------------------------------------------------------------- */

#define REPORTER_GRACE_MS 2000

static void reporter_finish_timer(uv_timer_t *timer)
{
	struct reporter *r = timer->data;
	void (*finished)(void *arg) = r->finished;

	if (r->jobs) {
		r->grace_over = true;
		return;
	}
	r->finished = NULL;
	if (finished)
		finished(r->finished_arg);
}

void reporter_check_finished(struct reporter *r)
{
	if (r->freed)
		reporter_check_freed(r);
	else if (r->finished && !r->jobs && (!r->http_open || r->grace_over))
		uv_timer_start(&r->timer, reporter_finish_timer, 0, 0);
}

static void reporter_end_windows(struct reporter *r, uint64_t time)
{
	uint64_t cut = reporter_cut(r, time);
	struct reporter_window *w, *next;

	for (w = TAILQ_FIRST(&r->windows); w; w = next) {
		next = TAILQ_NEXT(w, entry);
		w->end = MIN(w->end, cut);
		if (w->begin < cut)
			continue;
		/* Opened ahead of time, and still empty. */
		TAILQ_REMOVE(&r->windows, w, entry);
		job_window_free(w);
	}
	TAILQ_FOREACH(w, &r->extras, entry)
		w->end = MIN(w->end, MAX(time, w->begin));
}

void reporter_finish(struct reporter *r, uint64_t time, void (*done)(void *arg),
		     void *arg)
{
	reporter_end_windows(r, time);
	r->finishing = true;
	r->finished = done;
	r->finished_arg = arg;
	http_queries_end(r);
	http_wake(r);
	reporter_close_ended(r, UINT64_MAX);
	uv_timer_start(&r->timer, reporter_finish_timer, REPORTER_GRACE_MS, 0);
	reporter_check_finished(r);
}
