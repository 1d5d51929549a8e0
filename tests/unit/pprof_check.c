// SPDX-License-Identifier: Apache-2.0
/*
 * pprof_check: see pprof_check.h. The bytes are looked at twice: as fields, for
 * what a parsed message does not show any more (a field twice, a NUL within a
 * string), and as the message.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "tests/unit/pprof_check.h"

#define CHECK_SIZE_MAX (1UL << 30)
#define CHECK_WINDOW_LOG_MAX 23 /* 8 MiB */

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__Sample Sample;

static const char *const check_cpu[][2] = { { "samples", "count" },
					    { "cpu", "nanoseconds" } };

static struct {
	const char *const (*types)[2];
	size_t n;
} check_want = { check_cpu, ARRAY_SIZE(check_cpu) };

static char check_text[512];
static Profile *check_profile;

static bool fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(check_text, sizeof(check_text), fmt, ap);
	va_end(ap);
	return false;
}

/* --- containers ---------------------------------------------------------- */

/* RFC 8878, 3.1.1.1: one frame, with a checksum, of a bounded window. */
static bool check_zstd_header(const uint8_t *d, size_t len)
{
	size_t frame = ZSTD_findFrameCompressedSize(d, len);
	unsigned int log;

	if (ZSTD_isError(frame))
		return fail("zstd: %s", ZSTD_getErrorName(frame));
	if (frame != len)
		return fail("zstd: %zu bytes behind the frame", len - frame);
	if (!(d[4] & 0x04))
		return fail("zstd: frame without a checksum");
	if (d[4] & 0x20) /* single segment: the window is the content */
		return true;
	log = 10 + (d[5] >> 3);
	if (log > CHECK_WINDOW_LOG_MAX ||
	    (log == CHECK_WINDOW_LOG_MAX && (d[5] & 7)))
		return fail("zstd: window above 8 MiB");
	return true;
}

static bool check_unzstd(const uint8_t *d, size_t len, struct strbuf *out)
{
	ZSTD_DCtx *ctx = ZSTD_createDCtx();
	ZSTD_inBuffer in = { d, len, 0 };
	char buf[65536];
	size_t left = 1;
	bool ok = check_zstd_header(d, len);

	while (ok && left) {
		ZSTD_outBuffer o = { buf, sizeof(buf), 0 };

		left = ZSTD_decompressStream(ctx, &o, &in);
		if (ZSTD_isError(left))
			ok = fail("zstd: %s", ZSTD_getErrorName(left));
		else if (!o.pos && in.pos == in.size && left)
			ok = fail("zstd: frame ends early");
		else
			strbuf_add(out, buf, o.pos);
	}
	ZSTD_freeDCtx(ctx);
	return ok;
}

static bool check_gunzip(const uint8_t *d, size_t len, struct strbuf *out)
{
	z_stream z = { .next_in = (uint8_t *)d, .avail_in = len };
	uint8_t buf[65536];
	int rc = inflateInit2(&z, 15 + 16);

	while (rc == Z_OK && out->len < CHECK_SIZE_MAX) {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		rc = inflate(&z, Z_NO_FLUSH);
		strbuf_add(out, buf, sizeof(buf) - z.avail_out);
	}
	inflateEnd(&z);
	if (rc != Z_STREAM_END)
		return fail("gzip: %s", z.msg ? z.msg : "stream ends early");
	if (z.avail_in)
		return fail("gzip: %u bytes behind the stream", z.avail_in);
	return true;
}

static bool check_unpack(const uint8_t *d, size_t len, struct strbuf *out)
{
	if (len > 5 && !memcmp(d, "\x28\xb5\x2f\xfd", 4))
		return check_unzstd(d, len, out);
	if (len > 2 && !memcmp(d, "\x1f\x8b", 2))
		return check_gunzip(d, len, out);
	strbuf_add(out, d, len);
	return true;
}

/* --- the bytes ----------------------------------------------------------- */

