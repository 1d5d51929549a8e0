// SPDX-License-Identifier: Apache-2.0
/*
 * New lines for an existing profile: which locations lack a name, what is written,
 * what stays as it was, and profiles that are refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/base.h"
#include "reporter/profile.pb-c.h"
#include "reporter/reporter.h"

#define BUILD_ID "0102030405060708090a0b0c0d0e0f1011121314"

/* Fields that the published format does not have: 21 as text, 22 as fixed64. */
static const uint8_t unknown[] = { 0xaa, 1, 2, 'h', 'i', 0xb1, 1, 1,
				   2,	 3, 4, 5,   6,	 7,    8 };

/* The profile that the tests begin with, and what they change in it. */
struct tree {
	Perftools__Profiles__Profile p;
	Perftools__Profiles__ValueType type, *types[1];
	Perftools__Profiles__Mapping mapping[2], *mappings[2];
	Perftools__Profiles__Location location[4], *locations[4];
	Perftools__Profiles__Line line[4], *lines[4];
	Perftools__Profiles__Function function[3], *functions[3];
	Perftools__Profiles__Sample sample, *samples[1];
	uint64_t ids[4];
	int64_t values[1], comments[1];
	char *strings[12];
};

/* The lists of the profile. */
static void tree_link(struct tree *t)
{
	t->p.sample_type = t->types;
	t->p.n_sample_type = 1;
	t->p.sample = t->samples;
	t->p.n_sample = 1;
	t->p.mapping = t->mappings;
	t->p.n_mapping = 2;
	t->p.location = t->locations;
	t->p.n_location = 4;
	t->p.function = t->functions;
	t->p.n_function = 3;
	t->p.string_table = t->strings;
	t->p.n_string_table = ARRAY_SIZE(t->strings);
	t->p.comment = t->comments;
	t->p.n_comment = 1;
	t->p.time_nanos = 1700000000000000000;
}

static void tree_init(struct tree *t)
{
	static char *const strings[] = {
		"",
		"samples",
		"count",
		"/usr/bin/spin",
		BUILD_ID,
		"spin+0x1068",
		"inner",
		"spin.c",
		"main",
		"[unknown]",
		"comment of the user",
		"last",
	};
	size_t i;

	memset(t, 0, sizeof(*t));
	perftools__profiles__profile__init(&t->p);
	memcpy(t->strings, strings, sizeof(strings));
	perftools__profiles__value_type__init(&t->type);
	t->type.type = 1;
	t->type.unit = 2;
	t->types[0] = &t->type;
	for (i = 0; i < 2; i++) {
		perftools__profiles__mapping__init(&t->mapping[i]);
		t->mappings[i] = &t->mapping[i];
		t->mapping[i].id = i + 1;
	}
	t->mapping[0].memory_start = 0x7000;
	t->mapping[0].memory_limit = 0x9000;
	t->mapping[0].file_offset = 0x1000;
	t->mapping[0].filename = 3;
	t->mapping[0].build_id = 4;
	for (i = 0; i < 3; i++) {
		perftools__profiles__function__init(&t->function[i]);
		t->functions[i] = &t->function[i];
		t->function[i].id = i + 1;
	}
	t->function[0].name = 5;
	t->function[1].name = 6;
	t->function[1].filename = 7;
	t->function[2].name = 8;
	for (i = 0; i < 4; i++) {
		perftools__profiles__location__init(&t->location[i]);
		perftools__profiles__line__init(&t->line[i]);
		t->locations[i] = &t->location[i];
		t->lines[i] = &t->line[i];
		t->location[i].id = t->ids[i] = i + 1;
		t->location[i].mapping_id = i < 3;
		t->location[i].address = 0x7068 + i;
	}
	/* An invented name; a name without line; inlined, with lines; nothing. */
	t->line[0].function_id = 1;
	t->location[0].line = t->lines;
	t->location[0].n_line = 1;
	t->line[1].function_id = 3;
	t->location[1].line = t->lines + 1;
	t->location[1].n_line = 1;
	t->line[2].function_id = 2;
	t->line[2].line = 12;
	t->line[3].function_id = 3;
	t->location[2].line = t->lines + 2;
	t->location[2].n_line = 2;
	t->location[3].is_folded = true;
	perftools__profiles__sample__init(&t->sample);
	t->samples[0] = &t->sample;
	t->sample.location_id = t->ids;
	t->sample.n_location_id = 4;
	t->values[0] = 5;
	t->sample.value = t->values;
	t->sample.n_value = 1;
	t->comments[0] = 10;
	tree_link(t);
}

