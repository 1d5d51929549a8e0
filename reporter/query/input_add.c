// SPDX-License-Identifier: Apache-2.0
/*
 * input_add: adds one profile to the merged one; see reporter/query/input.h. An
 * element of its tables is added when the first sample that is taken refers to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/pprof.h"
#include "reporter/query/kinds.h"
#include "reporter/store/times_file.h"

/* --- elements --------------------------------------------------------------------- */

int input_string(struct input *in, uint64_t string, uint32_t *id)
{
	struct strbuf sb = STRBUF_INIT;
	const char *text;
	int64_t v;
	size_t len;

	if (string >= in->nstrings)
		return input_bad(in, "a string does not exist");
	*id = in->string_ids[string];
	if (*id != QUERY_NONE)
		return 0;
	/* A text ends at its first NUL here. */
	text = (const char *)in->strings[string].p;
	len = strnlen(text, in->strings[string].len);
	text = pprof_utf8(text, &len, &sb);
	v = text ? strtab_id_len(&in->q->strings, text, len) : -ENOMEM;
	strbuf_fini(&sb);
	if (v < 0)
		return -ENOMEM;
	*id = in->string_ids[string] = (uint32_t)v;
	return query_room(in->q);
}

/*
 * profd's own mappings of the kernel and of memory without a file are as wide as
 * the addresses seen, which are the same in each profile.
 */
static bool input_is_widened(const struct input *in, uint32_t file)
{
	return in->ours && strchr("[/", *query_text(in->q, file)) &&
	       (*query_text(in->q, file) == '[' ||
		!strncmp(query_text(in->q, file), "//", 2));
}

static int input_mapping_add(struct input *in, struct input_mapping *m)
{
	struct query_mapping out = {
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
	};
	int err = input_string(in, m->file, &out.file);

	if (m->index != QUERY_NONE)
		return 0;
	if (!err)
		err = input_string(in, m->build_id, &out.build_id);
	if (err)
		return err;
	memcpy(out.flags, m->flags, sizeof(out.flags));
	out.widened = input_is_widened(in, out.file);
	return query_mapping_index(in->q, &out, &m->index);
}

static int input_function_add(struct input *in, uint64_t id, uint32_t *index)
{
	struct input_function *f =
		input_find(in->functions, in->nfunctions, sizeof(*f), id);
	struct query_function out;
	int err;

	*index = QUERY_NONE;
	if (!id)
		return 0;
	if (!f)
		return input_bad(in, "a line has a function that does not "
				     "exist");
	if (f->index == QUERY_NONE) {
		out = (struct query_function){ .start_line =
						       (int64_t)f->start_line };
		err = input_string(in, f->name, &out.name);
		if (!err)
			err = input_string(in, f->system_name,
					   &out.system_name);
		if (!err)
			err = input_string(in, f->file, &out.file);
		if (!err)
			err = query_function_index(in->q, &out, &f->index);
		if (err)
			return err;
	}
	*index = f->index;
	return 0;
}

static int input_lines_add(struct input *in, const struct input_location *l,
			   struct query_line *lines)
{
	int err = 0;

	for (uint32_t i = 0; i < l->nlines && !err; i++) {
		const struct input_line *from = &in->lines[l->first + i];

		lines[i].line = (int64_t)from->line;
		lines[i].column = (int64_t)from->column;
		err = input_function_add(in, from->function,
					 &lines[i].function);
	}
	return err;
}

/* The mapping of a location; its address moves with the mapping. */
static int input_place(struct input *in, const struct input_location *l,
		       struct query_location *out)
{
	const struct query_mapping *merged;
	struct input_mapping *m;
	int err;

	if (!l->mapping)
		return 0;
	m = input_find(in->mappings, in->nmappings, sizeof(*m), l->mapping);
	if (!m)
		return input_bad(in, "a location has a mapping that does not "
				     "exist");
	err = input_mapping_add(in, m);
	if (err)
		return err;
	out->mapping = m->index;
	merged = in->q->mappings[m->index];
	if (!merged->widened)
		out->address += merged->start - m->start;
	return 0;
}

static int input_location_add(struct input *in, struct input_location *l)
{
	struct query_location out = {
		.address = l->address,
		.mapping = QUERY_NONE,
		.folded = l->folded,
	};
	struct query_line *lines;
	int err;

	if (l->index != QUERY_NONE)
		return 0;
	lines = calloc(l->nlines + 1, sizeof(*lines));
	err = lines ? input_lines_add(in, l, lines) : -ENOMEM;
	if (!err)
		err = input_place(in, l, &out);
	if (!err)
		err = query_location_index(in->q, &out, lines, l->nlines,
					   &l->index);
	free(lines);
	return err;
}

