// SPDX-License-Identifier: Apache-2.0
/*
 * input: the tables of one profile; see reporter/query/input.h. Nothing is copied:
 * strings stay in the bytes of the input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/input.h"

#define INPUT_LINES_MAX (1U << 22)

int input_bad(struct input *in, const char *what)
{
	if (!in->what)
		in->what = what;
	return -EBADMSG;
}

static int input_large(struct input *in, size_t n, size_t max, const char *what)
{
	if (n < max)
		return 0;
	in->what = what;
	return -EFBIG;
}

/*
 * Sets the numbers of a message by field: members[i] for field i, NULL for others.
 * Fields of another type are ignored, as protobuf demands of unknown ones.
 */
static int input_numbers(struct edit_bytes msg, uint64_t *const *members,
			 size_t n)
{
	struct edit_field f;
	int err;

	while ((err = edit_next(&msg, &f)) > 0)
		if (f.wire == EDIT_VARINT && f.number < n && members[f.number])
			*members[f.number] = f.value;
	return err;
}

static int input_type_of(struct edit_bytes msg, struct input_type *t)
{
	uint64_t *const members[] = {
		[EDIT_TYPE_TYPE] = &t->type,
		[EDIT_TYPE_UNIT] = &t->unit,
	};

	return input_numbers(msg, members, ARRAY_SIZE(members));
}

static int input_sample_type(struct input *in, struct edit_bytes msg)
{
	int err = input_large(in, in->ntypes, QUERY_TYPES_MAX,
			      "more than 32 sample types");

	return err ? err : input_type_of(msg, &in->types[in->ntypes++]);
}

static int input_mapping_msg(struct input *in, struct edit_bytes msg)
{
	struct input_mapping m = { .index = QUERY_NONE };
	uint64_t flags[4] = { 0 };
	uint64_t *const members[] = {
		[EDIT_ID] = &m.id,
		[EDIT_MAPPING_START] = &m.start,
		[EDIT_MAPPING_LIMIT] = &m.limit,
		[EDIT_MAPPING_OFFSET] = &m.offset,
		[EDIT_MAPPING_PATH] = &m.file,
		[EDIT_MAPPING_BUILD_ID] = &m.build_id,
		[EDIT_MAPPING_FLAGS] = &flags[0],
		&flags[1],
		&flags[2],
		&flags[3],
	};
	int err = input_large(in, in->nmappings, QUERY_MAPPINGS_MAX,
			      "more than 65536 mappings");

	if (!err)
		err = input_numbers(msg, members, ARRAY_SIZE(members));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		m.flags[i] = flags[i];
	if (!err)
		err = VECTOR_ROOM(in->mappings, in->nmappings,
				  in->mappings_cap);
	if (err)
		return err;
	if (!in->nmappings)
		in->main_mapping = m.id;
	in->mappings[in->nmappings++] = m;
	return 0;
}

static int input_function_msg(struct input *in, struct edit_bytes msg)
{
	struct input_function fn = { .index = QUERY_NONE };
	uint64_t *const members[] = {
		[EDIT_ID] = &fn.id,
		[EDIT_FUNCTION_NAME] = &fn.name,
		[EDIT_FUNCTION_SYSTEM] = &fn.system_name,
		[EDIT_FUNCTION_FILE] = &fn.file,
		[EDIT_FUNCTION_START] = &fn.start_line,
	};
	int err = input_large(in, in->nfunctions, QUERY_FUNCTIONS_MAX,
			      "more than 1048576 functions");

	if (!err)
		err = input_numbers(msg, members, ARRAY_SIZE(members));
	if (!err)
		err = VECTOR_ROOM(in->functions, in->nfunctions,
				  in->functions_cap);
	if (!err)
		in->functions[in->nfunctions++] = fn;
	return err;
}

static int input_line_msg(struct input *in, struct edit_bytes msg)
{
	struct input_line l = { .line = 0 };
	uint64_t *const members[] = {
		[EDIT_LINE_FUNCTION] = &l.function,
		[EDIT_LINE_LINE] = &l.line,
		[EDIT_LINE_COLUMN] = &l.column,
	};
	int err = input_large(in, in->nlines, INPUT_LINES_MAX,
			      "more than 4194304 lines");

	if (!err)
		err = input_numbers(msg, members, ARRAY_SIZE(members));
	if (!err)
		err = VECTOR_ROOM(in->lines, in->nlines, in->lines_cap);
	if (!err)
		in->lines[in->nlines++] = l;
	return err;
}

static int input_location_msg(struct input *in, struct edit_bytes msg)
{
	struct input_location l = { .index = QUERY_NONE };
	uint64_t *const members[] = {
		[EDIT_ID] = &l.id,
		[EDIT_LOCATION_MAPPING] = &l.mapping,
		[EDIT_LOCATION_ADDRESS] = &l.address,
		[EDIT_LOCATION_FOLDED] = &l.folded,
	};
	struct edit_bytes lines = msg;
	struct edit_field f;
	int err = input_large(in, in->nlocations, QUERY_LOCATIONS_MAX,
			      "more than 1048576 locations");

	if (!err)
		err = input_numbers(msg, members, ARRAY_SIZE(members));
	l.first = (uint32_t)in->nlines;
	while (!err && (err = edit_next(&lines, &f)) > 0) {
		err = 0;
		if (f.number == EDIT_LOCATION_LINE)
			err = f.wire == EDIT_LEN ? input_line_msg(in, f.bytes)
						 : -EBADMSG;
	}
	l.nlines = (uint32_t)in->nlines - l.first;
	if (!err)
		err = VECTOR_ROOM(in->locations, in->nlocations,
				  in->locations_cap);
	if (!err)
		in->locations[in->nlocations++] = l;
	return err;
}

