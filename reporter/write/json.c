// SPDX-License-Identifier: Apache-2.0
/*
 * json: the whole profile as one object of JSON, for programs that have no reader
 * of pprof. profd(8) describes it: tables of mappings and frames, and samples that refer
 * to them by index. Text is written in pieces.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

#define JSON_FLUSH 65536

static void json_member(struct query_out *o, const char *key, const char *value)
{
	strbuf_printf(&o->text, ",\"%s\":", key);
	query_json_string(o, value);
}

static void json_types(struct query_out *o, const struct reporter_query *q)
{
	strbuf_puts(&o->text, "\"types\":[");
	for (size_t i = 0; i < q->ntypes; i++) {
		strbuf_puts(&o->text, i ? ",{\"type\":" : "{\"type\":");
		query_json_string(o, query_text(q, q->types[i].type));
		json_member(o, "unit", query_text(q, q->types[i].unit));
		strbuf_puts(&o->text, "}");
	}
	strbuf_printf(&o->text, "],\n\"default\":%zu", q->selected);
}

static void json_head(struct query_out *o, const struct reporter_query *q)
{
	strbuf_puts(&o->text, "{\"format\":\"profd\",\"version\":1,\n");
	json_types(o, q);
	strbuf_printf(&o->text,
		      ",\n\"begin_ns\":%" PRId64 ",\"end_ns\":%" PRId64
		      ",\"period\":%" PRId64,
		      q->begin, q->end, q->period);
	json_member(o, "period_type", query_text(q, q->period_type.type));
	json_member(o, "period_unit", query_text(q, q->period_type.unit));
	strbuf_puts(&o->text, ",\n\"comments\":[");
	for (size_t i = 0; i < q->ncomments; i++) {
		const struct query_comment *c = &q->comments[i];
		struct strbuf sb = STRBUF_INIT;

		strbuf_puts(&sb, query_text(q, c->text));
		if (c->counted)
			strbuf_printf(&sb, ": %" PRIu64, c->count);
		strbuf_puts(&o->text, i ? ",\n" : "\n");
		query_json_string(o, sb.failed ? "" : strbuf_str(&sb));
		o->failed |= sb.failed;
		strbuf_fini(&sb);
	}
	strbuf_puts(&o->text, "]");
}

static void json_mappings(struct query_out *o, const struct reporter_query *q)
{
	strbuf_puts(&o->text, ",\n\"mappings\":[");
	for (size_t i = 0; i < q->nmappings; i++) {
		const struct query_mapping *m = q->mappings[i];

		strbuf_puts(&o->text, i ? ",\n{\"file\":" : "\n{\"file\":");
		query_json_string(o, query_text(q, m->file));
		if (m->build_id)
			json_member(o, "build_id", query_text(q, m->build_id));
		strbuf_printf(&o->text,
			      ",\"start\":\"0x%" PRIx64
			      "\",\"limit\":\"0x%" PRIx64
			      "\",\"offset\":\"0x%" PRIx64 "\"}",
			      m->start, m->limit, m->offset);
		query_flush(o, JSON_FLUSH);
	}
	strbuf_puts(&o->text, "]");
}

/* One for each line of each location: the innermost is the first of them. */
static void json_frame(struct query_out *o, const struct reporter_query *q,
		       const struct query_location *l, uint32_t k,
		       struct strbuf *name)
{
	const struct query_function *f = query_function_of(q, l, k);

	strbuf_reset(name);
	query_frame_name(q, l, k, name);
	strbuf_puts(&o->text, "{\"function\":");
	query_json_string(o, name->failed ? "" : strbuf_str(name));
	o->failed |= name->failed;
	if (f && f->file)
		json_member(o, "file", query_text(q, f->file));
	if (f && l->lines[k].line > 0)
		strbuf_printf(&o->text, ",\"line\":%" PRId64, l->lines[k].line);
	if (l->mapping != QUERY_NONE)
		strbuf_printf(&o->text, ",\"mapping\":%" PRIu32, l->mapping);
	/* As text: a number of JSON has 53 bits in most readers. */
	if (l->address)
		strbuf_printf(&o->text, ",\"address\":\"0x%" PRIx64 "\"",
			      l->address);
	strbuf_puts(&o->text, k + 1 < l->nlines ? ",\"inlined\":true}" : "}");
}

