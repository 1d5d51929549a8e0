// SPDX-License-Identifier: Apache-2.0
/*
 * profile_parse: the tables of a profile; see reporter/edit/profile.h. The fields
 * are read twice: strings and functions, which locations refer to, may stand
 * after these.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/edit/edit.h"

struct edit_bytes edit_text(const struct reporter_profile *p, uint64_t string)
{
	return p->strings[string];
}

/* --- the first time: what there is -------------------------------------------- */

static int parse_limit(size_t n, size_t max, const char *text,
		       const char **what)
{
	if (n < max)
		return 0;
	*what = text;
	return -EFBIG;
}

static int parse_string(struct reporter_profile *p, const struct edit_field *f,
			const char **what)
{
	int err = parse_limit(p->nstrings, REPORTER_PROFILE_STRINGS,
			      "more than 4194304 strings", what);

	if (!err)
		err = VECTOR_ROOM(p->strings, p->nstrings, p->strings_cap);
	if (!err)
		p->strings[p->nstrings++] = f->bytes;
	return err;
}

static int parse_function(struct reporter_profile *p,
			  const struct edit_field *f, const char **what)
{
	struct edit_bytes msg = f->bytes;
	struct edit_function fn = { .id = 0 };
	struct edit_field m;
	int err = parse_limit(p->nfunctions, REPORTER_PROFILE_FUNCTIONS,
			      "more than 1048576 functions", what);

	while (!err && (err = edit_next(&msg, &m)) > 0) {
		err = 0;
		if (m.wire == EDIT_VARINT && m.number == EDIT_ID)
			fn.id = m.value;
		if (m.wire == EDIT_VARINT && m.number == EDIT_FUNCTION_NAME)
			fn.name = m.value;
	}
	if (!err)
		err = VECTOR_ROOM(p->functions, p->nfunctions,
				  p->functions_cap);
	if (!err)
		p->functions[p->nfunctions++] = fn;
	return err;
}

static int parse_mapping(struct reporter_profile *p, const struct edit_field *f,
			 const char **what)
{
	struct edit_bytes msg = f->bytes;
	struct edit_mapping map = { .id = 0 };
	uint64_t *const members[] = {
		[EDIT_ID] = &map.id,
		[EDIT_MAPPING_START] = &map.start,
		[EDIT_MAPPING_LIMIT] = &map.limit,
		[EDIT_MAPPING_OFFSET] = &map.offset,
		[EDIT_MAPPING_PATH] = &map.path,
		[EDIT_MAPPING_BUILD_ID] = &map.build_id,
	};
	struct edit_field m;
	int err = parse_limit(p->nmappings, REPORTER_PROFILE_MAPPINGS,
			      "more than 65536 mappings", what);

	while (!err && (err = edit_next(&msg, &m)) > 0) {
		err = 0;
		if (m.wire != EDIT_VARINT)
			continue;
		if (m.number < ARRAY_SIZE(members))
			*members[m.number] = m.value;
		else if (m.number < EDIT_MAPPING_FLAGS + ARRAY_SIZE(map.flags))
			map.flags[m.number - EDIT_MAPPING_FLAGS] = m.value;
	}
	if (!err)
		err = VECTOR_ROOM(p->mappings, p->nmappings, p->mappings_cap);
	if (!err)
		p->mappings[p->nmappings++] = map;
	return err;
}

static int parse_location(struct reporter_profile *p,
			  const struct edit_field *f, const char **what)
{
	struct edit_location l = { .msg = f->bytes };
	int err = parse_limit(p->nlocations, REPORTER_PROFILE_LOCATIONS,
			      "more than 1048576 locations", what);

	if (!err)
		err = VECTOR_ROOM(p->locations, p->nlocations,
				  p->locations_cap);
	if (!err)
		p->locations[p->nlocations++] = l;
	return err;
}

/* Further ones are kept like all that is not read here. */
#define PARSE_COMMENTS 256

