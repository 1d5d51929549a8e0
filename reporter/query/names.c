// SPDX-License-Identifier: Apache-2.0
/* names: what samples, labels and frames are called; see reporter/query/model.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

/* The name in brackets, as of code without a name. */
static void name_of_mapping(const struct reporter_query *q, uint32_t mapping,
			    struct strbuf *out)
{
	const char *file = "", *slash;

	if (mapping != QUERY_NONE)
		file = query_text(q, q->mappings[mapping]->file);
	slash = strrchr(file, '/');
	if (slash && slash[1])
		file = slash + 1;
	strbuf_printf(out, *file ? "[%s]" : "<unknown>", file);
}

const struct query_function *query_function_of(const struct reporter_query *q,
					       const struct query_location *l,
					       uint32_t line)
{
	return line < l->nlines && l->lines[line].function != QUERY_NONE
		       ? q->functions[l->lines[line].function]
		       : NULL;
}

uint32_t query_lines(const struct query_location *l)
{
	return MAX(l->nlines, 1U);
}

size_t *query_first_lines(const struct reporter_query *q)
{
	size_t *first = calloc(q->nlocations + 1, sizeof(*first));

	for (size_t i = 0; first && i < q->nlocations; i++)
		first[i + 1] = first[i] + query_lines(q->locations[i]);
	return first;
}

bool query_is_zero(const struct reporter_query *q, const struct query_sample *s)
{
	for (size_t i = 0; i < q->ntypes; i++)
		if (s->values[i])
			return false;
	return true;
}

void query_frame_name(const struct reporter_query *q,
		      const struct query_location *l, uint32_t line,
		      struct strbuf *out)
{
	const struct query_function *f = query_function_of(q, l, line);

	if (f && f->name)
		strbuf_puts(out, query_text(q, f->name));
	else
		name_of_mapping(q, l->mapping, out);
}

bool query_label_text(const struct reporter_query *q,
		      const struct query_labels *labels, const char *key,
		      struct strbuf *out)
{
	const struct query_label *l;
	bool found = false;

	for (uint32_t i = 0; i < labels->n; i++) {
		l = &labels->items[i];
		if (strcmp(query_text(q, l->key), key) != 0)
			continue;
		if (found)
			strbuf_puts(out, ",");
		found = true;
		if (l->str)
			strbuf_puts(out, query_text(q, l->str));
		else
			strbuf_printf(out, "%" PRId64 "%s", l->num,
				      query_text(q, (uint32_t)l->unit));
	}
	return found;
}

bool query_is_mark(const struct reporter_query *q,
		   const struct query_location *l)
{
	const char *name;

	if (l->mapping != QUERY_NONE || l->nlines != 1 ||
	    l->lines[0].function == QUERY_NONE)
		return false;
	name = query_text(q, q->functions[l->lines[0].function]->name);
	return *name == '[' && name[strlen(name) - 1] == ']';
}

bool query_is_base(const struct reporter_query *q, const struct query_sample *s)
{
	for (uint32_t i = 0; i < s->labels->n; i++)
		if (s->labels->items[i].key == q->base_key &&
		    s->labels->items[i].str == q->base_value)
			return true;
	return false;
}

int64_t query_total(const struct reporter_query *q)
{
	int64_t all = 0, base = 0, v;

	for (size_t i = 0; i < q->nsamples; i++) {
		const struct query_sample *s = q->samples[i];

		v = s->values[q->selected];
		v = v < 0 ? query_negate(v) : v;
		all = query_saturate(all, v);
		if (query_is_base(q, s))
			base = query_saturate(base, v);
	}
	return base ? base : all;
}

int reporter_query_select(struct reporter_query *q, const char *type)
{
	size_t i, n = q->ntypes;
	char *end;

	for (i = 0; i < n; i++)
		if (type ? !strcmp(query_text(q, q->types[i].type), type)
			 : q->default_type &&
				    q->types[i].type == q->default_type)
			break;
	if (i == n && !type)
		i = n ? n - 1 : 0;
	if (i == n && type && *type >= '0' && *type <= '9') {
		errno = 0;
		i = strtoul(type, &end, 10);
		if (*end || errno)
			i = n;
	}
	if (i >= n)
		return -ENOENT;
	q->selected = i;
	return 0;
}

void reporter_query_types(const struct reporter_query *q, struct strbuf *out)
{
	for (size_t i = 0; i < q->ntypes; i++) {
		strbuf_puts(out, i ? ", " : "");
		text_add(out, query_text(q, q->types[i].type),
			 strlen(query_text(q, q->types[i].type)));
	}
}
