// SPDX-License-Identifier: Apache-2.0
/*
 * rows: the table as data, for programs that print it in their own form; see
 * reporter/query/query.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/nodes.h"

/* The row of a name, and the value of its sample that gave the comm. */
struct row_comm {
	struct reporter_query_row *row;
	int64_t largest;
};

static const char *rows_copy(struct reporter_query_rows *rows, const char *s)
{
	return s ? arena_memdup(&rows->arena, s, strlen(s) + 1) : NULL;
}

static int rows_comm(struct nodes *ns, struct reporter_query_rows *rows,
		     struct row_comm *by_name, const struct query_sample *s,
		     struct strbuf *text)
{
	int64_t v = s->values[ns->q->selected], id;
	struct row_comm *c;

	v = v < 0 ? query_negate(v) : v;
	strbuf_reset(text);
	if (!v || !query_label_text(ns->q, s->labels, ns->label, text))
		return 0;
	id = strbuf_str(text) ? strtab_id(&ns->names, text->data) : -ENOMEM;
	if (id < 0)
		return -ENOMEM;
	c = &by_name[id];
	if (!c->row || v <= c->largest)
		return 0;
	c->largest = v;
	strbuf_reset(text);
	query_label_text(ns->q, s->labels, "comm", text);
	c->row->comm = rows_copy(rows, strbuf_str(text));
	return c->row->comm ? 0 : -ENOMEM;
}

/* Names of rows have ids already, so that the array needs no room for more. */
static int rows_comms(struct nodes *ns, struct reporter_query_rows *rows)
{
	const struct reporter_query *q = ns->q;
	struct strbuf text = STRBUF_INIT;
	struct row_comm *by_name;
	size_t i;
	int err = 0;

	by_name = calloc(ns->names.count + 1, sizeof(*by_name));
	if (!by_name)
		return -ENOMEM;
	for (i = 0; i < ns->n; i++)
		by_name[ns->items[i]->name].row = &rows->items[i];
	for (i = 0; i < q->nsamples && !err; i++)
		err = rows_comm(ns, rows, by_name, q->samples[i], &text);
	strbuf_fini(&text);
	free(by_name);
	return err;
}

static int rows_fill(struct nodes *ns, struct reporter_query_rows *rows)
{
	struct reporter_query_row *row;
	int64_t sum = 0;

	rows->items = calloc(ns->n + 1, sizeof(*rows->items));
	if (!rows->items)
		return -ENOMEM;
	for (size_t i = 0; i < ns->n; i++) {
		const struct node *n = ns->items[i];

		row = &rows->items[rows->n++];
		sum = query_saturate(sum, n->flat);
		*row = (struct reporter_query_row){
			.name = rows_copy(rows,
					  strtab_str(&ns->names, n->name)),
			.mark = query_row_mark(n),
			.comm = "",
			.flat = n->flat,
			.cum = n->cum,
			.sum = sum,
		};
		if (!row->name)
			return -ENOMEM;
	}
	return ns->kind == NODE_LABEL ? rows_comms(ns, rows) : 0;
}

int reporter_query_rows(struct reporter_query *q,
			const struct reporter_query_table *t,
			struct reporter_query_rows *rows)
{
	struct nodes ns;
	int err = nodes_make(&ns, q, t->by, t->least);

	*rows = (struct reporter_query_rows){
		.q = q,
		.total = ns.total,
		.begin = q->begin,
		.end = q->end,
	};
	arena_init(&rows->arena);
	if (!err) {
		nodes_sort(&ns, t->cum);
		if (t->top)
			nodes_top(&ns, t->top);
		err = nodes_mark(&ns);
	}
	if (!err) {
		rows->unit = query_rows_unit(&ns);
		err = rows_fill(&ns, rows);
	}
	nodes_fini(&ns);
	return err;
}

void reporter_query_rows_fini(struct reporter_query_rows *rows)
{
	free(rows->items);
	arena_fini(&rows->arena);
	*rows = (struct reporter_query_rows){ .q = NULL };
}

void reporter_query_rows_value(const struct reporter_query_rows *rows,
			       int64_t v, struct strbuf *out)
{
	const struct reporter_query *q = rows->q;

	query_value(out, v, query_text(q, q->types[q->selected].unit),
		    rows->unit);
}

void reporter_query_rows_percent(const struct reporter_query_rows *rows,
				 int64_t v, struct strbuf *out)
{
	query_percent(out, v, rows->total);
}

void reporter_query_rows_type(const struct reporter_query_rows *rows,
			      struct strbuf *out)
{
	const struct reporter_query *q = rows->q;
	const char *type = query_text(q, q->types[q->selected].type);

	text_add(out, type, strlen(type));
}
