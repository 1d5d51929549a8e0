// SPDX-License-Identifier: Apache-2.0
/* table: rows of text or JSON; see reporter/query/query.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reporter/query/nodes.h"

/* Ends the line that began at 'start': cut to 'width' characters, with an ellipsis. */
void query_row_end(struct strbuf *out, size_t start, size_t width)
{
	size_t n = 0, at = start, last = start, len;
	uint32_t cp;

	while (width && !out->failed && at < out->len) {
		len = text_decode((unsigned char *)out->data + at,
				  out->len - at, &cp);
		if (n == width - 1)
			last = at;
		if (n++ == width) {
			out->len = last;
			strbuf_puts(out, "\u2026");
			break;
		}
		at += len ? len : 1;
	}
	strbuf_puts(out, "\n");
}

static void table_text(struct strbuf *out, const char *s)
{
	text_add(out, s, strlen(s));
}

static void table_time(const struct reporter_query *q, struct strbuf *out)
{
	time_t t = q->begin / 1000000000;
	char text[64];
	struct tm tm;

	if (!q->begin || !localtime_r(&t, &tm))
		return;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm);
	strbuf_printf(out, "Time: %s\n", text);
}

/* The head: what was measured, when, for how long, and the comments. */
static void table_head(const struct nodes *ns, const char *as,
		       struct strbuf *out)
{
	const struct reporter_query *q = ns->q;
	const char *unit = query_text(q, q->types[q->selected].unit);
	int64_t length = query_saturate(q->end, query_negate(q->begin));
	size_t i;

	for (i = 0; i < q->ncomments; i++) {
		table_text(out, query_text(q, q->comments[i].text));
		if (q->comments[i].counted)
			strbuf_printf(out, ": %" PRIu64, q->comments[i].count);
		strbuf_puts(out, "\n");
	}
	strbuf_puts(out, "Type: ");
	table_text(out, query_text(q, q->types[q->selected].type));
	strbuf_puts(out, "\n");
	table_time(q, out);
	if (q->begin && length > 0) {
		strbuf_puts(out, "Duration: ");
		query_value(out, length, "nanoseconds", NULL);
		strbuf_puts(out, "\n");
	}
	strbuf_puts(out, "Total: ");
	query_value(out, ns->total, unit, as);
	strbuf_puts(out, "\n");
	if (q->hidden) {
		strbuf_puts(out, "Hidden: ");
		reporter_query_hidden(q, out);
		strbuf_puts(out, " (--all shows them)\n");
	}
	if (ns->dropped)
		strbuf_printf(out,
			      "Rows below the least share, not shown: %zu\n",
			      ns->dropped);
}

const char *query_rows_unit(const struct nodes *ns)
{
	const struct reporter_query *q = ns->q;
	int64_t least = 0;

	for (size_t i = 0; i < ns->n; i++) {
		int64_t v = ns->items[i]->flat ? ns->items[i]->flat
					       : ns->items[i]->cum;

		v = v < 0 ? query_negate(v) : v;
		if (v && (!least || v < least))
			least = v;
	}
	return query_unit(least, ns->total,
			  query_text(q, q->types[q->selected].unit));
}

const char *query_row_mark(const struct node *n)
{
	if (!n->inlined)
		return "";
	return n->called ? " (partial-inline)" : " (inline)";
}

/* Right-aligned in ten columns. */
static void table_value(const struct nodes *ns, int64_t v, const char *as,
			struct strbuf *out)
{
	const struct reporter_query *q = ns->q;
	struct strbuf cell = STRBUF_INIT;

	query_value(&cell, v, query_text(q, q->types[q->selected].unit), as);
	strbuf_printf(out, "%10s", cell.failed ? "" : strbuf_str(&cell));
	out->failed |= cell.failed;
	strbuf_fini(&cell);
}

static void table_row(const struct nodes *ns, const struct node *n, int64_t sum,
		      const char *as, size_t width, struct strbuf *out)
{
	size_t start = out->len;

	table_value(ns, n->flat, as, out);
	strbuf_puts(out, " ");
	query_percent(out, n->flat, ns->total);
	strbuf_puts(out, " ");
	query_percent(out, sum, ns->total);
	strbuf_puts(out, " ");
	table_value(ns, n->cum, as, out);
	strbuf_puts(out, " ");
	query_percent(out, n->cum, ns->total);
	strbuf_puts(out, "  ");
	table_text(out, strtab_str(&ns->names, n->name));
	strbuf_puts(out, query_row_mark(n));
	query_row_end(out, start, width);
}

static void table_json(const struct nodes *ns, const struct node *n,
		       struct strbuf *out)
{
	const struct reporter_query *q = ns->q;
	const char *name = strtab_str(&ns->names, n->name);
	const char *unit = query_text(q, q->types[q->selected].unit);

	strbuf_puts(out, "{\"name\":");
	text_add_json_string(out, name);
	strbuf_printf(out,
		      ",\"flat\":%" PRId64 ",\"cum\":%" PRId64
		      ",\"total\":%" PRId64 ",\"unit\":",
		      n->flat, n->cum, ns->total);
	text_add_json_string(out, unit);
	strbuf_puts(out, "}\n");
}

int reporter_query_table(struct reporter_query *q,
			 const struct reporter_query_table *t,
			 struct strbuf *out)
{
	struct nodes ns;
	const char *as;
	int64_t sum = 0;
	int err = nodes_make(&ns, q, t->by, t->least);
	size_t i;

	if (err)
		goto out;
	nodes_sort(&ns, t->cum);
	/* The unit is that of the rows which are shown. */
	if (t->top)
		nodes_top(&ns, t->top);
	err = nodes_mark(&ns);
	if (err)
		goto out;
	as = query_rows_unit(&ns);
	if (!t->json) {
		table_head(&ns, as, out);
		strbuf_puts(out, "      flat  flat%   sum%        cum   cum%"
				 "\n");
	}
	for (i = 0; i < ns.n; i++) {
		sum = query_saturate(sum, ns.items[i]->flat);
		if (t->json)
			table_json(&ns, ns.items[i], out);
		else
			table_row(&ns, ns.items[i], sum, as, t->width, out);
	}
	if (out->failed)
		err = -ENOMEM;
out:
	nodes_fini(&ns);
	return err;
}