static int parse_comment(struct reporter_profile *p, uint64_t v)
{
	int err;

	if (p->ncomments == PARSE_COMMENTS)
		return 0;
	err = VECTOR_ROOM(p->comments, p->ncomments, p->comments_cap);

	if (!err)
		p->comments[p->ncomments++] = v;
	return err;
}

/* A field that is repeated: packed or not. */
static int parse_comments(struct reporter_profile *p,
			  const struct edit_field *f)
{
	struct edit_bytes b = f->bytes;
	uint64_t v;
	int err;

	if (f->wire == EDIT_VARINT)
		return parse_comment(p, f->value);
	while ((err = edit_next_packed(&b, &v)) > 0) {
		err = parse_comment(p, v);
		if (err)
			break;
	}
	return err;
}

static int parse_field(struct reporter_profile *p, const struct edit_field *f,
		       const char **what)
{
	if (f->number == EDIT_COMMENT &&
	    (f->wire == EDIT_VARINT || f->wire == EDIT_LEN))
		return parse_comments(p, f);
	if (f->number == EDIT_TIME && f->wire == EDIT_VARINT)
		p->time = (int64_t)f->value;
	if (f->wire != EDIT_LEN)
		return f->number >= EDIT_SAMPLE_TYPE && f->number <= EDIT_STRING
			       ? -EBADMSG
			       : 0;
	switch (f->number) {
	case EDIT_MAPPING:
		return parse_mapping(p, f, what);
	case EDIT_LOCATION:
		return parse_location(p, f, what);
	case EDIT_FUNCTION:
		return parse_function(p, f, what);
	case EDIT_STRING:
		return parse_string(p, f, what);
	default:
		return 0;
	}
}

static int parse_fields(struct reporter_profile *p, const char **what)
{
	struct edit_bytes msg = { p->data, p->len };
	struct edit_field f;
	bool typed = false;
	int err;

	while ((err = edit_next(&msg, &f)) > 0) {
		typed |= f.number == EDIT_SAMPLE_TYPE;
		err = parse_field(p, &f, what);
		if (err)
			break;
	}
	if (!err && (!typed || !p->nstrings || p->strings[0].len))
		err = -EBADMSG;
	if (err == -EBADMSG)
		*what = "not a profile, or damaged";
	return err;
}

/* --- the second time: what refers to what -------------------------------------- */

static int parse_bad(const char *text, const char **what)
{
	*what = text;
	return -EBADMSG;
}