static bool check_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	unsigned int shift;

	*v = 0;
	for (shift = 0; shift < 64 && *p < end; shift += 7) {
		*v |= (uint64_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return true;
	}
	return false;
}

static bool is_utf8(const uint8_t *s, size_t len)
{
	size_t i = 0, k, n;
	uint32_t c;

	while (i < len) {
		c = s[i];
		n = c < 0x80   ? 1
		    : c < 0xc2 ? 0
		    : c < 0xe0 ? 2
		    : c < 0xf0 ? 3
		    : c < 0xf5 ? 4
			       : 0;
		if (!n || n > len - i)
			return false;
		c &= n == 1 ? 0x7f : 0x7f >> n;
		for (k = 1; k < n; k++) {
			if ((s[i + k] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (s[i + k] & 0x3f);
		}
		if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) ||
		    (n == 4 && (c < 0x10000 || c > 0x10ffff)))
			return false;
		i += n;
	}
	return true;
}

static bool check_string(const uint8_t *s, size_t len, size_t index)
{
	if (!index && len)
		return fail("string_table[0] is not \"\"");
	if (!is_utf8(s, len))
		return fail("string_table[%zu] is not UTF-8", index);
	if (memchr(s, 0, len))
		return fail("string_table[%zu] has a NUL in it", index);
	return true;
}

/* Wire types as in the message: 0 varint, 2 bytes. Field 13 may be either. */
static const struct {
	uint8_t wire;
	bool once;
} check_fields[] = {
	[1] = { 2, false }, [2] = { 2, false }, [3] = { 2, false },
	[4] = { 2, false }, [5] = { 2, false }, [6] = { 2, false },
	[7] = { 0, true },  [8] = { 0, true },	[9] = { 0, true },
	[10] = { 0, true }, [11] = { 2, true }, [12] = { 0, true },
	[13] = { 2, true }, [14] = { 0, true }, [15] = { 0, true },
};

static bool check_bytes(const uint8_t *d, size_t len)
{
	const uint8_t *p = d, *end = d + len;
	size_t nstrings = 0, seen[ARRAY_SIZE(check_fields)] = { 0 };
	uint64_t tag, v;

	while (p < end) {
		size_t at = p - d;

		if (!check_varint(&p, end, &tag) || !check_varint(&p, end, &v))
			return fail("byte %zu: not a protobuf field", at);
		if (!(tag >> 3) || tag >> 3 >= ARRAY_SIZE(check_fields))
			return fail("byte %zu: unknown field %llu", at,
				    (unsigned long long)tag >> 3);
		if ((tag & 7) != check_fields[tag >> 3].wire)
			return fail("byte %zu: field %u of wire type %u", at,
				    (unsigned int)tag >> 3,
				    (unsigned int)tag & 7);
		if (seen[tag >> 3]++ && check_fields[tag >> 3].once)
			return fail("byte %zu: field %u a second time", at,
				    (unsigned int)tag >> 3);
		if ((tag & 7) == 0)
			continue;
		if (v > (size_t)(end - p))
			return fail("byte %zu: field %u ends behind the file",
				    at, (unsigned int)tag >> 3);
		if (tag >> 3 == 6 && !check_string(p, v, nstrings++))
			return false;
		p += v;
	}
	return true;
}

/* --- the tables ---------------------------------------------------------- */

static const char *str(const Profile *p, int64_t i)
{
	return p->string_table[i];
}

static bool check_str(const Profile *p, int64_t i, const char *what, size_t n)
{
	if (i < 0 || (uint64_t)i >= p->n_string_table)
		return fail("%s %zu: string %lld of %zu", what, n, (long long)i,
			    p->n_string_table);
	return true;
}

/* A message whose fields are all known ones. */
static bool check_known(const ProtobufCMessage *m, const char *what, size_t n)
{
	if (m->n_unknown_fields)
		return fail("%s %zu: unknown field %u", what, n,
			    m->unknown_fields[0].tag);
	return true;
}

