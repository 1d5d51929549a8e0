// SPDX-License-Identifier: Apache-2.0
/*
 * speedscope: the format of speedscope, "sampled" profiles, one for each sample
 * type (https://www.speedscope.app/file-format-schema.json).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

#define SPEEDSCOPE_FLUSH 65536

/* Its units, by the sample type's; all others are "none". */
static const struct {
	const char *unit, *name;
} speedscope_units[] = {
	{ "nanoseconds", "nanoseconds" },
	{ "microseconds", "microseconds" },
	{ "milliseconds", "milliseconds" },
	{ "seconds", "seconds" },
	{ "bytes", "bytes" },
};

static void speedscope_frame(struct query_out *o,
			     const struct reporter_query *q,
			     const struct query_location *l,
			     const struct query_function *f, const char *end)
{
	struct strbuf name = STRBUF_INIT;

	query_frame_name(q, l, 0, &name);
	strbuf_puts(&o->text, "\n{\"name\":");
	query_json_string(o, strbuf_str(&name));
	if (f && f->file) {
		strbuf_puts(&o->text, ",\"file\":");
		query_json_string(o, query_text(q, f->file));
	}
	if (f && f->start_line > 0)
		strbuf_printf(&o->text, ",\"line\":%" PRId64, f->start_line);
	strbuf_puts(&o->text, end);
	o->failed |= name.failed;
	strbuf_fini(&name);
	query_flush(o, SPEEDSCOPE_FLUSH);
}

/*
 * A frame for each function, with the line where it begins: a row of speedscope's tables
 * is a frame. Behind them is code without a function, of each mapping and of none.
 */
static void speedscope_frames(struct query_out *o,
			      const struct reporter_query *q)
{
	struct query_location *l = calloc(1, sizeof(*l) + sizeof(*l->lines));
	uint32_t i;

	if (!l) {
		o->failed = true;
		return;
	}
	l->mapping = QUERY_NONE;
	l->nlines = 1;
	for (i = 0; i < q->nfunctions; i++) {
		l->lines[0].function = i;
		speedscope_frame(o, q, l, q->functions[i], "},");
	}
	l->nlines = 0;
	for (i = 0; i < q->nmappings; i++) {
		l->mapping = i;
		speedscope_frame(o, q, l, NULL, "},");
	}
	l->mapping = QUERY_NONE;
	speedscope_frame(o, q, l, NULL, "}");
	free(l);
}

/* The index of its frame. */
static size_t speedscope_index(const struct reporter_query *q,
			       const struct query_location *l, uint32_t line)
{
	const struct query_function *f = query_function_of(q, l, line);

	if (f && f->name)
		return l->lines[line].function;
	return q->nfunctions +
	       (l->mapping == QUERY_NONE ? q->nmappings : l->mapping);
}

static void speedscope_stack(struct query_out *o,
			     const struct reporter_query *q,
			     const struct query_stack *s)
{
	const char *comma = "";

	strbuf_puts(&o->text, "[");
	for (uint32_t i = s->n; i--;) {
		const struct query_location *l = q->locations[s->locations[i]];

		for (uint32_t k = query_lines(l); k--;) {
			strbuf_printf(&o->text, "%s%zu", comma,
				      speedscope_index(q, l, k));
			comma = ",";
		}
	}
	strbuf_puts(&o->text, "]");
}

static void speedscope_type(struct query_out *o, const struct reporter_query *q,
			    size_t type)
{
	const char *unit = query_text(q, q->types[type].unit), *as = "none";
	const char *comma = "";
	int64_t sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speedscope_units); i++)
		if (!strcmp(unit, speedscope_units[i].unit))
			as = speedscope_units[i].name;
	strbuf_puts(&o->text, "{\"type\":\"sampled\",\"name\":");
	query_json_string(o, query_text(q, q->types[type].type));
	strbuf_printf(&o->text,
		      ",\"unit\":\"%s\",\"startValue\":0,\"samples\":[", as);
	for (i = 0; i < q->nsamples; i++) {
		if (q->samples[i]->values[type] <= 0)
			continue;
		strbuf_printf(&o->text, "%s\n", comma);
		comma = ",";
		speedscope_stack(o, q, q->samples[i]->stack);
		query_flush(o, SPEEDSCOPE_FLUSH);
	}
	strbuf_puts(&o->text, "],\"weights\":[");
	comma = "";
	for (i = 0; i < q->nsamples; i++) {
		int64_t v = q->samples[i]->values[type];

		if (v <= 0)
			continue;
		strbuf_printf(&o->text, "%s%" PRId64, comma, v);
		comma = ",";
		sum = query_saturate(sum, v);
		query_flush(o, SPEEDSCOPE_FLUSH);
	}
	strbuf_printf(&o->text, "],\"endValue\":%" PRId64 "}", sum);
}

int write_speedscope(struct reporter_query *q, struct sink *sink)
{
	struct query_out o = { .sink = sink, .text = STRBUF_INIT };
	size_t i;

	strbuf_puts(
		&o.text,
		"{\"$schema\":\"https://www.speedscope.app/"
		"file-format-schema.json\",\"exporter\":\"profd " PROFD_VERSION
		"\",\"name\":\"profd\","
		"\"activeProfileIndex\":");
	strbuf_printf(&o.text, "%zu,\"shared\":{\"frames\":[", q->selected);
	speedscope_frames(&o, q);
	strbuf_puts(&o.text, "]},\"profiles\":[");
	for (i = 0; i < q->ntypes; i++) {
		strbuf_puts(&o.text, i ? "," : "");
		speedscope_type(&o, q, i);
	}
	strbuf_puts(&o.text, "]}\n");
	query_flush(&o, 0);
	strbuf_fini(&o.text);
	return o.failed ? -ENOMEM : 0;
}
