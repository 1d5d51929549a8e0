// SPDX-License-Identifier: Apache-2.0
/*
 * write_speedscope: the format of speedscope, "sampled" profiles, one for each sample
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

/* The frames: one for each line of each location. */
static void speedscope_frames(struct query_out *o,
			      const struct reporter_query *q)
{
	struct strbuf name = STRBUF_INIT;
	const struct query_function *f;
	const struct query_location *l;
	const char *comma = "";

	for (size_t i = 0; i < q->nlocations; i++) {
		l = q->locations[i];
		for (uint32_t k = 0; k < query_lines(l); k++) {
			strbuf_reset(&name);
			query_frame_name(q, l, k, &name);
			strbuf_printf(&o->text, "%s\n{\"name\":", comma);
			query_json_string(o, strbuf_str(&name));
			comma = ",";
			f = query_function_of(q, l, k);
			if (f && f->file) {
				strbuf_puts(&o->text, ",\"file\":");
				query_json_string(o, query_text(q, f->file));
			}
			if (f && l->lines[k].line > 0)
				strbuf_printf(&o->text, ",\"line\":%" PRId64,
					      l->lines[k].line);
			strbuf_puts(&o->text, "}");
			o->failed |= name.failed;
			query_flush(o, SPEEDSCOPE_FLUSH);
		}
	}
	strbuf_fini(&name);
}

static void speedscope_stack(struct query_out *o,
			     const struct reporter_query *q,
			     const struct query_stack *s, const size_t *first)
{
	const char *comma = "";

	strbuf_puts(&o->text, "[");
	for (uint32_t i = s->n; i--;) {
		uint32_t l = s->locations[i];

		for (uint32_t k = query_lines(q->locations[l]); k--;) {
			strbuf_printf(&o->text, "%s%zu", comma, first[l] + k);
			comma = ",";
		}
	}
	strbuf_puts(&o->text, "]");
}

static void speedscope_type(struct query_out *o, const struct reporter_query *q,
			    size_t type, const size_t *first)
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
		speedscope_stack(o, q, q->samples[i]->stack, first);
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

int query_write_speedscope(struct reporter_query *q, struct sink *sink)
{
	struct query_out o = { .sink = sink, .text = STRBUF_INIT };
	size_t *first = query_first_lines(q);
	size_t i;

	if (!first)
		return -ENOMEM;
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
		speedscope_type(&o, q, i, first);
	}
	strbuf_puts(&o.text, "]}\n");
	query_flush(&o, 0);
	strbuf_fini(&o.text);
	free(first);
	return o.failed ? -ENOMEM : 0;
}