/* --- the stack of a sample -------------------------------------------------------- */

int input_push(struct input *in, uint32_t location)
{
	if (in->depth >= QUERY_DEPTH_MAX) {
		in->what = "a sample with more than 65536 frames";
		return -EFBIG;
	}
	if (VECTOR_ROOM(in->stack, in->depth, in->stack_cap))
		return -ENOMEM;
	in->stack[in->depth++] = location;
	return 0;
}

/* One location for each line of location 'index'. */
static int input_expand(struct input *in, uint32_t index)
{
	const struct query_location *l = in->q->locations[index];
	uint32_t i, one;
	int err = 0;

	for (i = 0; i < l->nlines && !err; i++) {
		err = query_location_index(in->q, l, &l->lines[i], 1, &one);
		if (!err)
			err = input_push(in, one);
	}
	return err;
}

static int input_frame(struct input *in, uint64_t id)
{
	struct input_location *l;
	struct reporter_query *q = in->q;
	int err;

	l = input_find(in->locations, in->nlocations, sizeof(*l), id);
	if (!l)
		return input_bad(in, "a sample has a location that does not "
				     "exist");
	err = input_location_add(in, l);
	if (err ||
	    (q->opts.drop_marks && query_is_mark(q, q->locations[l->index])))
		return err;
	if (q->opts.expand && l->nlines > 1)
		return input_expand(in, l->index);
	return input_push(in, l->index);
}

/* --- samples ---------------------------------------------------------------------- */

static int input_value(struct input *in, uint64_t v)
{
	int64_t *to;

	if (in->nvalues == in->ntypes)
		return input_bad(in, "a sample has more values than types");
	to = &in->values[in->columns[in->nvalues++]];
	*to = query_saturate(*to,
			     in->base ? query_negate((int64_t)v) : (int64_t)v);
	return 0;
}

/* A field that may be packed; 'add' takes each number. */
static int input_each(struct input *in, const struct edit_field *f,
		      int (*add)(struct input *in, uint64_t v))
{
	struct edit_bytes b = f->bytes;
	uint64_t v;
	int err;

	if (f->wire == EDIT_VARINT)
		return add(in, f->value);
	if (f->wire != EDIT_LEN)
		return -EBADMSG;
	while ((err = edit_next_packed(&b, &v)) > 0) {
		err = add(in, v);
		if (err)
			break;
	}
	return err;
}

static int input_values(struct input *in, struct edit_bytes msg)
{
	struct edit_field f;
	int err;

	in->nvalues = 0;
	memset(in->values, 0, sizeof(in->values));
	while ((err = edit_next(&msg, &f)) > 0) {
		if (f.number != EDIT_SAMPLE_VALUE)
			continue;
		err = input_each(in, &f, input_value);
		if (err)
			return err;
	}
	if (!err && in->nvalues != in->ntypes)
		err = input_bad(in, "a sample has fewer values than types");
	return err;
}

/* Those of the records in the span take the place of the sample's values. */
static int input_sums(struct input *in)
{
	const int64_t *sums = in->split ? in->split->values
					: in->sums + in->sample * in->ntypes;
	int err = 0;

	in->nvalues = 0;
	memset(in->values, 0, sizeof(in->values));
	for (size_t i = 0; i < in->ntypes && !err; i++)
		err = input_value(in, (uint64_t)sums[i]);
	return err;
}

static bool input_is_zero(const struct input *in)
{
	for (size_t i = 0; i < in->q->ntypes; i++)
		if (in->values[i])
			return false;
	return true;
}

static int input_sample_one(struct input *in, struct edit_bytes msg)
{
	const struct query_labels *labels = NULL;
	struct edit_bytes stack = msg;
	struct edit_field f;
	int err = input_labels(in, msg, &labels);

	if (!err && labels)
		err = in->sums || in->split ? input_sums(in)
					    : input_values(in, msg);
	in->depth = 0;
	if (err || !labels || input_is_zero(in))
		return err;
	while ((err = edit_next(&stack, &f)) > 0) {
		err = f.number == EDIT_SAMPLE_LOCATION
			      ? input_each(in, &f, input_frame)
			      : 0;
		if (err)
			return err;
	}
	if (!err) {
		kinds_sample(in);
		err = input_roots(in, labels);
	}
	if (!err)
		err = query_sample_add(in->q, in->stack, in->depth, labels,
				       in->values);
	return err;
}

static int input_sample(struct input *in, struct edit_bytes msg)
{
	const struct query_split *s;
	int err = 0;

	if (!in->splits)
		err = input_sample_one(in, msg);
	for (s = in->splits ? in->splits->by_sample[in->sample] : NULL;
	     s && !err; s = s->next) {
		in->split = s;
		err = input_sample_one(in, msg);
	}
	in->split = NULL;
	in->sample++;
	return err;
}

