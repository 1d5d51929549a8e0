// SPDX-License-Identifier: Apache-2.0
/*
 * pprof: the merged profile as pprof, with the strings that it still refers to;
 * see reporter/query/model.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/pprof.h"
#include "reporter/query/model.h"

struct write_pprof {
	struct reporter_query *q;
	struct pprof pprof;
	int64_t *strings; /* of the file, by id; 0: not written yet */
	int64_t last; /* string of the file */
	bool *unnamed; /* by mapping: it has a location without a name */
	Perftools__Profiles__ValueType types[QUERY_TYPES_MAX];
	Perftools__Profiles__ValueType *list[QUERY_TYPES_MAX];
	Perftools__Profiles__ValueType period;
	uint64_t ids[QUERY_DEPTH_MAX + REPORTER_QUERY_ROOTS_MAX];
};

/* Writes the string at its first use. */
static int64_t pprof_id(struct write_pprof *w, uint32_t string)
{
	if (string && !w->strings[string]) {
		pprof_string(&w->pprof, query_text(w->q, string));
		w->strings[string] = ++w->last;
	}
	return w->strings[string];
}

static int pprof_comments(struct write_pprof *w, int64_t **out)
{
	const struct reporter_query *q = w->q;
	struct strbuf sb = STRBUF_INIT;
	size_t i;

	*out = calloc(q->ncomments + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (i = 0; i < q->ncomments; i++) {
		strbuf_reset(&sb);
		strbuf_puts(&sb, query_text(q, q->comments[i].text));
		if (q->comments[i].counted)
			strbuf_printf(&sb, ": %" PRIu64, q->comments[i].count);
		if (!strbuf_str(&sb))
			w->pprof.err = -ENOMEM;
		else
			pprof_string(&w->pprof, strbuf_str(&sb));
		(*out)[i] = ++w->last;
	}
	strbuf_fini(&sb);
	return 0;
}

static void pprof_type(struct write_pprof *w, const struct query_type *from,
		       Perftools__Profiles__ValueType *to)
{
	perftools__profiles__value_type__init(to);
	to->type = pprof_id(w, from->type);
	to->unit = pprof_id(w, from->unit);
}

static int pprof_head(struct write_pprof *w)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	struct reporter_query *q = w->q;
	int64_t *comments;
	int err = pprof_comments(w, &comments);

	if (err)
		return err;
	for (size_t i = 0; i < q->ntypes; i++) {
		pprof_type(w, &q->types[i], &w->types[i]);
		w->list[i] = &w->types[i];
	}
	m.sample_type = w->list;
	m.n_sample_type = q->ntypes;
	if (q->period_type.type || q->period_type.unit) {
		pprof_type(w, &q->period_type, &w->period);
		m.period_type = &w->period;
	}
	m.period = q->period;
	m.time_nanos = q->begin;
	m.duration_nanos = query_saturate(q->end, query_negate(q->begin));
	m.duration_nanos =
		q->begin && m.duration_nanos > 0 ? m.duration_nanos : 0;
	m.default_sample_type = pprof_id(w, q->default_type);
	m.drop_frames = pprof_id(w, q->drop_frames);
	m.keep_frames = pprof_id(w, q->keep_frames);
	m.doc_url = pprof_id(w, q->doc_url);
	m.comment = comments;
	m.n_comment = q->ncomments;
	pprof_put(&w->pprof, PPROF_PROFILE, &m.base);
	free(comments);
	return 0;
}

/* Nor are "FILE+0x12" and "[anon]" names. */
static bool pprof_has_names(const struct write_pprof *w,
			    const struct query_location *l)
{
	for (uint32_t k = 0; k < l->nlines; k++) {
		const char *name, *at;

		if (l->lines[k].function == QUERY_NONE)
			return false;
		name = query_text(w->q,
				  w->q->functions[l->lines[k].function]->name);
		at = strstr(name, "+0x");
		if (!*name || !strcmp(name, "[anon]") ||
		    (at && at[3] &&
		     !at[3 + strspn(at + 3, "0123456789abcdef")]))
			return false;
	}
	return l->nlines > 0;
}

/*
 * The windows may have had locations without a name that were not selected: whether all
 * have names is worked out of those that are written.
 */
static int pprof_find_unnamed(struct write_pprof *w)
{
	const struct reporter_query *q = w->q;

	w->unnamed = calloc(q->nmappings + 1, sizeof(*w->unnamed));
	if (!w->unnamed)
		return -ENOMEM;
	for (size_t i = 0; i < q->nlocations; i++) {
		const struct query_location *l = q->locations[i];

		if (l->mapping != QUERY_NONE && !pprof_has_names(w, l))
			w->unnamed[l->mapping] = true;
	}
	return 0;
}