static int input_string_msg(struct input *in, struct edit_bytes text)
{
	int err = input_large(in, in->nstrings, QUERY_STRINGS_MAX,
			      "more than 4194304 strings");

	if (!err)
		err = VECTOR_ROOM(in->strings, in->nstrings, in->strings_cap);
	if (!err)
		in->strings[in->nstrings++] = text;
	return err;
}

static int input_comment_msg(struct input *in, uint64_t v)
{
	int err;

	if (in->ncomments == QUERY_COMMENTS_MAX)
		return 0;
	err = VECTOR_ROOM(in->comments, in->ncomments, in->comments_cap);
	if (!err)
		in->comments[in->ncomments++] = v;
	return err;
}

static int input_comments(struct input *in, const struct edit_field *f)
{
	struct edit_bytes b = f->bytes;
	uint64_t v;
	int err;

	if (f->wire == EDIT_VARINT)
		return input_comment_msg(in, f->value);
	while ((err = edit_next_packed(&b, &v)) > 0) {
		err = input_comment_msg(in, v);
		if (err)
			break;
	}
	return err;
}

static void input_header(struct input *in, const struct edit_field *f)
{
	uint64_t *const members[] = {
		[EDIT_DROP_FRAMES] = &in->drop_frames,
		[EDIT_KEEP_FRAMES] = &in->keep_frames,
		[EDIT_TIME] = &in->time,
		[EDIT_DURATION] = &in->duration,
		[EDIT_PERIOD] = &in->period,
		[EDIT_DEFAULT_TYPE] = &in->default_type,
		[EDIT_DOC_URL] = &in->doc_url,
	};

	if (f->wire == EDIT_VARINT && f->number < ARRAY_SIZE(members) &&
	    members[f->number])
		*members[f->number] = f->value;
}

static int input_sample_msg(struct input *in, struct edit_bytes msg)
{
	in->nsamples++;
	return 0;
}

static int input_field(struct input *in, const struct edit_field *f)
{
	static int (*const tables[])(struct input *, struct edit_bytes) = {
		[EDIT_SAMPLE_TYPE] = input_sample_type,
		[EDIT_SAMPLE] = input_sample_msg,
		[EDIT_MAPPING] = input_mapping_msg,
		[EDIT_LOCATION] = input_location_msg,
		[EDIT_FUNCTION] = input_function_msg,
		[EDIT_STRING] = input_string_msg,
	};

	if (f->number <= EDIT_STRING && f->wire != EDIT_LEN)
		return -EBADMSG;
	if (f->number < ARRAY_SIZE(tables) && tables[f->number])
		return tables[f->number](in, f->bytes);
	if (f->number == EDIT_COMMENT &&
	    (f->wire == EDIT_VARINT || f->wire == EDIT_LEN))
		return input_comments(in, f);
	if (f->number == EDIT_PERIOD_TYPE && f->wire == EDIT_LEN)
		return input_type_of(f->bytes, &in->period_type);
	input_header(in, f);
	return 0;
}

/* --- ids -------------------------------------------------------------------------- */

static uint64_t input_id(const void *table, size_t i, size_t size)
{
	return *(const uint64_t *)((const char *)table + i * size);
}

static int input_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts a table, unless it is sorted. False: ids are 0 or equal. */
static bool input_sort(void *table, size_t n, size_t size)
{
	bool sorted = true;
	size_t i;

	for (i = 1; i < n && sorted; i++)
		sorted =
			input_id(table, i - 1, size) < input_id(table, i, size);
	if (!sorted)
		qsort(table, n, size, input_compare);
	for (i = 1; i < n; i++)
		if (input_id(table, i - 1, size) == input_id(table, i, size))
			return false;
	return !n || input_id(table, 0, size);
}

void *input_find(void *table, size_t n, size_t size, uint64_t id)
{
	size_t i;

	/* Most have the ids 1, 2, 3... */
	if (id && id <= n && input_id(table, id - 1, size) == id)
		return (char *)table + (id - 1) * size;
	VECTOR_SEARCH(i, n, input_id(table, i, size) < id);
	return i < n && input_id(table, i, size) == id
		       ? (char *)table + i * size
		       : NULL;
}

static int input_sort_all(struct input *in)
{
	if (!input_sort(in->mappings, in->nmappings, sizeof(*in->mappings)))
		return input_bad(in, "two mappings have the same id, or 0");
	if (!input_sort(in->functions, in->nfunctions, sizeof(*in->functions)))
		return input_bad(in, "two functions have the same id, or 0");
	if (!input_sort(in->locations, in->nlocations, sizeof(*in->locations)))
		return input_bad(in, "two locations have the same id, or 0");
	return 0;
}

int input_parse(struct input *in, struct edit_bytes data)
{
	struct edit_bytes msg = data;
	struct edit_field f;
	size_t i;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		err = input_field(in, &f);
		if (err)
			break;
	}
	if (!err && (!in->ntypes || !in->nstrings || in->strings[0].len))
		err = -EBADMSG;
	if (err == -EBADMSG)
		return input_bad(in, "not a profile, or damaged");
	if (!err)
		err = input_sort_all(in);
	if (err)
		return err;
	in->string_ids = malloc(in->nstrings * sizeof(*in->string_ids));
	if (!in->string_ids)
		return -ENOMEM;
	for (i = 0; i < in->nstrings; i++)
		in->string_ids[i] = i ? QUERY_NONE : 0;
	return 0;
}

void input_tables_fini(struct input *in)
{
	free(in->comments);
	free(in->lines);
	free(in->locations);
	free(in->functions);
	free(in->mappings);
	free(in->string_ids);
	free(in->strings);
}