int input_samples(struct input *in, struct edit_bytes data)
{
	struct edit_field f;
	int err;

	while ((err = edit_next(&data, &f)) > 0) {
		if (f.number != EDIT_SAMPLE)
			continue;
		err = input_sample(in, f.bytes);
		if (err)
			break;
	}
	return err;
}

/* --- the header ------------------------------------------------------------------- */

static int input_type_add(struct input *in, const struct input_type *t,
			  struct query_type *out)
{
	int err = input_string(in, t->type, &out->type);

	return err ? err : input_string(in, t->unit, &out->unit);
}

/* The first profile decides which types there are, and in which order. */
static int input_types(struct input *in)
{
	struct reporter_query *q = in->q;
	bool used[QUERY_TYPES_MAX] = { false };
	struct query_type t;
	size_t i, k;
	int err = 0;

	if (q->opts.kind != REPORTER_QUERY_CPU)
		return kinds_types(in);
	if (!q->inputs)
		q->ntypes = in->ntypes;
	if (q->ntypes != in->ntypes)
		return input_bad(in, "sample types differ from those of the "
				     "first profile");
	for (i = 0; i < in->ntypes; i++) {
		err = input_type_add(in, &in->types[i], &t);
		if (err)
			return err;
		if (!q->inputs)
			q->types[i] = t;
		for (k = 0; k < q->ntypes; k++)
			if (!used[k] && q->types[k].type == t.type &&
			    q->types[k].unit == t.unit)
				break;
		if (k == q->ntypes)
			return input_bad(in, "sample types differ from those "
					     "of the first profile");
		in->columns[i] = k;
		used[k] = true;
	}
	return err;
}

/* "TEXT: NUMBER" of profd: its length without the number. */
static size_t input_count(const char *text, uint64_t *count)
{
	const char *p = strrchr(text, ':');
	size_t digits;

	if (!p || p[1] != ' ')
		return 0;
	digits = strspn(p + 2, "0123456789");
	if (!digits || digits > 19 || p[2 + digits])
		return 0;
	*count = strtoull(p + 2, NULL, 10);
	return (size_t)(p - text);
}

static int input_comment(struct input *in, uint32_t id)
{
	struct strbuf sb = STRBUF_INIT;
	uint64_t count = 0;
	size_t len = 0;
	int err;

	strbuf_puts(&sb, query_text(in->q, id));
	if (!sb.failed && in->ours)
		len = input_count(strbuf_str(&sb), &count);
	if (len)
		sb.data[len] = '\0';
	err = sb.failed ? -ENOMEM
			: query_comment_add(in->q, strbuf_str(&sb), len != 0,
					    count);
	strbuf_fini(&sb);
	return err;
}

static int input_all_comments(struct input *in)
{
	uint32_t id;
	int err = 0;

	for (size_t i = 0; i < in->ncomments && !err; i++) {
		err = input_string(in, in->comments[i], &id);
		if (!err && !strncmp(query_text(in->q, id), "profd ", 6))
			in->ours = true;
		if (!err)
			err = input_comment(in, id);
	}
	return err;
}

static void input_span(struct input *in)
{
	int64_t begin = (int64_t)in->time;
	int64_t end = query_saturate(begin, (int64_t)in->duration);
	struct reporter_query *q = in->q;

	if (in->sums || in->splits) {
		begin = MAX(begin, in->part->span.from);
		end = MIN(end, in->part->span.to);
	}
	if (begin && (!q->begin || begin < q->begin))
		q->begin = begin;
	q->end = MAX(q->end, end);
}

static int input_texts(struct input *in)
{
	struct reporter_query *q = in->q;
	const struct {
		uint64_t from;
		uint32_t *to;
	} texts[] = {
		{ in->default_type, &q->default_type },
		{ in->drop_frames, &q->drop_frames },
		{ in->keep_frames, &q->keep_frames },
		{ in->doc_url, &q->doc_url },
	};
	uint32_t id;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && !err; i++) {
		err = input_string(in, texts[i].from, &id);
		if (!err && !*texts[i].to)
			*texts[i].to = id;
	}
	return err;
}