/* malloc'd, with the unknown fields at the end. */
static uint8_t *tree_pack(const struct tree *t, size_t *len)
{
	uint8_t *data =
		malloc(perftools__profiles__profile__get_packed_size(&t->p) +
		       sizeof(unknown));

	assert_non_null(data);
	*len = perftools__profiles__profile__pack(&t->p, data);
	memcpy(data + *len, unknown, sizeof(unknown));
	*len += sizeof(unknown);
	return data;
}

static struct reporter_profile *tree_read(const struct tree *t)
{
	struct reporter_profile *p;
	const char *what;
	size_t len;
	uint8_t *data = tree_pack(t, &len);

	assert_int_equal(reporter_profile_parse(data, len, &p, &what), 0);
	return p;
}

/* What is written, malloc'd. */
static uint8_t *written(struct reporter_profile *p, size_t *len)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);
	uint8_t *data;

	assert_true(fd >= 0);
	assert_int_equal(reporter_profile_write(p, fd, REPORTER_RAW), 0);
	*len = (size_t)lseek(fd, 0, SEEK_END);
	data = malloc(*len);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, *len, 0), *len);
	close(fd);
	return data;
}

/* --- reading ----------------------------------------------------------------- */

static void what_lacks_a_name_is_seen(void **state)
{
	static const bool named[] = { false, true, true, false };
	static const bool lined[] = { false, false, true, false };
	struct reporter_profile_mapping m;
	struct reporter_profile_location l;
	struct reporter_profile *p;
	char text[32];
	struct tree t;

	tree_init(&t);
	p = tree_read(&t);
	assert_int_equal(reporter_profile_mappings(p), 2);
	reporter_profile_mapping(p, 0, &m);
	assert_string_equal(m.path, "/usr/bin/spin");
	assert_string_equal(m.build_id, BUILD_ID);
	assert_int_equal(m.start, 0x7000);
	assert_int_equal(m.offset, 0x1000);
	reporter_profile_mapping(p, 1, &m);
	assert_string_equal(m.path, "");
	assert_int_equal(reporter_profile_locations(p), 4);
	for (size_t i = 0; i < 4; i++) {
		reporter_profile_location(p, i, &l);
		assert_int_equal(l.address, 0x7068 + i);
		assert_int_equal(l.mapping, i < 3 ? 0 : REPORTER_PROFILE_NONE);
		assert_int_equal(l.named, named[i]);
		assert_int_equal(l.lined, lined[i]);
	}
	assert_int_equal(reporter_profile_time(p), 1700000000000000000);
	assert_true(reporter_profile_comment(p, 0, text, sizeof(text)));
	assert_string_equal(text, "comment of the user");
	assert_true(reporter_profile_comment(p, 0, text, 8));
	assert_string_equal(text, "comment");
	assert_false(reporter_profile_comment(p, 1, text, sizeof(text)));
	reporter_profile_free(p);
}

