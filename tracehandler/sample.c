// SPDX-License-Identifier: Apache-2.0
/* sample: see tracehandler/sample.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracehandler/sample.h"

/* A record that waits, for its image or for a table. */
struct trace_raw {
	struct trace_wait wait;
	struct trace_samples *owner;
	struct pm_image *image;
	struct pm_view *view; /* what was mapped then; NULL: as of now */
	struct trace_table *table; /* a reference; NULL: it waits for the image */
	uint8_t *bytes; /* in the vault */
	size_t len;
};

int trace_samples_init(struct trace_samples *s, const struct trace_opts *opts,
		       struct trace_stacks *stacks, struct trace_waits *waits,
		       struct trace_stats *stats)
{
	s->opts = opts;
	s->stacks = stacks;
	s->waits = waits;
	s->stats = stats;
	return vault_new(&s->vault) ? -ENOMEM : 0;
}

void trace_samples_fini(struct trace_samples *s)
{
	vault_free(s->vault);
}

static int trace_samples_take(struct trace_samples *s, struct trace_take *take)
{
	if (!s->opts->selected_only || pm_image_selected(take->image))
		return trace_stacks_take(s->stacks, take);
	s->stats->unselected++;
	return 0;
}

/* --- records that wait ------------------------------------------------------ */

static void trace_raw_free(struct trace_raw *r)
{
	pm_view_free(r->view);
	trace_table_put(r->table);
	vault_give(r->bytes);
	free(r);
}

/*
 * For 'table', whatever is mapped later. At the first time all other tables of
 * the image are requested, too. 0 or -ENOMEM.
 */
static int trace_raw_want(struct trace_raw *r, struct trace_table *table)
{
	struct trace_samples *s = r->owner;

	trace_stacks_want(s->stacks, table);
	trace_table_ref(table);
	trace_table_put(r->table);
	r->table = table;
	if (r->view)
		return 0;
	r->view = pm_view_new(s->opts->pm, r->image, r->wait.time);
	if (!r->view)
		return -ENOMEM;
	trace_stacks_ask(s->stacks, r->view);
	return 0;
}

static bool trace_raw_over(struct trace_wait *w)
{
	struct trace_raw *r = container_of(w, struct trace_raw, wait);

	if (r->table)
		return r->table->state != TRACE_TABLE_ASKED;
	return !pm_image_provisional(r->image);
}

/*
 * The deadline is that of the whole sample: it holds for another table, and for
 * names.
 */
static void trace_raw_end(struct trace_wait *w, bool over)
{
	struct trace_raw *r = container_of(w, struct trace_raw, wait);
	struct trace_take take = {
		.image = r->image,
		.view = r->view,
		.deadline = w->deadline,
		.hurry = !over && r->table,
	};
	struct trace_record rec;

	take.rec = &rec;
	if (trace_record_parse(r->bytes, r->len, &rec) ||
	    trace_samples_take(r->owner, &take) != -EAGAIN) {
		trace_raw_free(r);
	} else if (trace_raw_want(r, take.late)) {
		r->owner->stats->nomem++;
		trace_raw_free(r);
	} else {
		trace_waits_add(r->owner->waits, w);
	}
}

static void trace_raw_drop(struct trace_wait *w)
{
	trace_raw_free(container_of(w, struct trace_raw, wait));
}

static const struct trace_wait_kind trace_raw_kind = {
	trace_raw_over,
	trace_raw_end,
	trace_raw_drop,
};

/* For the table it was 'late' for, or its image. 0 or -ENOMEM, counted. */
static int trace_samples_wait(struct trace_samples *s,
			      const struct trace_take *take, const void *buf)
{
	struct trace_raw *r = calloc(1, sizeof(*r));

	if (!r)
		goto nomem;
	r->owner = s;
	r->image = take->image;
	r->len = take->rec->head.size;
	r->wait.kind = &trace_raw_kind;
	r->wait.time = take->rec->head.time;
	r->wait.bytes = sizeof(*r) + r->len;
	r->bytes = vault_take(s->vault, r->len);
	if (!r->bytes || (take->late && trace_raw_want(r, take->late)))
		goto free;
	memcpy(r->bytes, buf, r->len);
	trace_waits_add(s->waits, &r->wait);
	return 0;
free:
	trace_raw_free(r);
nomem:
	s->stats->nomem++;
	return -ENOMEM;
}

int trace_samples_put(struct trace_samples *s, const void *buf, size_t len)
{
	struct trace_take take = { 0 };
	struct trace_record rec;
	int err;

	err = trace_record_parse(buf, len, &rec);
	if (err) {
		s->stats->bad_records++;
		return err;
	}
	s->stats->samples++;
	take.rec = &rec;
	take.image = pm_image_get(s->opts->pm, &rec.head.key, rec.head.time);
	if (!take.image) {
		s->stats->nomem++;
		return -ENOMEM;
	}
	err = -EAGAIN;
	if (!pm_image_provisional(take.image))
		err = trace_samples_take(s, &take);
	return err == -EAGAIN ? trace_samples_wait(s, &take, buf) : err;
}
