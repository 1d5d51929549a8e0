// SPDX-License-Identifier: Apache-2.0
/*
 * wait: traces that are not whole yet. The list is sorted by sample time, so
 * that its head tells what must not be forgotten yet; samples come nearly in
 * that order, so a place is found from the tail in a step or two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/handler.h"

static void trace_wait_insert(struct trace_handler *th, struct trace_wait *w)
{
	struct trace_wait *at = th->tail;

	while (at && at->head.time > w->head.time)
		at = at->prev;
	w->prev = at;
	w->next = at ? at->next : th->head;
	if (w->prev)
		w->prev->next = w;
	else
		th->head = w;
	if (w->next)
		w->next->prev = w;
	else
		th->tail = w;
	th->stats.waiting_bytes += sizeof(*w) + w->len;
	th->stats.waiting++;
}

static void trace_wait_remove(struct trace_handler *th, struct trace_wait *w)
{
	if (w->prev)
		w->prev->next = w->next;
	else
		th->head = w->next;
	if (w->next)
		w->next->prev = w->prev;
	else
		th->tail = w->prev;
	th->stats.waiting_bytes -= sizeof(*w) + w->len;
	th->stats.waiting--;
}

static struct trace_wait *trace_wait_new(struct trace_handler *th,
					 const struct abi_sample *head,
					 struct pm_image *image, size_t nframes)
{
	size_t len = nframes * sizeof(struct trace_frame *);
	struct trace_wait *w = malloc(sizeof(*w) + len);

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->head = *head;
	w->image = image;
	w->nframes = nframes;
	w->len = len;
	w->deadline = th->deadline;
	return w;
}

int trace_wait_names(struct trace_handler *th, const struct abi_sample *head,
		     struct pm_image *image)
{
	struct trace_wait *w = trace_wait_new(th, head, image, th->nframes);

	if (!w)
		return -ENOMEM;
	memcpy(w->frames, th->frames, w->len);
	trace_wait_insert(th, w);
	return 0;
}

static void trace_wait_for(struct trace_handler *th, struct trace_wait *w,
			   struct trace_table *table)
{
	if (table) {
		trace_table_ref(table);
		trace_tables_want(&th->tables, table);
	}
	trace_table_put(w->table);
	w->table = table;
}

static void trace_wait_ask(void *arg, const struct pm_mapping *map)
{
	struct trace_handler *th = arg;

	if (trace_tables_may(map->exe))
		trace_tables_get(&th->tables, map->exe);
}

/* For 'table', whatever is mapped later; and for all the others at once. */
static int trace_wait_table(struct trace_handler *th, struct trace_wait *w,
			    struct trace_table *table)
{
	trace_wait_for(th, w, table);
	if (w->view)
		return 0;
	w->view = pm_view_new(th->opts.pm, w->image, w->head.time);
	if (!w->view)
		return -ENOMEM;
	pm_view_each(w->view, trace_wait_ask, th);
	return 0;
}

static void trace_wait_free(struct trace_wait *w)
{
	pm_view_free(w->view);
	trace_table_put(w->table);
	vault_give(w->raw);
	free(w);
}

int trace_wait_raw(struct trace_handler *th, const struct trace_record *rec,
		   const void *buf, struct pm_image *image,
		   struct trace_table *late)
{
	struct trace_wait *w = trace_wait_new(th, &rec->head, image, 0);

	if (!w)
		return -ENOMEM;
	w->len = rec->head.size;
	w->raw = vault_take(th->vault, w->len);
	if (!w->raw || (late && trace_wait_table(th, w, late))) {
		trace_wait_free(w);
		return -ENOMEM;
	}
	memcpy(w->raw, buf, w->len);
	trace_wait_insert(th, w);
	return 0;
}

/* What it waited for came, or no more is waited. May wait on for more. */
static void trace_wait_raw_end(struct trace_handler *th, struct trace_wait *w,
			       bool over)
{
	struct trace_take take = { .image = w->image,
				   .view = w->view,
				   .hurry = !over && w->table };
	struct trace_record rec;

	if (trace_record_parse(w->raw, w->len, &rec) == 0) {
		/* It may wait for names now, but no longer in all. */
		th->deadline = w->deadline;
		take.rec = &rec;
		if (trace_take(th, &take) == -EAGAIN) {
			if (!trace_wait_table(th, w, take.late)) {
				trace_wait_insert(th, w);
				w = NULL;
			} else {
				th->stats.nomem++;
			}
		}
		th->deadline = 0;
	}
	if (w)
		trace_wait_free(w);
}

/* The end of a wait, whatever is there by now. */
static void trace_wait_end(struct trace_handler *th, struct trace_wait *w,
			   bool over)
{
	trace_wait_remove(th, w);
	if (w->raw) {
		trace_wait_raw_end(th, w, over);
		return;
	}
	th->stats.names_late += !over;
	trace_deliver(th, &w->head, w->image, w->frames, w->nframes);
	trace_wait_free(w);
}

static bool trace_wait_over(struct trace_wait *w)
{
	if (w->table)
		return w->table->state != TRACE_TABLE_ASKED;
	if (w->raw)
		return !pm_image_provisional(w->image);
	while (w->nknown < w->nframes && !w->frames[w->nknown]->pending)
		w->nknown++;
	return w->nknown == w->nframes;
}

/*
 * A wait counts from the first tick that sees it, not from the sample: after
 * a loop that stood still, names get their time all the same. 'now' 0: no
 * time has passed.
 */
void trace_wait_check(struct trace_handler *th, uint64_t now)
{
	struct trace_wait *w, *next;
	bool over;

	for (w = th->head; w; w = next) {
		next = w->next;
		if (now && !w->deadline)
			w->deadline =
				now + th->opts.wait_ms * CLOCK_NSEC_PER_MSEC;
		over = trace_wait_over(w);
		if (over || (now && now >= w->deadline))
			trace_wait_end(th, w, over);
	}
}

void trace_wait_drop(struct trace_handler *th)
{
	struct trace_wait *w;

	while ((w = th->head)) {
		trace_wait_remove(th, w);
		for (size_t i = 0; i < w->nframes; i++)
			trace_frame_put(&th->cache, w->frames[i]);
		trace_wait_free(w);
	}
}

void trace_wait_limit(struct trace_handler *th, size_t bytes)
{
	while (th->stats.waiting_bytes > bytes) {
		bool over = trace_wait_over(th->head);

		trace_wait_end(th, th->head, over);
	}
}