static void invented_names_are_no_names(void **state)
{
	static const struct {
		char *name;
		bool named;
	} names[] = {
		{ "spin+0x1068", false },
		{ "spin+0x", true },
		{ "spin+0x10g", true },
		{ "spine+0x10", true },
		{ "other+0x10", true },
		{ "[kernel]+0xffff", false },
		{ "[kernel]", true },
		{ "[x]y+0x1", true },
		{ "[unknown]", false },
		{ "??", false },
		{ "", false },
		{ "0x7f00", false },
		{ "operator+0x", true },
		{ "+0x1", true },
		{ "main", true },
	};
	struct reporter_profile_location l;
	struct reporter_profile *p;
	struct tree t;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		tree_init(&t);
		t.strings[5] = names[i].name;
		p = tree_read(&t);
		reporter_profile_location(p, 0, &l);
		if (l.named != names[i].named)
			fail_msg("%s", names[i].name);
		reporter_profile_free(p);
	}
	/* One of several inlined functions is enough. */
	tree_init(&t);
	t.strings[8] = "spin+0x10";
	p = tree_read(&t);
	reporter_profile_location(p, 2, &l);
	assert_false(l.named);
	reporter_profile_free(p);
}

/* --- writing ----------------------------------------------------------------- */

static void without_a_change_every_byte_stays(void **state)
{
	struct reporter_profile *p;
	uint8_t *before, *after;
	size_t len, len2;
	struct tree t;

	tree_init(&t);
	before = tree_pack(&t, &len);
	p = tree_read(&t);
	after = written(p, &len2);
	assert_int_equal(len2, len);
	assert_memory_equal(after, before, len);
	reporter_profile_free(p);
	free(before);
	free(after);
}

static const struct reporter_function fns[] = {
	{ .name = "leaf(int)",
	  .system_name = "_Z4leafi",
	  .file = "leaf.c",
	  .start_line = 3 },
	{ .name = "main", .system_name = "main", .file = "" },
};

static const char *text_of(const Perftools__Profiles__Profile *p, int64_t i)
{
	assert_true(i >= 0 && (size_t)i < p->n_string_table);
	return p->string_table[i];
}

/* The function with an id, which is unique. */
static const Perftools__Profiles__Function *
function_of(const Perftools__Profiles__Profile *p, uint64_t id)
{
	const Perftools__Profiles__Function *f = NULL;

	for (size_t i = 0; i < p->n_function; i++) {
		if (p->function[i]->id != id)
			continue;
		assert_null(f);
		f = p->function[i];
	}
	assert_non_null(f);
	return f;
}