static void pprof_mapping(struct write_pprof *w, size_t i)
{
	Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;
	const struct query_mapping *from = w->q->mappings[i];

	m.id = i + 1;
	m.memory_start = from->start;
	m.memory_limit = from->limit;
	m.file_offset = from->offset;
	m.filename = pprof_id(w, from->file);
	m.build_id = pprof_id(w, from->build_id);
	m.has_functions = from->flags[0] || !w->unnamed[i];
	m.has_filenames = from->flags[1];
	m.has_line_numbers = from->flags[2];
	m.has_inline_frames = from->flags[3];
	pprof_put(&w->pprof, PPROF_MAPPING, &m.base);
}

static void pprof_function(struct write_pprof *w, size_t i)
{
	Perftools__Profiles__Function m = PERFTOOLS__PROFILES__FUNCTION__INIT;
	const struct query_function *from = w->q->functions[i];

	m.id = i + 1;
	m.name = pprof_id(w, from->name);
	m.system_name = pprof_id(w, from->system_name);
	m.filename = pprof_id(w, from->file);
	m.start_line = from->start_line;
	pprof_put(&w->pprof, PPROF_FUNCTION, &m.base);
}

static void pprof_location(struct write_pprof *w, size_t i)
{
	Perftools__Profiles__Location m = PERFTOOLS__PROFILES__LOCATION__INIT;
	const struct query_location *from = w->q->locations[i];
	Perftools__Profiles__Line *line, **lines;
	uint32_t k;

	line = calloc(from->nlines + 1, sizeof(*line));
	lines = calloc(from->nlines + 1, sizeof(line));
	if (!line || !lines) {
		w->pprof.err = -ENOMEM;
		goto out;
	}
	for (k = 0; k < from->nlines; k++) {
		perftools__profiles__line__init(&line[k]);
		/* QUERY_NONE + 1 is 0, no function. */
		line[k].function_id = (uint32_t)(from->lines[k].function + 1);
		line[k].line = from->lines[k].line;
		line[k].column = from->lines[k].column;
		lines[k] = &line[k];
	}
	m.id = i + 1;
	m.mapping_id = (uint32_t)(from->mapping + 1);
	m.address = from->address;
	m.is_folded = from->folded;
	m.n_line = from->nlines;
	m.line = lines;
	pprof_put(&w->pprof, PPROF_LOCATION, &m.base);
out:
	free(line);
	free(lines);
}

static void pprof_sample(struct write_pprof *w, const struct query_sample *s)
{
	Perftools__Profiles__Sample m = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Label label[QUERY_LABELS_MAX + 1];
	Perftools__Profiles__Label *labels[QUERY_LABELS_MAX + 1];
	uint32_t i;

	for (i = 0; i < s->labels->n; i++) {
		const struct query_label *l = &s->labels->items[i];

		perftools__profiles__label__init(&label[i]);
		label[i].key = pprof_id(w, l->key);
		label[i].str = pprof_id(w, l->str);
		label[i].num = l->num;
		label[i].num_unit = pprof_id(w, (uint32_t)l->unit);
		labels[i] = &label[i];
	}
	for (i = 0; i < s->stack->n; i++)
		w->ids[i] = (uint64_t)s->stack->locations[i] + 1;
	m.location_id = w->ids;
	m.n_location_id = s->stack->n;
	m.label = labels;
	m.n_label = s->labels->n;
	m.value = (int64_t *)s->values;
	m.n_value = w->q->ntypes;
	pprof_put(&w->pprof, PPROF_SAMPLE, &m.base);
}

int write_pprof(struct reporter_query *q, struct sink *sink)
{
	struct write_pprof *w = calloc(1, sizeof(*w));
	size_t i;
	int err = w ? 0 : -ENOMEM;

	if (err)
		return err;
	w->q = q;
	w->pprof.sink = sink;
	w->strings = calloc(q->strings.count, sizeof(*w->strings));
	if (!w->strings) {
		free(w);
		return -ENOMEM;
	}
	pprof_string(&w->pprof, "");
	err = pprof_head(w);
	if (!err)
		err = pprof_find_unnamed(w);
	for (i = 0; i < q->nmappings && !err; i++)
		pprof_mapping(w, i);
	for (i = 0; i < q->nlocations && !err; i++)
		pprof_location(w, i);
	for (i = 0; i < q->nfunctions && !err; i++)
		pprof_function(w, i);
	for (i = 0; i < q->nsamples && !err; i++)
		if (!query_is_zero(q, q->samples[i]))
			pprof_sample(w, q->samples[i]);
	if (!err)
		err = w->pprof.err;
	pprof_fini(&w->pprof);
	free(w->unnamed);
	free(w->strings);
	free(w);
	return err;
}
