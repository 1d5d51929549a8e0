// SPDX-License-Identifier: Apache-2.0
/*
 * The strict checker: each rule is broken once in an otherwise valid profile. And
 * the writer, with the parts of that profile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "reporter/pprof.h"
#include "tests/unit/pprof_check.h"

typedef Perftools__Profiles__Profile Profile;

enum {
	S_NONE,
	S_SAMPLES,
	S_COUNT,
	S_CPU,
	S_NANOSECONDS,
	S_FILE,
	S_BUILD_ID,
	S_FUNC,
	S_PID,
	S_COMM,
	S_KERNEL,
	S_DASH,
	S_MAX,
};

/* A profile of one sample, in one piece, for tests to break. */
struct good {
	Profile p;
	Perftools__Profiles__ValueType types[3], period_type;
	Perftools__Profiles__ValueType *type[3];
	Perftools__Profiles__Sample sample[2];
	Perftools__Profiles__Sample *samples[2];
	uint64_t ids[2];
	int64_t values[2][3];
	Perftools__Profiles__Label label[3];
	Perftools__Profiles__Label *labels[3];
	Perftools__Profiles__Mapping mapping[2];
	Perftools__Profiles__Mapping *mappings[2];
	Perftools__Profiles__Location location[2];
	Perftools__Profiles__Location *locations[2];
	Perftools__Profiles__Line line;
	Perftools__Profiles__Line *lines[1];
	Perftools__Profiles__Function function[2];
	Perftools__Profiles__Function *functions[2];
	int64_t comments[1];
	char *strings[S_MAX];
};

static void good_tables(struct good *g)
{
	size_t i;

	for (i = 0; i < 2; i++) {
		perftools__profiles__mapping__init(&g->mapping[i]);
		g->mapping[i].id = i + 1;
		g->mapping[i].memory_start = 0x1000;
		g->mapping[i].memory_limit = 0x2000;
		g->mapping[i].filename = i ? S_KERNEL : S_FILE;
		g->mapping[i].build_id = S_BUILD_ID;
		g->mapping[i].has_functions = true;
		g->mappings[i] = &g->mapping[i];
		perftools__profiles__location__init(&g->location[i]);
		g->location[i].id = i + 1;
		g->location[i].mapping_id = 1;
		g->location[i].address = 0x1234;
		g->location[i].line = g->lines;
		g->location[i].n_line = 1;
		g->locations[i] = &g->location[i];
		perftools__profiles__function__init(&g->function[i]);
		g->function[i].id = i + 1;
		g->function[i].name = S_FUNC;
		g->function[i].system_name = S_FUNC;
		g->functions[i] = &g->function[i];
	}
	perftools__profiles__line__init(&g->line);
	g->line.function_id = 1;
	g->lines[0] = &g->line;
}

static void good_samples(struct good *g)
{
	size_t i;

	for (i = 0; i < 3; i++) {
		perftools__profiles__label__init(&g->label[i]);
		g->labels[i] = &g->label[i];
	}
	g->label[0].key = S_PID;
	g->label[0].num = 7;
	g->label[1].key = S_COMM;
	g->label[1].str = S_FILE;
	g->label[2].key = S_PID; /* of the second sample */
	g->label[2].num = 8;
	for (i = 0; i < 2; i++) {
		perftools__profiles__sample__init(&g->sample[i]);
		g->ids[i] = i + 1;
		g->sample[i].location_id = g->ids;
		g->sample[i].n_location_id = 2;
		g->values[i][0] = 2;
		g->values[i][1] = 20;
		g->sample[i].value = g->values[i];
		g->sample[i].n_value = 2;
		g->sample[i].label = i ? &g->labels[2] : g->labels;
		g->sample[i].n_label = i ? 1 : 2;
		g->samples[i] = &g->sample[i];
	}
}