static void new_lines_replace_old_ones(void **state)
{
	const struct reporter_line two[] = { { &fns[0], 4 }, { &fns[1], 0 } };
	const Perftools__Profiles__Location *l;
	const Perftools__Profiles__Function *f;
	Perftools__Profiles__Profile *out;
	struct reporter_profile *p;
	uint8_t *data;
	struct tree t;
	size_t len;

	tree_init(&t);
	p = tree_read(&t);
	assert_int_equal(reporter_profile_set(p, 0, two, 2), 0);
	assert_int_equal(reporter_profile_set(p, 3, two, 1), 0);
	data = written(p, &len);
	out = perftools__profiles__profile__unpack(NULL, len, data);
	assert_non_null(out);
	assert_int_equal(out->n_location, 4);
	l = out->location[0];
	assert_int_equal(l->id, 1);
	assert_int_equal(l->address, 0x7068);
	assert_int_equal(l->mapping_id, 1);
	assert_int_equal(l->n_line, 2);
	assert_int_equal(l->line[0]->line, 4);
	f = function_of(out, l->line[0]->function_id);
	assert_string_equal(text_of(out, f->name), "leaf(int)");
	assert_string_equal(text_of(out, f->system_name), "_Z4leafi");
	assert_string_equal(text_of(out, f->filename), "leaf.c");
	assert_int_equal(f->start_line, 3);
	f = function_of(out, l->line[1]->function_id);
	assert_string_equal(text_of(out, f->name), "main");
	assert_int_equal(f->filename, 0);
	/* The others, with all that is theirs. */
	assert_int_equal(out->location[1]->line[0]->function_id, 3);
	assert_int_equal(out->location[2]->n_line, 2);
	assert_true(out->location[3]->is_folded);
	/* A function is added once; ids stay dense. */
	assert_int_equal(out->location[3]->line[0]->function_id,
			 l->line[0]->function_id);
	assert_int_equal(out->n_function, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(out->function[i]->id, i + 1);
	assert_string_equal(out->string_table[11], "last");
	assert_int_equal(out->n_sample, 1);
	assert_int_equal(out->sample[0]->n_location_id, 4);
	assert_int_equal(out->comment[0], 10);
	/* Old strings keep their numbers. */
	assert_int_equal(out->n_string_table, 12 + 4);
	assert_memory_equal(memmem(data, len, unknown, sizeof(unknown)),
			    unknown, sizeof(unknown));
	perftools__profiles__profile__free_unpacked(out, NULL);
	reporter_profile_free(p);
	free(data);
}

static void flags_tell_what_a_mapping_has(void **state)
{
	const struct reporter_line line = { &fns[0], 4 };
	const struct reporter_line two[] = { { &fns[1], 0 }, { &fns[1], 0 } };
	Perftools__Profiles__Profile *out;
	struct reporter_profile *p;
	uint8_t *data;
	struct tree t;
	size_t len;

	for (int both = 0; both < 2; both++) {
		tree_init(&t);
		/* The second location has no name either. */
		t.strings[8] = "??";
		p = tree_read(&t);
		assert_int_equal(reporter_profile_set(p, 0, &line, 1), 0);
		assert_int_equal(reporter_profile_set(p, 2, two, 2), 0);
		if (both)
			assert_int_equal(reporter_profile_set(p, 1, &line, 1),
					 0);
		data = written(p, &len);
		out = perftools__profiles__profile__unpack(NULL, len, data);
		assert_non_null(out);
		/* Only if every location of the mapping has a name. */
		assert_int_equal(out->mapping[0]->has_functions, both);
		assert_true(out->mapping[0]->has_filenames);
		assert_true(out->mapping[0]->has_line_numbers);
		assert_true(out->mapping[0]->has_inline_frames);
		assert_int_equal(out->mapping[0]->memory_limit, 0x9000);
		assert_int_equal(out->mapping[0]->build_id, 4);
		assert_false(out->mapping[1]->has_functions);
		perftools__profiles__profile__free_unpacked(out, NULL);
		reporter_profile_free(p);
		free(data);
	}
}

/* --- what is refused ----------------------------------------------------------- */

static void refuse(struct tree *t, const char *why)
{
	struct reporter_profile *p;
	const char *what;
	size_t len;
	uint8_t *data = tree_pack(t, &len);

	assert_int_equal(reporter_profile_parse(data, len, &p, &what),
			 -EBADMSG);
	assert_non_null(strstr(what, why));
}

static void wrong_ids_are_refused(void **state)
{
	struct tree t;

	tree_init(&t);
	t.location[0].mapping_id = 3;
	refuse(&t, "mapping that does not exist");
	tree_init(&t);
	t.line[3].function_id = 4;
	refuse(&t, "function that does not exist");
	tree_init(&t);
	t.location[3].id = 1;
	refuse(&t, "two locations");
	tree_init(&t);
	t.location[3].id = 0;
	refuse(&t, "two locations");
	tree_init(&t);
	t.mapping[1].id = 1;
	refuse(&t, "two mappings");
	tree_init(&t);
	t.function[1].id = 1;
	refuse(&t, "two functions");
	tree_init(&t);
	t.function[2].id = t.line[1].function_id = UINT64_MAX;
	t.line[3].function_id = UINT64_MAX;
	refuse(&t, "too large");
	tree_init(&t);
	t.function[0].name = 12;
	refuse(&t, "string");
	tree_init(&t);
	t.mapping[0].filename = -1;
	refuse(&t, "string");
	tree_init(&t);
	t.comments[0] = 12;
	refuse(&t, "string");
	tree_init(&t);
	t.strings[0] = "x";
	refuse(&t, "not a profile");
	tree_init(&t);
	t.p.n_sample_type = 0;
	refuse(&t, "not a profile");
}

static void every_truncation_is_refused_or_read(void **state)
{
	struct reporter_profile *p;
	const char *what;
	struct tree t;
	size_t len;
	uint8_t *data, *copy;

	tree_init(&t);
	data = tree_pack(&t, &len);
	for (size_t n = 0; n < len; n++) {
		copy = malloc(n + 1);
		assert_non_null(copy);
		memcpy(copy, data, n);
		if (reporter_profile_parse(copy, n, &p, &what))
			assert_non_null(what);
		else
			reporter_profile_free(p);
	}
	free(data);
}

/* --- compressed ---------------------------------------------------------------- */

static int read_bytes(const void *data, size_t len, const char **what)
{
	int err, fd = memfd_create("profile", MFD_CLOEXEC);
	struct reporter_profile *p;

	assert_int_equal(write(fd, data, len), len);
	lseek(fd, 0, SEEK_SET);
	*what = NULL;
	err = reporter_profile_read(fd, &p, what);
	close(fd);
	if (!err)
		reporter_profile_free(p);
	return err;
}

static size_t gzip_of(const uint8_t *data, size_t len, uint8_t *out, size_t cap)
{
	z_stream z = { .next_in = (uint8_t *)data, .avail_in = (uInt)len };

	deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY);
	z.next_out = out;
	z.avail_out = (uInt)cap;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return cap - z.avail_out;
}