static bool check_type(const Profile *p,
		       const Perftools__Profiles__ValueType *t,
		       const char *type, const char *unit, const char *what,
		       size_t n)
{
	if (!t)
		return fail("%s missing", what);
	if (!check_known(&t->base, what, n) ||
	    !check_str(p, t->type, what, n) || !check_str(p, t->unit, what, n))
		return false;
	if (strchr(str(p, t->type), '-'))
		return fail("%s %zu: '-' in \"%s\"", what, n, str(p, t->type));
	if (strcmp(str(p, t->type), type) || strcmp(str(p, t->unit), unit))
		return fail("%s %zu: %s/%s, not %s/%s", what, n,
			    str(p, t->type), str(p, t->unit), type, unit);
	return true;
}

/* Of the types expected, the one of that name; NULL: none is. */
static const char *const *check_find(const Profile *p, int64_t name)
{
	size_t i;

	for (i = 0; i < check_want.n; i++)
		if (!strcmp(str(p, name), check_want.types[i][0]))
			return check_want.types[i];
	return NULL;
}

static bool check_types(const Profile *p)
{
	size_t i, n = check_want.n;
	const char *const *period;
	const char *name;

	if (p->n_sample_type != n)
		return fail("%zu sample types, not %zu", p->n_sample_type, n);
	for (i = 0; i < n; i++)
		if (!check_type(p, p->sample_type[i], check_want.types[i][0],
				check_want.types[i][1], "sample_type", i))
			return false;
	if (!check_str(p, p->default_sample_type, "default_sample_type", 0))
		return false;
	name = str(p, p->default_sample_type);
	if (check_want.types == check_cpu && strcmp(name, "cpu"))
		return fail("default_sample_type is not cpu");
	if (!check_find(p, p->default_sample_type))
		return fail("default_sample_type %s is none of them", name);
	period = check_want.types[1];
	if (check_want.types != check_cpu && p->period_type &&
	    check_str(p, p->period_type->type, "period_type", 0))
		period = check_find(p, p->period_type->type);
	if (!period)
		return fail("period_type is none of them");
	return check_type(p, p->period_type, period[0], period[1],
			  "period_type", 0);
}

static bool check_header(const Profile *p)
{
	size_t i;

	if (!p->n_string_table)
		return fail("no string table");
	if (!check_types(p) ||
	    !check_str(p, p->drop_frames, "drop_frames", 0) ||
	    !check_str(p, p->keep_frames, "keep_frames", 0) ||
	    !check_str(p, p->doc_url, "doc_url", 0))
		return false;
	if (p->period <= 0)
		return fail("period %lld", (long long)p->period);
	if (p->time_nanos <= 0)
		return fail("time_nanos %lld", (long long)p->time_nanos);
	if (p->duration_nanos <= 0)
		return fail("duration_nanos %lld",
			    (long long)p->duration_nanos);
	for (i = 0; i < p->n_comment; i++)
		if (!check_str(p, p->comment[i], "comment", i))
			return false;
	return true;
}

static bool check_build_id(const char *id)
{
	return strlen(id) % 2 == 0 &&
	       strspn(id, "0123456789abcdef") == strlen(id);
}

static bool check_mapping(const Profile *p, size_t i)
{
	const Perftools__Profiles__Mapping *m = p->mapping[i];

	if (!check_known(&m->base, "mapping", i + 1) ||
	    !check_str(p, m->filename, "mapping", i + 1) ||
	    !check_str(p, m->build_id, "mapping", i + 1))
		return false;
	if (m->id != i + 1)
		return fail("mapping %zu: id %llu", i + 1,
			    (unsigned long long)m->id);
	if (m->memory_start >= m->memory_limit)
		return fail("mapping %zu: empty", i + 1);
	if (!str(p, m->filename)[0])
		return fail("mapping %zu: no file name", i + 1);
	if (!check_build_id(str(p, m->build_id)))
		return fail("mapping %zu: build id is not hex", i + 1);
	return true;
}

static bool check_is_file(const Profile *p, size_t i)
{
	const char *name = str(p, p->mapping[i]->filename);

	return name[0] != '[' && strcmp(name, "//anon") != 0;
}