static void good_init(struct good *g)
{
	static const char *const strings[] = {
		"",
		"samples",
		"count",
		"cpu",
		"nanoseconds",
		"/bin/x",
		"abcd01",
		"func",
		"pid",
		"comm",
		"[kernel.kallsyms]",
		"cpu-time",
	};
	static const int64_t types[][2] = { { S_SAMPLES, S_COUNT },
					    { S_CPU, S_NANOSECONDS },
					    { S_CPU, S_NANOSECONDS } };
	size_t i;

	memset(g, 0, sizeof(*g));
	perftools__profiles__profile__init(&g->p);
	for (i = 0; i < 3; i++) {
		perftools__profiles__value_type__init(&g->types[i]);
		g->types[i].type = types[i][0];
		g->types[i].unit = types[i][1];
		g->type[i] = &g->types[i];
	}
	g->period_type = g->types[1];
	for (i = 0; i < S_MAX; i++)
		g->strings[i] = (char *)strings[i];
	good_tables(g);
	good_samples(g);
#define TABLE(name, items, n) (g->p.name = (items), g->p.n_##name = (n))
	TABLE(sample_type, g->type, 2);
	TABLE(sample, g->samples, 2);
	TABLE(mapping, g->mappings, 2);
	TABLE(location, g->locations, 2);
	TABLE(function, g->functions, 2);
	TABLE(string_table, g->strings, S_MAX);
	TABLE(comment, g->comments, 1);
#undef TABLE
	g->comments[0] = S_FUNC;
	g->p.period_type = &g->period_type;
	g->p.period = 10;
	g->p.time_nanos = 1;
	g->p.duration_nanos = 1;
	g->p.default_sample_type = S_CPU;
}

static uint8_t buf[4096];

static size_t pack(const struct good *g)
{
	assert_true(perftools__profiles__profile__get_packed_size(&g->p) <
		    sizeof(buf));
	return perftools__profiles__profile__pack(&g->p, buf);
}

/* 'want' is part of the expected message; NULL: the profile is valid. */
static void expect(const void *data, size_t len, const char *want,
		   const char *what)
{
	const char *wrong = pprof_check(data, len);

	if (!wrong != !want || (want && !strstr(wrong, want)))
		fail_msg("%s: \"%s\", not \"%s\"", what,
			 wrong ? wrong : "nothing wrong",
			 want ? want : "nothing wrong");
	pprof_check_end();
}

