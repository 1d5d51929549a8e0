// SPDX-License-Identifier: Apache-2.0
/* apart: which windows are of events that are 'apart', their edges, and waits one by one. */
#include "base/base.h"
#include "reporter/internal.h"
#include "reporter/reporter.h"

/* The loop may be busy for a moment before it sets them. */
#define REPORTER_AHEAD_NS (5 * CLOCK_NSEC_PER_MSEC)

uint64_t reporter_apart(const struct reporter *r)
{
	uint64_t events = 0;

	for (size_t i = 0; i < r->opts.nevent_types; i++)
		events |= (uint64_t)r->opts.event_types[i].apart << i;
	return events;
}

bool reporter_window_apart(const struct reporter_window *w)
{
	return w->waits || w->tables.opts.events & reporter_apart(w->r);
}

static uint64_t reporter_edge(const struct reporter_windows *list,
			      uint64_t time)
{
	const struct reporter_window *w;
	uint64_t edge = UINT64_MAX;

	TAILQ_FOREACH(w, list, entry) {
		const uint64_t edges[] = { w->begin, w->edge, w->end };

		for (size_t i = 0; reporter_window_apart(w) && i < 3; i++)
			if (edges[i] > time)
				edge = MIN(edge, edges[i]);
	}
	return edge;
}

uint64_t reporter_apart_edge(const struct reporter *r, uint64_t time)
{
	return MIN(reporter_edge(&r->windows, time),
		   reporter_edge(&r->extras, time));
}

uint64_t reporter_apart_ahead(const struct reporter *r, uint64_t time)
{
	return r->opts.waits ? time + REPORTER_AHEAD_NS : time;
}

void reporter_edges_changed(const struct reporter *r)
{
	if (r->opts.edges)
		r->opts.edges(r->opts.arg);
}

/* --- long waits, one by one ----------------------------------------------- */

/* The window of the archive's waits of a time, or NULL. */
static struct waits *reporter_waits_at(struct reporter *r, uint64_t time)
{
	struct reporter_window *w = r->store && time >= r->started
					    ? reporter_window_at(r, time)
					    : NULL;

	return w ? w->waits : NULL;
}

int reporter_add_wait(struct reporter *r, const struct reporter_trace *t,
		      const struct abi_segment *of)
{
	const struct pm_image *by = NULL;
	struct pm_image_info info, waker;
	struct waits *w = reporter_waits_at(r, t->time);

	if (!w)
		return 0;
	pm_image_info(t->image, &info);
	if (of->waker.key.tgid)
		by = pm_newest(r->opts.pm, &of->waker.key);
	if (by)
		pm_image_info(by, &waker);
	return waits_add_single(w, t, &info, of,
				by && waker.comm ? waker.comm : "");
}

void reporter_lost_waits(struct reporter *r, uint64_t time, uint64_t n)
{
	struct waits *w = reporter_waits_at(r, time);

	if (w)
		w->lost += n;
}