static int cmp_id(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Checks that 'n' sorted elements, which begin with their id, differ in it. */
static bool parse_ids(const void *v, size_t n, size_t size)
{
	uint64_t last = 0; /* which no id may be */

	for (size_t i = 0; i < n; i++) {
		uint64_t id = *(const uint64_t *)((const char *)v + i * size);

		if (id == last)
			return false;
		last = id;
	}
	return true;
}

static const struct edit_function *parse_find(const struct reporter_profile *p,
					      uint64_t id)
{
	const struct edit_function *f = p->functions;
	size_t i;

	VECTOR_SEARCH(i, p->nfunctions, f[i].id < id);
	return i < p->nfunctions && f[i].id == id ? &f[i] : NULL;
}

/* A mapping's id and its index. */
struct parse_order {
	uint64_t id;
	uint32_t index;
};

static int parse_order_of(const struct reporter_profile *p,
			  struct parse_order **out)
{
	struct parse_order *order = calloc(p->nmappings + 1, sizeof(*order));
	size_t i;

	*out = order;
	if (!order)
		return -ENOMEM;
	for (i = 0; i < p->nmappings; i++) {
		order[i].id = p->mappings[i].id;
		order[i].index = (uint32_t)i;
	}
	qsort(order, p->nmappings, sizeof(*order), cmp_id);
	return 0;
}

/* Whether 's' is 'prefix' and an address as "+0x12". */
static bool parse_is_offset(struct edit_bytes s, struct edit_bytes prefix)
{
	size_t i = prefix.len + strlen("+0x");

	if (s.len <= i || memcmp(s.p, prefix.p, prefix.len) != 0 ||
	    memcmp(s.p + prefix.len, "+0x", strlen("+0x")) != 0)
		return false;
	while (i < s.len && strchr("0123456789abcdef", s.p[i]) && s.p[i])
		i++;
	return i == s.len;
}

/* The last component of the path of a location's mapping. */
static struct edit_bytes parse_base(const struct reporter_profile *p,
				    const struct edit_location *l)
{
	struct edit_bytes path;
	size_t i;

	if (!l->mapping)
		return (struct edit_bytes){ 0 };
	path = edit_text(p, p->mappings[l->mapping - 1].path);
	for (i = path.len; i && path.p[i - 1] != '/'; i--)
		;
	return (struct edit_bytes){ path.p + i, path.len - i };
}

/* A name that a tool invents where it has none. */
static bool parse_is_invented(const struct reporter_profile *p,
			      const struct edit_location *l,
			      struct edit_bytes name)
{
	static const char *const words[] = { "", "??", "[unknown]" };
	const uint8_t *end = name.len ? memchr(name.p, ']', name.len) : NULL;
	struct edit_bytes base = parse_base(p, l);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (name.len == strlen(words[i]) &&
		    !memcmp(name.p, words[i], name.len))
			return true;
	if (name.len > 2 && !memcmp(name.p, "0x", 2))
		return true;
	if (base.len && parse_is_offset(name, base))
		return true;
	/* [kernel]+0x12 */
	if (!end || name.p[0] != '[')
		return false;
	return parse_is_offset(
		name,
		(struct edit_bytes){ name.p, (size_t)(end + 1 - name.p) });
}

static int parse_location_line(const struct reporter_profile *p,
			       struct edit_location *l, struct edit_bytes msg,
			       const char **what)
{
	const struct edit_function *fn;
	uint64_t function = 0, line = 0;
	struct edit_field m;
	int err;

	while ((err = edit_next(&msg, &m)) > 0) {
		if (m.wire == EDIT_VARINT && m.number == EDIT_LINE_FUNCTION)
			function = m.value;
		if (m.wire == EDIT_VARINT && m.number == EDIT_LINE_LINE)
			line = m.value;
	}
	if (err)
		return err;
	l->lined |= line != 0;
	if (!function) {
		l->named = false;
		return 0;
	}
	fn = parse_find(p, function);
	if (!fn)
		return parse_bad("a line has a function that does not exist",
				 what);
	if (parse_is_invented(p, l, edit_text(p, fn->name)))
		l->named = false;
	return 0;
}

static int parse_location_lines(const struct reporter_profile *p,
				struct edit_location *l, const char **what)
{
	struct edit_bytes msg = l->msg;
	struct edit_field m;
	size_t lines = 0;
	int err;

	l->named = true;
	while ((err = edit_next(&msg, &m)) > 0) {
		if (m.number != EDIT_LOCATION_LINE)
			continue;
		err = m.wire == EDIT_LEN
			      ? parse_location_line(p, l, m.bytes, what)
			      : -EBADMSG;
		if (err)
			return err;
		lines++;
	}
	l->named &= lines != 0;
	return err;
}

static int parse_location_ids(struct reporter_profile *p,
			      struct edit_location *l,
			      const struct parse_order *order,
			      const char **what)
{
	struct edit_bytes msg = l->msg;
	struct edit_field m;
	uint64_t mapping = 0;
	size_t i;
	int err;

	while ((err = edit_next(&msg, &m)) > 0) {
		if (m.wire != EDIT_VARINT)
			continue;
		if (m.number == EDIT_ID)
			l->id = m.value;
		if (m.number == EDIT_LOCATION_MAPPING)
			mapping = m.value;
		if (m.number == EDIT_LOCATION_ADDRESS)
			l->address = m.value;
	}
	if (err || !mapping)
		return err;
	VECTOR_SEARCH(i, p->nmappings, order[i].id < mapping);
	if (i == p->nmappings || order[i].id != mapping)
		return parse_bad("a location has a mapping that does not exist",
				 what);
	l->mapping = order[i].index + 1;
	return 0;
}

static int parse_locations(struct reporter_profile *p,
			   const struct parse_order *order, const char **what)
{
	uint64_t *ids = malloc((p->nlocations + 1) * sizeof(*ids));
	struct edit_location *l;
	int err = ids ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; i < p->nlocations && !err; i++) {
		l = &p->locations[i];
		err = parse_location_ids(p, l, order, what);
		if (!err)
			err = parse_location_lines(p, l, what);
		ids[i] = l->id;
		if (err || !l->mapping)
			continue;
		p->mappings[l->mapping - 1].locations++;
		p->mappings[l->mapping - 1].named += l->named;
	}
	if (!err) {
		qsort(ids, p->nlocations, sizeof(*ids), cmp_id);
		if (!parse_ids(ids, p->nlocations, sizeof(*ids)))
			err = parse_bad("two locations have the same id, or 0",
					what);
	}
	free(ids);
	return err;
}