/* X(change, message of the checker) */
#define BREAKS(X)                                                             \
	X(g.p.n_sample_type = 1, "1 sample types")                            \
	X(g.p.n_sample_type = 3, "3 sample types")                            \
	X(g.types[1].type = S_DASH, "'-' in \"cpu-time\"")                    \
	X(g.types[0].unit = S_CPU, "samples/cpu, not samples/count")          \
	X(g.types[0].type = S_MAX, "sample_type 0: string 12 of 12")          \
	X(g.p.period_type = NULL, "period_type missing")                      \
	X(g.period_type.unit = S_COUNT, "period_type 0: cpu/count")           \
	X(g.p.period = 0, "period 0")                                         \
	X(g.p.time_nanos = 0, "time_nanos 0")                                 \
	X(g.p.duration_nanos = -1, "duration_nanos -1")                       \
	X(g.p.default_sample_type = S_SAMPLES, "default_sample_type")         \
	X(g.p.default_sample_type = -1, "default_sample_type 0: string -1")   \
	X(g.comments[0] = 99, "comment 0: string 99")                         \
	X(g.p.doc_url = 99, "doc_url")                                        \
	X(g.p.n_string_table = 0, "no string table")                          \
	X(g.strings[0] = "x", "string_table[0] is not \"\"")                  \
	X(g.strings[S_FUNC] = "a\xff", "string_table[7] is not UTF-8")        \
	X(g.strings[S_FUNC] = "\xc0\x80", "is not UTF-8")                     \
	X(g.strings[S_FUNC] = "\xed\xa0\x80", "is not UTF-8")                 \
	X(g.strings[S_FUNC] = "\xf4\x90\x80\x80", "is not UTF-8")             \
	X(g.strings[S_FUNC] = "\xe2\x82", "is not UTF-8")                     \
	X(g.mapping[1].id = 3, "mapping 2: id 3")                             \
	X(g.mapping[0].memory_limit = 0x1000, "mapping 1: empty")             \
	X(g.mapping[0].filename = 0, "mapping 1: no file name")               \
	X(g.mapping[0].filename = 77, "mapping 1: string 77")                 \
	X(g.strings[S_BUILD_ID] = "ABCD", "build id is not hex")              \
	X(g.strings[S_BUILD_ID] = "abc", "build id is not hex")               \
	X(g.mapping[0].has_functions = false, "has_functions is not set")     \
	X(g.strings[S_FUNC] = "f+0x1a", "has_functions is set")               \
	X((g.mapping[0].filename = S_KERNEL, g.mapping[1].filename = S_FILE), \
	  "mapping 1 is [kernel.kallsyms]")                                   \
	X(g.location[0].id = 2, "location 1: id 2")                           \
	X(g.location[1].mapping_id = 3, "location 2: no mapping 3")           \
	X(g.location[1].mapping_id = 0, "address without mapping")            \
	X(g.location[1].address = 0x2000, "outside of mapping 1")             \
	X(g.location[1].address = 0xfff, "outside of mapping 1")              \
	X(g.location[1].n_line = 0, "location 2: no name")                    \
	X(g.line.function_id = 0, "location 1: no function 0")                \
	X(g.line.function_id = 3, "location 1: no function 3")                \
	X(g.function[0].id = 0, "function 1: id 0")                           \
	X(g.function[1].name = 0, "function 2: no name")                      \
	X(g.line.line = 5, "mapping 1: has_line_numbers is not set")          \
	X(g.function[0].filename = S_FILE,                                    \
	  "mapping 1: has_filenames is not set")                              \
	X(g.function[1].system_name = 0, "function 2: no name")               \
	X(g.function[1].filename = -5, "function 2: string -5")               \
	X(g.sample[1].n_value = 1, "sample 1: 1 values of 2")                 \
	X(g.values[1][0] = 0, "sample 1: count 0")                            \
	X(g.values[1][1] = 21, "sample 1: 21 ns")                             \
	X(g.sample[0].n_location_id = 0, "sample 0: no frame")                \
	X(g.ids[1] = 3, "sample 0: no location 3")                            \
	X(g.ids[1] = 0, "sample 0: no location 0")                            \
	X(g.label[0].key = 0, "sample 0: label without a key")                \
	X(g.label[0].key = 50, "sample 0: string 50")                         \
	X(g.label[0].str = S_FILE, "\"pid\" is a string and a number")        \
	X((g.label[1].key = S_PID, g.label[1].num = 1),                       \
	  "two values of label \"pid\"")                                      \
	X((g.strings[S_COMM] = "pid"), "two values of label \"pid\"")         \
	X((g.label[2].num = 0, g.label[2].str = S_FILE), "a string elsewhere")