static void all_forms_are_read(void **state)
{
	uint8_t out[4096];
	const char *what;
	struct tree t;
	size_t len, n;
	uint8_t *data;

	tree_init(&t);
	data = tree_pack(&t, &len);
	assert_int_equal(read_bytes(data, len, &what), 0);
	n = gzip_of(data, len, out, sizeof(out));
	assert_int_equal(read_bytes(out, n, &what), 0);
	assert_int_equal(read_bytes(out, n - 9, &what), -EBADMSG);
	assert_non_null(strstr(what, "cut off"));
	/* Two members, cut within a field. */
	n = gzip_of(data, 100, out, sizeof(out));
	n += gzip_of(data + 100, len - 100, out + n, sizeof(out) - n);
	assert_int_equal(read_bytes(out, n, &what), 0);
	n = ZSTD_compress(out, sizeof(out), data, len, 3);
	assert_int_equal(read_bytes(out, n, &what), 0);
	assert_int_equal(read_bytes(out, n - 1, &what), -EBADMSG);
	n = ZSTD_compress(out, sizeof(out), data, 100, 3);
	n += ZSTD_compress(out + n, sizeof(out) - n, data + 100, len - 100, 3);
	assert_int_equal(read_bytes(out, n, &what), 0);
	assert_int_equal(read_bytes("", 0, &what), -EBADMSG);
	assert_int_equal(read_bytes("text\n", 5, &what), -EBADMSG);
	free(data);
}

static void a_bomb_is_refused(void **state)
{
	static uint8_t zeros[1 << 20], out[1 << 20];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	ZSTD_outBuffer o = { out, sizeof(out), 0 };
	const char *what;

	for (int i = 0; i < 300; i++) {
		ZSTD_inBuffer in = { zeros, sizeof(zeros), 0 };

		while (in.pos < in.size)
			ZSTD_compressStream2(zstd, &o, &in, ZSTD_e_continue);
	}
	ZSTD_endStream(zstd, &o);
	ZSTD_freeCCtx(zstd);
	assert_true(o.pos < sizeof(out));
	assert_int_equal(read_bytes(out, o.pos, &what), -EFBIG);
	assert_non_null(strstr(what, "256 MiB"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_lacks_a_name_is_seen),
		cmocka_unit_test(invented_names_are_no_names),
		cmocka_unit_test(without_a_change_every_byte_stays),
		cmocka_unit_test(new_lines_replace_old_ones),
		cmocka_unit_test(flags_tell_what_a_mapping_has),
		cmocka_unit_test(wrong_ids_are_refused),
		cmocka_unit_test(every_truncation_is_refused_or_read),
		cmocka_unit_test(all_forms_are_read),
		cmocka_unit_test(a_bomb_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