/* Strings that mappings, functions and comments refer to. */
static bool parse_strings(const struct reporter_profile *p)
{
	size_t i;

	for (i = 0; i < p->nmappings; i++)
		if (p->mappings[i].path >= p->nstrings ||
		    p->mappings[i].build_id >= p->nstrings)
			return false;
	for (i = 0; i < p->nfunctions; i++)
		if (p->functions[i].name >= p->nstrings)
			return false;
	for (i = 0; i < p->ncomments; i++)
		if (p->comments[i] >= p->nstrings)
			return false;
	return true;
}

static int parse_tables(struct reporter_profile *p, const char **what)
{
	struct parse_order *order;
	int err = parse_order_of(p, &order);

	if (!err && !parse_ids(order, p->nmappings, sizeof(*order)))
		err = parse_bad("two mappings have the same id, or 0", what);
	if (p->nfunctions)
		qsort(p->functions, p->nfunctions, sizeof(*p->functions),
		      cmp_id);
	if (!err &&
	    !parse_ids(p->functions, p->nfunctions, sizeof(*p->functions)))
		err = parse_bad("two functions have the same id, or 0", what);
	/* New functions get the ids after the last one. */
	if (!err && p->nfunctions &&
	    p->functions[p->nfunctions - 1].id > UINT64_MAX / 2)
		err = parse_bad("the ids of functions are too large", what);
	if (!err && !parse_strings(p))
		err = parse_bad("a string does not exist", what);
	if (!err)
		err = parse_locations(p, order, what);
	free(order);
	if (err == -EBADMSG && !*what)
		*what = "a location is damaged";
	return err;
}

int reporter_profile_parse(void *data, size_t len, struct reporter_profile **pp,
			   const char **what)
{
	struct reporter_profile *p = calloc(1, sizeof(*p));
	int err;

	*what = NULL;
	if (!p) {
		free(data);
		return -ENOMEM;
	}
	p->data = data;
	p->len = len;
	arena_init(&p->arena);
	err = strtab_init(&p->texts);
	if (!err)
		err = hash_init(&p->known, 0);
	if (!err)
		err = parse_fields(p, what);
	if (!err)
		err = parse_tables(p, what);
	if (err) {
		reporter_profile_free(p);
		return err;
	}
	*pp = p;
	return 0;
}

void reporter_profile_free(struct reporter_profile *p)
{
	if (!p)
		return;
	hash_fini(&p->known);
	strtab_fini(&p->texts);
	arena_fini(&p->arena);
	free(p->added);
	free(p->comments);
	free(p->functions);
	free(p->locations);
	free(p->mappings);
	free(p->strings);
	free(p->data);
	free(p);
}