static void each_rule_is_broken_once(void **state)
{
	struct good g;

	good_init(&g);
	expect(buf, pack(&g), NULL, "the good one");
#define X(change, want) \
	good_init(&g);  \
	(void)(change); \
	expect(buf, pack(&g), want, #change);
	BREAKS(X)
#undef X
}

static void malformed_bytes_are_refused(void **state)
{
	struct good g;
	size_t len, i;

	good_init(&g);
	len = pack(&g);
	/* Two profiles one behind the other have time_nanos twice. */
	memcpy(buf + len, buf, len);
	expect(buf, 2 * len, "a second time", "two profiles");
	expect(buf, len - 1, "", "one cut short");
	memcpy(buf + len, "\x82\x01\x00", 3); /* field 16 */
	expect(buf, len + 3, "unknown field 16", "unknown field");
	memcpy(buf + len, "\x48\x81", 2);
	expect(buf, len + 2, "not a protobuf field", "half a varint");
	memcpy(buf + len, "\x4a\x01\x00", 3); /* time_nanos as bytes */
	expect(buf, len + 3, "field 9 of wire type 2", "wire type");
	memcpy(buf + len,
	       "\x32\x03"
	       "a\0b",
	       5);
	expect(buf, len + 5, "has a NUL in it", "a NUL");
	memcpy(buf + len, "\x12\x03\x22\x01\x00", 5); /* Sample.4 */
	expect(buf, len + 5, "sample 2: unknown field 4", "unknown in sample");
	expect("", 0, "no string table", "nothing");
	/* A profile cut anywhere is invalid, and does not crash the checker. */
	for (i = 0; i < len; i++)
		expect(buf, i, "", "a cut");
}

static size_t pack_zstd(const struct good *g, uint8_t *out, size_t cap,
			int checksum, int window_log, bool known_size)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t len = pack(g);
	ZSTD_inBuffer in = { buf, len, 0 };
	ZSTD_outBuffer o = { out, cap, 0 };

	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
	if (known_size)
		ZSTD_CCtx_setPledgedSrcSize(c, len);
	else /* a first piece, so that the size is not known at the header */
		ZSTD_compressStream2(c, &o, &(ZSTD_inBuffer){ buf, 0, 0 },
				     ZSTD_e_continue);
	in.size = len / 2;
	ZSTD_compressStream2(c, &o, &in, ZSTD_e_flush);
	in.size = len;
	assert_int_equal(ZSTD_compressStream2(c, &o, &in, ZSTD_e_end), 0);
	ZSTD_freeCCtx(c);
	return o.pos;
}

static void zstd_is_one_frame_with_checksum_and_a_bounded_window(void **state)
{
	uint8_t out[8192];
	struct good g;
	size_t len;

	good_init(&g);
	len = pack_zstd(&g, out, sizeof(out), 1, 19, true);
	expect(out, len, NULL, "known size");
	len = pack_zstd(&g, out, sizeof(out), 1, 23, false);
	expect(out, len, NULL, "8 MiB");
	memcpy(out + len, out, len);
	expect(out, 2 * len, "behind the frame", "two frames");
	expect(out, len - 3, "zstd: ", "cut");
	out[len - 1] ^= 1;
	expect(out, len, "zstd: ", "wrong checksum");
	len = pack_zstd(&g, out, sizeof(out), 1, 24, false);
	expect(out, len, "window above 8 MiB", "16 MiB");
	len = pack_zstd(&g, out, sizeof(out), 0, 19, false);
	expect(out, len, "without a checksum", "no checksum");
}

static void gzip_is_one_stream(void **state)
{
	uint8_t out[8192];
	z_stream z = { .next_out = out, .avail_out = sizeof(out) };
	struct good g;
	size_t len;

	good_init(&g);
	deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
	z.avail_in = pack(&g);
	z.next_in = buf;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	len = sizeof(out) - z.avail_out;
	deflateEnd(&z);
	expect(out, len, NULL, "good");
	memcpy(out + len, out, len);
	expect(out, 2 * len, "behind the stream", "two streams");
	expect(out, len - 1, "ends early", "cut");
	out[len - 8] ^= 1;
	expect(out, len, "gzip: ", "wrong checksum");
}

/* --- the writer ---------------------------------------------------------- */

/* Writes the profile of good_init() with one sample, parts in any order. */
static void write_one(struct pprof *w)
{
	struct good g;
	size_t i;

	good_init(&g);
	g.ids[0] = 2;
	g.ids[1] = 1;
	g.label[0].num = 300;
	g.p.time_nanos = 5;
	pprof_put(w, PPROF_SAMPLE, &g.sample[0].base);
	for (i = 0; i < 2; i++) {
		pprof_put(w, PPROF_MAPPING, &g.mapping[i].base);
		pprof_put(w, PPROF_LOCATION, &g.location[i].base);
		pprof_put(w, PPROF_FUNCTION, &g.function[i].base);
	}
	for (i = 0; i < S_MAX; i++)
		pprof_string(w, g.strings[i]);
	/* The rest are the members of Profile itself. */
	g.p.n_sample = g.p.n_mapping = g.p.n_location = g.p.n_function = 0;
	g.p.n_string_table = 0;
	pprof_put(w, PPROF_PROFILE, &g.p.base);
}