static int input_head(struct input *in)
{
	struct reporter_query *q = in->q;
	struct query_type period = { 0 };
	bool own = q->opts.kind == REPORTER_QUERY_CPU;
	int err = input_types(in);

	if (!err && own)
		err = input_type_add(in, &in->period_type, &period);
	if (!err && own && !q->inputs)
		q->period_type = period;
	if (!err && own &&
	    (period.type != q->period_type.type ||
	     period.unit != q->period_type.unit))
		err = input_bad(in, "the period's type differs from that of "
				    "the first profile");
	if (!err)
		err = input_texts(in);
	if (err)
		return err;
	q->period = MAX(q->period, own ? (int64_t)in->period : 1);
	/* A difference is of the time of what remains. */
	if (in->base)
		return 0;
	input_span(in);
	return input_all_comments(in);
}

/* The first mapping is the main binary: it stays the first. */
static int input_main(struct input *in)
{
	struct input_mapping *m;

	if (!in->nmappings || in->q->nmappings)
		return 0;
	m = input_find(in->mappings, in->nmappings, sizeof(*m),
		       in->main_mapping);
	return input_mapping_add(in, m);
}

/* --- a part ------------------------------------------------------------------- */

static int input_times(struct input *in, struct store_times **tp)
{
	struct query_part *part = in->part;
	int err = part->times(part->arg, tp);

	if (!err && !store_times_fit(*tp, (int64_t)in->time, in->nsamples)) {
		store_times_free(*tp);
		err = -EBADMSG;
	}
	return err;
}

/*
 * The sums of its samples in the span, apart by traces if these are asked for.
 * 'partly': not all of its time is in the span.
 */
static int input_cut(struct input *in, bool partly)
{
	bool traced = query_traced(in->q);
	struct query_part *part = in->part;
	struct store_times *t = NULL;
	int err = input_times(in, &t);

	if (!err && traced) {
		err = query_part_split(t, part->span, in->nsamples, in->ntypes,
				       &in->splits);
	} else if (!err) {
		err = query_part_sums(t, part->span, in->nsamples, in->ntypes,
				      &in->sums);
		store_times_free(t);
	}
	if (!err || err == -ENOMEM)
		return err;
	part->whole = partly;
	part->untraced = traced;
	return 0;
}

static int input_part(struct input *in)
{
	int64_t begin = (int64_t)in->time;
	int64_t end = query_saturate(begin, (int64_t)in->duration);
	struct query_part *part = in->part;

	bool partly = begin < part->span.from || end > part->span.to;

	part->begin = begin;
	part->end = end;
	if (end <= part->span.from || begin >= part->span.to) {
		part->outside = true;
		return 0;
	}
	if (in->q->opts.kind != REPORTER_QUERY_CPU) {
		part->whole = partly; /* waits have no times */
		return 0;
	}
	return partly || query_traced(in->q) ? input_cut(in, partly) : 0;
}

/* --- all ---------------------------------------------------------------------- */

static int input_all(struct input *in, struct edit_bytes data)
{
	int err = input_parse(in, data);

	if (!err && in->part)
		err = input_part(in);
	if (err || (in->part && in->part->outside))
		return err;
	err = input_head(in);
	if (!err)
		err = input_main(in);
	if (!err)
		err = input_samples(in, data);
	if (!err)
		in->q->inputs++;
	return err;
}

int input_add(struct reporter_query *q, struct edit_bytes data, bool base,
	      struct query_part *part, const char **what)
{
	struct input *in = calloc(1, sizeof(*in));
	int err;

	*what = NULL;
	if (!in)
		return -ENOMEM;
	in->q = q;
	in->base = base;
	in->part = part;
	arena_init(&in->arena);
	err = hash_init(&in->sets, 0);
	if (!err)
		err = input_all(in, data);
	if (err == -EFBIG && !in->what)
		in->what = "the merged profile is too large";
	if (err == -EBADMSG)
		input_bad(in, "a sample is damaged");
	*what = in->what;
	hash_fini(&in->sets);
	arena_fini(&in->arena);
	query_splits_free(in->splits);
	free(in->sums);
	free(in->stack);
	input_tables_fini(in);
	free(in);
	return err;
}

int reporter_query_add(struct reporter_query *q, const void *data, size_t len,
		       bool base, const char **what)
{
	return input_add(q, (struct edit_bytes){ data, len }, base, NULL, what);
}

int reporter_query_add_packed(struct reporter_query *q, void *data, size_t len,
			      const char **what)
{
	uint8_t *raw;
	int err;

	*what = NULL;
	err = data ? edit_unpack(data, len, &raw, &len, what) : -EBADMSG;
	if (err)
		return err;
	err = reporter_query_add(q, raw, len, false, what);
	free(raw);
	return err;
}

int reporter_query_add_fd(struct reporter_query *q, int fd, bool base,
			  const char **what)
{
	uint8_t *data;
	size_t len;
	int err = edit_read(fd, &data, &len, what);

	if (err)
		return err;
	err = reporter_query_add(q, data, len, base, what);
	free(data);
	return err;
}