static bool check_mappings(const Profile *p)
{
	size_t i;

	for (i = 0; i < p->n_mapping; i++)
		if (!check_mapping(p, i))
			return false;
	for (i = 1; i < p->n_mapping; i++)
		if (check_is_file(p, i) && !check_is_file(p, 0))
			return fail("mapping 1 is %s, though there is a file",
				    str(p, p->mapping[0]->filename));
	return true;
}

static bool check_function(const Profile *p, size_t i)
{
	const Perftools__Profiles__Function *f = p->function[i];

	if (!check_known(&f->base, "function", i + 1) ||
	    !check_str(p, f->name, "function", i + 1) ||
	    !check_str(p, f->system_name, "function", i + 1) ||
	    !check_str(p, f->filename, "function", i + 1))
		return false;
	if (f->id != i + 1)
		return fail("function %zu: id %llu", i + 1,
			    (unsigned long long)f->id);
	if (!str(p, f->name)[0] || !str(p, f->system_name)[0])
		return fail("function %zu: no name", i + 1);
	return true;
}

/* Whether a line has a text, "file+0x12" or "[anon]", in place of a name. */
static bool check_is_text(const Profile *p, const Perftools__Profiles__Line *l)
{
	const char *name = str(p, p->function[l->function_id - 1]->name);
	const char *at = strstr(name, "+0x");

	if (!strcmp(name, "[anon]"))
		return true;
	return at && at[3] &&
	       strspn(at + 3, "0123456789abcdef") == strlen(at + 3);
}

/* What a line has, its mapping says: readers look for what it says is not there. */
static bool check_flags(const Profile *p,
			const Perftools__Profiles__Location *l,
			const Perftools__Profiles__Line *line)
{
	const Perftools__Profiles__Mapping *m;

	if (!l->mapping_id)
		return true;
	m = p->mapping[l->mapping_id - 1];
	if (line->line && !m->has_line_numbers)
		return fail("mapping %llu: has_line_numbers is not set",
			    (unsigned long long)m->id);
	if (p->function[line->function_id - 1]->filename && !m->has_filenames)
		return fail("mapping %llu: has_filenames is not set",
			    (unsigned long long)m->id);
	if (check_is_text(p, line) && m->has_functions)
		return fail("mapping %llu: has_functions is set",
			    (unsigned long long)m->id);
	if (l->n_line > 1 && !m->has_inline_frames)
		return fail("mapping %llu: has_inline_frames is not set",
			    (unsigned long long)m->id);
	return true;
}

static bool check_lines(const Profile *p,
			const Perftools__Profiles__Location *l)
{
	size_t i;

	for (i = 0; i < l->n_line; i++) {
		if (!check_known(&l->line[i]->base, "line", i))
			return false;
		if (!l->line[i]->function_id ||
		    l->line[i]->function_id > p->n_function)
			return fail(
				"location %llu: no function %llu",
				(unsigned long long)l->id,
				(unsigned long long)l->line[i]->function_id);
		if (!check_flags(p, l, l->line[i]))
			return false;
	}
	return true;
}

static bool check_bare;

static bool check_location(const Profile *p, size_t i)
{
	const Perftools__Profiles__Location *l = p->location[i];
	const Perftools__Profiles__Mapping *m;

	if (!check_known(&l->base, "location", i + 1))
		return false;
	if (l->id != i + 1)
		return fail("location %zu: id %llu", i + 1,
			    (unsigned long long)l->id);
	if (!l->n_line && !check_bare)
		return fail("location %zu: no name", i + 1);
	if (l->mapping_id > p->n_mapping)
		return fail("location %zu: no mapping %llu", i + 1,
			    (unsigned long long)l->mapping_id);
	if (!l->mapping_id && l->address)
		return fail("location %zu: an address without mapping", i + 1);
	m = l->mapping_id ? p->mapping[l->mapping_id - 1] : NULL;
	if (!l->n_line && (!m || m->has_functions))
		return fail("location %zu: no name, nor a mapping without",
			    i + 1);
	if (m &&
	    (l->address < m->memory_start || l->address >= m->memory_limit))
		return fail("location %zu: address 0x%llx outside of mapping "
			    "%llu",
			    i + 1, (unsigned long long)l->address,
			    (unsigned long long)m->id);
	return check_lines(p, l);
}