static void what_is_streamed_is_a_profile(void **state)
{
	struct pprof w = { .sink = NULL };
	const Profile *p;
	size_t len;
	char *data;

	assert_int_equal(sink_new(&w.sink, REPORTER_RAW, -1), 0);
	write_one(&w);
	assert_int_equal(w.err, 0);
	pprof_fini(&w);
	assert_int_equal(sink_finish(w.sink), 0);
	data = sink_steal(w.sink, &len);
	sink_free(w.sink);
	assert_null(pprof_check(data, len));
	free(data);
	p = pprof_checked();
	assert_int_equal(p->time_nanos, 5);
	assert_int_equal(p->duration_nanos, 1);
	assert_int_equal(p->n_comment, 1);
	assert_int_equal(p->n_mapping, 2);
	assert_int_equal(p->mapping[1]->filename, S_KERNEL);
	assert_int_equal(p->n_function, 2);
	assert_int_equal(p->n_sample, 1);
	assert_int_equal(p->sample[0]->n_location_id, 2);
	assert_int_equal(p->sample[0]->location_id[1], 1);
	assert_int_equal(pprof_label_num(p, p->sample[0], "pid"), 300);
	assert_string_equal(pprof_label(p, p->sample[0], "comm"), "/bin/x");
	pprof_check_end();
}

static void a_failing_sink_returns_its_error_at_the_end(void **state)
{
	static const enum reporter_format formats[] = { REPORTER_RAW,
							REPORTER_GZIP,
							REPORTER_ZSTD };
	FILE *full = fopen("/dev/full", "we");
	struct pprof w;
	size_t i, k;

	assert_non_null(full);
	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		w = (struct pprof){ .sink = NULL };
		assert_int_equal(sink_new(&w.sink, formats[i], fileno(full)),
				 0);
		for (k = 0; k < 3000; k++)
			write_one(&w);
		pprof_fini(&w);
		assert_int_equal(sink_finish(w.sink), -28); /* ENOSPC */
		sink_free(w.sink);
	}
	fclose(full);
}

static void utf8_is_checked(void **state)
{
	static const struct {
		const char *s;
		size_t len;
	} cases[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xc2", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xe1\x80", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf1\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xe1\x80\xc0", 0 },
	};
	struct strbuf sb = STRBUF_INIT;
	const char *out;
	uint32_t cp;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		len = strlen(cases[i].s);
		if (text_decode((const unsigned char *)cases[i].s, len, &cp) !=
		    cases[i].len)
			fail_msg("case %zu", i);
		strbuf_reset(&sb);
		out = pprof_utf8(cases[i].s, &len, &sb);
		assert_int_equal(out == cases[i].s, cases[i].len > 0);
	}
	strbuf_reset(&sb);
	len = 7;
	out = pprof_utf8("\xff\0b\xe1\x80z\xc3\xa9", &len, &sb);
	assert_int_equal(len, 15);
	assert_memory_equal(out,
			    "\xef\xbf\xbd\0b\xef\xbf\xbd\xef\xbf\xbdz"
			    "\xef\xbf\xbd",
			    15);
	strbuf_fini(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_is_broken_once),
		cmocka_unit_test(malformed_bytes_are_refused),
		cmocka_unit_test(
			zstd_is_one_frame_with_checksum_and_a_bounded_window),
		cmocka_unit_test(gzip_is_one_stream),
		cmocka_unit_test(what_is_streamed_is_a_profile),
		cmocka_unit_test(a_failing_sink_returns_its_error_at_the_end),
		cmocka_unit_test(utf8_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