static void json_frames(struct query_out *o, const struct reporter_query *q)
{
	struct strbuf name = STRBUF_INIT;
	const char *comma = "\n";

	strbuf_puts(&o->text, ",\n\"frames\":[");
	for (size_t i = 0; i < q->nlocations; i++)
		for (uint32_t k = 0; k < query_lines(q->locations[i]); k++) {
			strbuf_puts(&o->text, comma);
			comma = ",\n";
			json_frame(o, q, q->locations[i], k, &name);
			query_flush(o, JSON_FLUSH);
		}
	strbuf_puts(&o->text, "]");
	strbuf_fini(&name);
}

/* --- samples ---------------------------------------------------------------------- */

static void json_label(struct query_out *o, const struct reporter_query *q,
		       const struct query_label *l)
{
	if (l->str)
		query_json_string(o, query_text(q, l->str));
	else
		strbuf_printf(&o->text, "%" PRId64, l->num);
}

/* Sorted by key: several values of one are an array. */
static void json_labels(struct query_out *o, const struct reporter_query *q,
			const struct query_labels *labels)
{
	uint32_t i, n;

	strbuf_puts(&o->text, ",\"labels\":{");
	for (i = 0; i < labels->n; i += n) {
		const struct query_label *l = &labels->items[i];

		for (n = 1; i + n < labels->n && l[n].key == l->key;)
			n++;
		strbuf_puts(&o->text, i ? "," : "");
		query_json_string(o, query_text(q, l->key));
		strbuf_puts(&o->text, n > 1 ? ":[" : ":");
		for (uint32_t k = 0; k < n; k++) {
			strbuf_puts(&o->text, k ? "," : "");
			json_label(o, q, &l[k]);
		}
		strbuf_puts(&o->text, n > 1 ? "]" : "");
	}
	strbuf_puts(&o->text, "}");
}

static void json_sample(struct query_out *o, const struct reporter_query *q,
			const struct query_sample *s, const size_t *first)
{
	const char *comma = "";
	uint32_t i, k;

	strbuf_puts(&o->text, "{\"stack\":[");
	for (i = 0; i < s->stack->n; i++)
		for (k = 0;
		     k < query_lines(q->locations[s->stack->locations[i]]);
		     k++) {
			strbuf_printf(&o->text, "%s%zu", comma,
				      first[s->stack->locations[i]] + k);
			comma = ",";
		}
	strbuf_puts(&o->text, "]");
	json_labels(o, q, s->labels);
	strbuf_puts(&o->text, ",\"values\":[");
	for (i = 0; i < q->ntypes; i++)
		strbuf_printf(&o->text, i ? ",%" PRId64 : "%" PRId64,
			      s->values[i]);
	strbuf_puts(&o->text, "]}");
}

int write_json(struct reporter_query *q, struct sink *sink)
{
	struct query_out o = { .sink = sink, .text = STRBUF_INIT };
	size_t *first = query_first_lines(q);
	const char *comma = "\n";

	if (!first)
		return -ENOMEM;
	json_head(&o, q);
	json_mappings(&o, q);
	json_frames(&o, q);
	strbuf_puts(&o.text, ",\n\"samples\":[");
	for (size_t i = 0; i < q->nsamples; i++) {
		if (query_is_zero(q, q->samples[i]))
			continue;
		strbuf_puts(&o.text, comma);
		comma = ",\n";
		json_sample(&o, q, q->samples[i], first);
		query_flush(&o, JSON_FLUSH);
	}
	strbuf_puts(&o.text, "]}\n");
	query_flush(&o, 0);
	strbuf_fini(&o.text);
	free(first);
	return o.failed ? -ENOMEM : 0;
}