/* Without it readers look for names: then one is not known. */
static bool check_nameless(const Profile *p, size_t i)
{
	const Perftools__Profiles__Location *l;

	if (p->mapping[i]->has_functions)
		return true;
	for (size_t k = 0; k < p->n_location; k++) {
		l = p->location[k];
		if (l->mapping_id == i + 1 &&
		    (!l->n_line || check_is_text(p, l->line[0])))
			return true;
	}
	return fail("mapping %zu: has_functions is not set", i + 1);
}

/* --- samples ------------------------------------------------------------- */

/* Per string: 1 used as the key of strings, 2 of numbers. */
static bool check_label(const Profile *p, const Sample *s, size_t n, size_t i,
			uint8_t *kinds)
{
	const Perftools__Profiles__Label *l = s->label[i];
	size_t k;

	if (!check_known(&l->base, "sample", n) ||
	    !check_str(p, l->key, "sample", n) ||
	    !check_str(p, l->str, "sample", n) ||
	    !check_str(p, l->num_unit, "sample", n))
		return false;
	if (!l->key)
		return fail("sample %zu: label without a key", n);
	for (k = 0; k < i; k++)
		if (!strcmp(str(p, s->label[k]->key), str(p, l->key)))
			return fail("sample %zu: two values of label \"%s\"", n,
				    str(p, l->key));
	if (l->str && (l->num || l->num_unit))
		return fail("sample %zu: label \"%s\" is a string and a number",
			    n, str(p, l->key));
	kinds[l->key] |= l->str ? 1 : 2;
	if (kinds[l->key] == 3)
		return fail("sample %zu: label \"%s\" is a number here, a "
			    "string elsewhere",
			    n, str(p, l->key));
	return true;
}

static bool check_values(const Profile *p, const Sample *s, size_t n)
{
	bool any = false;
	size_t i;

	if (s->n_value != p->n_sample_type)
		return fail("sample %zu: %zu values of %zu", n, s->n_value,
			    p->n_sample_type);
	if (check_want.types != check_cpu) {
		for (i = 0; i < s->n_value; i++) {
			if (s->value[i] < 0)
				return fail("sample %zu: value %lld", n,
					    (long long)s->value[i]);
			any |= s->value[i] > 0;
		}
		return any || fail("sample %zu: no value", n);
	}
	if (s->value[0] <= 0)
		return fail("sample %zu: count %lld", n,
			    (long long)s->value[0]);
	if (s->value[1] != s->value[0] * p->period)
		return fail("sample %zu: %lld ns, not count x period", n,
			    (long long)s->value[1]);
	return true;
}

static bool check_sample(const Profile *p, size_t n, uint8_t *kinds)
{
	const Sample *s = p->sample[n];
	size_t i;

	if (!check_known(&s->base, "sample", n) || !check_values(p, s, n))
		return false;
	if (!s->n_location_id)
		return fail("sample %zu: no frame", n);
	for (i = 0; i < s->n_location_id; i++)
		if (!s->location_id[i] || s->location_id[i] > p->n_location)
			return fail("sample %zu: no location %llu", n,
				    (unsigned long long)s->location_id[i]);
	for (i = 0; i < s->n_label; i++)
		if (!check_label(p, s, n, i, kinds))
			return false;
	return true;
}

static bool check_message(const Profile *p)
{
	uint8_t *kinds;
	bool ok = true;
	size_t i;

	if (!check_header(p) || !check_mappings(p))
		return false;
	for (i = 0; i < p->n_function; i++)
		if (!check_function(p, i))
			return false;
	for (i = 0; i < p->n_location; i++)
		if (!check_location(p, i))
			return false;
	for (i = 0; i < p->n_mapping; i++)
		if (!check_nameless(p, i))
			return false;
	kinds = calloc(p->n_string_table, 1);
	for (i = 0; i < p->n_sample && ok; i++)
		ok = check_sample(p, i, kinds);
	free(kinds);
	return ok;
}

