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
	th->wait_bytes += sizeof(*w) + w->len;
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
	th->wait_bytes -= sizeof(*w) + w->len;
	th->stats.waiting--;
}

static int trace_wait_add(struct trace_handler *th,
			  const struct abi_sample *head, struct pm_image *image,
			  size_t nframes, const void *data, size_t len)
{
	struct trace_wait *w = malloc(sizeof(*w) + len);

	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->head = *head;
	w->image = image;
	w->nframes = nframes;
	w->len = len;
	w->deadline = th->deadline;
	memcpy(&w->data, data, len);
	trace_wait_insert(th, w);
	return 0;
}

int trace_wait_names(struct trace_handler *th, const struct abi_sample *head,
		     struct pm_image *image)
{
	return trace_wait_add(th, head, image, th->nframes, th->frames,
			      th->nframes * sizeof(th->frames[0]));
}

int trace_wait_image(struct trace_handler *th, const struct trace_record *rec,
		     const void *buf, struct pm_image *image)
{
	return trace_wait_add(th, &rec->head, image, 0, buf, rec->head.size);
}

/* The end of a wait, whatever is there by now. */
static void trace_wait_end(struct trace_handler *th, struct trace_wait *w)
{
	struct trace_record rec;

	trace_wait_remove(th, w);
	if (w->nframes) {
		th->stats.names_late += w->nknown < w->nframes;
		trace_deliver(th, &w->head, w->image, w->data.frames,
			      w->nframes);
	} else if (!trace_record_parse(w->data.raw, w->len, &rec)) {
		/* It may wait for names now, but no longer in all. */
		th->deadline = w->deadline;
		trace_take(th, &rec, w->image);
		th->deadline = 0;
	}
	free(w);
}

static bool trace_wait_over(struct trace_wait *w)
{
	struct pm_image_info info;

	if (!w->nframes) {
		pm_image_info(w->image, &info);
		return !info.provisional;
	}
	while (w->nknown < w->nframes && !w->data.frames[w->nknown]->pending)
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

	for (w = th->head; w; w = next) {
		next = w->next;
		if (now && !w->deadline)
			w->deadline =
				now + th->opts.wait_ms * CLOCK_NSEC_PER_MSEC;
		if (trace_wait_over(w) || (now && now >= w->deadline))
			trace_wait_end(th, w);
	}
}

void trace_wait_limit(struct trace_handler *th, size_t bytes)
{
	while (th->wait_bytes > bytes) {
		trace_wait_over(th->head);
		trace_wait_end(th, th->head);
	}
}
