// SPDX-License-Identifier: Apache-2.0
/*
 * wait: see tracehandler/wait.h. Samples come nearly in the order of their times,
 * so the position of a new one is found from the tail in a step or two.
 */
#include <string.h>

#include "base/base.h"
#include "tracehandler/wait.h"

void trace_waits_init(struct trace_waits *ws, unsigned int wait_ms,
		      struct trace_stats *stats)
{
	TAILQ_INIT(&ws->list);
	ws->wait_ns = wait_ms ? wait_ms * CLOCK_NSEC_PER_MSEC : UINT64_MAX;
	ws->bytes = 0;
	ws->answered = false;
	ws->due = UINT64_MAX;
	ws->stats = stats;
}

void trace_waits_add(struct trace_waits *ws, struct trace_wait *w)
{
	struct trace_wait *at = TAILQ_LAST(&ws->list, trace_wait_list);

	while (at && at->time > w->time)
		at = TAILQ_PREV(at, trace_wait_list, node);
	if (at)
		TAILQ_INSERT_AFTER(&ws->list, at, w, node);
	else
		TAILQ_INSERT_HEAD(&ws->list, w, node);
	ws->bytes += w->bytes;
	ws->stats->waiting_bytes += w->bytes;
	ws->stats->waiting++;
}

static void trace_waits_remove(struct trace_waits *ws, struct trace_wait *w)
{
	TAILQ_REMOVE(&ws->list, w, node);
	ws->bytes -= w->bytes;
	ws->stats->waiting_bytes -= w->bytes;
	ws->stats->waiting--;
}

uint64_t trace_waits_oldest(const struct trace_waits *ws)
{
	const struct trace_wait *w = TAILQ_FIRST(&ws->list);

	return w ? w->time : UINT64_MAX;
}

/*
 * After stages have run, registers of other processes are below the stack pointer.
 * They may hold secrets and must not be in a core dump of profd. The frames of the
 * stages take less than this.
 */
#define WAIT_WIPE_BYTES 8192

static __attribute__((noinline)) void trace_waits_wipe(void)
{
	uint8_t below[WAIT_WIPE_BYTES];

	explicit_bzero(below, sizeof(below));
}

/*
 * A wait counts from the first tick that sees it, not from the sample: after
 * the loop was blocked, names still get their time. 'now' 0: no tick.
 */
static void trace_waits_check(struct trace_waits *ws, uint64_t now)
{
	struct trace_wait *w, *next;
	bool over;

	if (now)
		ws->due = UINT64_MAX;
	for (w = TAILQ_FIRST(&ws->list); w; w = next) {
		next = TAILQ_NEXT(w, node);
		if (now && !w->deadline)
			w->deadline = now + ws->wait_ns;
		over = w->kind->over(w);
		if (!over && (!now || now < w->deadline)) {
			if (now)
				ws->due = MIN(ws->due, w->deadline);
			continue;
		}
		trace_waits_remove(ws, w);
		w->kind->end(w, over);
	}
	trace_waits_wipe();
}

void trace_waits_tick(struct trace_waits *ws, uint64_t now)
{
	if (ws->wait_ns != UINT64_MAX)
		trace_waits_check(ws, now);
	else if (ws->answered)
		trace_waits_check(ws, 0);
	ws->answered = false;
}

void trace_waits_answered(struct trace_waits *ws)
{
	if (ws->wait_ns != UINT64_MAX)
		trace_waits_check(ws, 0);
	else
		ws->answered = true;
}

void trace_waits_limit(struct trace_waits *ws, size_t bytes)
{
	struct trace_wait *w;

	while (ws->bytes > bytes) {
		w = TAILQ_FIRST(&ws->list);
		trace_waits_remove(ws, w);
		w->kind->end(w, w->kind->over(w));
	}
	trace_waits_wipe();
}

void trace_waits_drop(struct trace_waits *ws, uint32_t event)
{
	struct trace_wait *w, *next;

	for (w = TAILQ_FIRST(&ws->list); w; w = next) {
		next = TAILQ_NEXT(w, node);
		if (w->event != event)
			continue;
		trace_waits_remove(ws, w);
		w->kind->drop(w);
	}
}