void pprof_check_expect(const char *const (*types)[2], size_t n)
{
	check_want.types = types ? types : check_cpu;
	check_want.n = types ? n : ARRAY_SIZE(check_cpu);
}

void pprof_check_bare(bool bare)
{
	check_bare = bare;
}

void pprof_check_end(void)
{
	if (check_profile)
		perftools__profiles__profile__free_unpacked(check_profile,
							    NULL);
	check_profile = NULL;
}

const char *pprof_check(const void *data, size_t len)
{
	struct strbuf raw = STRBUF_INIT;
	Profile *p = NULL;
	bool ok;

	pprof_check_end();
	ok = check_unpack(data, len, &raw) &&
	     check_bytes((uint8_t *)raw.data, raw.len);
	if (ok) {
		p = perftools__profiles__profile__unpack(NULL, raw.len,
							 (uint8_t *)raw.data);
		ok = p ? check_message(p) : fail("not a profile");
	}
	strbuf_fini(&raw);
	check_profile = p;
	if (!ok)
		pprof_check_end();
	return ok ? NULL : check_text;
}

const char *pprof_check_file(const char *path)
{
	struct strbuf sb = STRBUF_INIT;
	FILE *f = fopen(path, "re");
	const char *wrong;
	char buf[65536];
	size_t n;

	if (!f) {
		fail("%s", strerror(errno));
		return check_text;
	}
	while ((n = fread(buf, 1, sizeof(buf), f)))
		strbuf_add(&sb, buf, n);
	fclose(f);
	wrong = pprof_check(sb.data, sb.len);
	strbuf_fini(&sb);
	return wrong;
}

/* --- for tests ----------------------------------------------------------- */

const Profile *pprof_checked(void)
{
	return check_profile;
}

static const Perftools__Profiles__Label *label(const Profile *p,
					       const Sample *s, const char *key)
{
	size_t i;

	for (i = 0; i < s->n_label; i++)
		if (!strcmp(str(p, s->label[i]->key), key))
			return s->label[i];
	return NULL;
}

const char *pprof_label(const Profile *p, const Sample *s, const char *key)
{
	const Perftools__Profiles__Label *l = label(p, s, key);

	return l && l->str ? str(p, l->str) : NULL;
}

int64_t pprof_label_num(const Profile *p, const Sample *s, const char *key)
{
	const Perftools__Profiles__Label *l = label(p, s, key);

	return l ? l->num : -1;
}

const char *pprof_frame(const Profile *p, const Sample *s, size_t i)
{
	const Perftools__Profiles__Location *l;

	if (i >= s->n_location_id)
		return "";
	l = p->location[s->location_id[i] - 1];
	return str(p, p->function[l->line[0]->function_id - 1]->name);
}

const Perftools__Profiles__Mapping *
pprof_frame_mapping(const Profile *p, const Sample *s, size_t i)
{
	const Perftools__Profiles__Location *l;

	l = p->location[s->location_id[i] - 1];
	return l->mapping_id ? p->mapping[l->mapping_id - 1] : NULL;
}

int64_t pprof_sum(const Profile *p, const char *type)
{
	int64_t sum = 0;
	size_t i, k = 0;

	while (k < p->n_sample_type &&
	       strcmp(str(p, p->sample_type[k]->type), type))
		k++;
	if (k == p->n_sample_type)
		return -1;
	for (i = 0; i < p->n_sample; i++)
		sum += p->sample[i]->value[k];
	return sum;
}

int64_t pprof_samples(const Profile *p)
{
	return pprof_sum(p, "samples");
}

bool pprof_has_comment(const Profile *p, const char *text)
{
	size_t i;

	for (i = 0; i < p->n_comment; i++)
		if (strstr(str(p, p->comment[i]), text))
			return true;
	return false;
}
