// SPDX-License-Identifier: Apache-2.0
/* pprof: see reporter/pprof.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reporter/pprof.h"
#include "reporter/profile.pb-c.h"

/* Field numbers of Profile, as in profile.proto. */
enum pprof_field {
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING = 6,
};

#define PPROF_WIRE_BYTES 2 /* length-delimited */
#define PPROF_PREFIX_MAX 11 /* a byte of field number, a varint */

struct pprof {
	struct sink *sink;
	int err;
	uint8_t *buf;
	size_t buf_cap;
	uint64_t *ids;
	size_t ids_cap;
	Perftools__Profiles__Line *line;
	Perftools__Profiles__Line **lines;
	size_t line_cap, lines_cap;
	Perftools__Profiles__Label label[PPROF_LABELS_MAX];
	Perftools__Profiles__Label *labels[PPROF_LABELS_MAX];
};

int pprof_new(struct pprof **pp, struct sink *sink)
{
	struct pprof *p = calloc(1, sizeof(*p));
	size_t i;

	if (!p)
		return -ENOMEM;
	p->sink = sink;
	for (i = 0; i < PPROF_LABELS_MAX; i++)
		p->labels[i] = &p->label[i];
	*pp = p;
	return 0;
}

void pprof_free(struct pprof *p)
{
	if (!p)
		return;
	free(p->buf);
	free(p->ids);
	free(p->line);
	free(p->lines);
	free(p);
}

int pprof_error(const struct pprof *p)
{
	return p->err;
}

/* Room for 'n' members; what was in it is gone. NULL without memory. */
static void *pprof_room(struct pprof *p, void *old, size_t *cap, size_t n,
			size_t size)
{
	size_t want = MAX(MAX(n, 2 * *cap), 64);

	if (n <= *cap && old)
		return old;
	free(old);
	old = calloc(want, size);
	*cap = old ? want : 0;
	if (!old)
		p->err = -ENOMEM;
	return old;
}

static void pprof_prefix(struct pprof *p, enum pprof_field field, size_t len)
{
	uint8_t b[PPROF_PREFIX_MAX];
	size_t n = 0;

	b[n++] = field << 3 | PPROF_WIRE_BYTES;
	for (; len > 0x7f; len >>= 7)
		b[n++] = len | 0x80;
	b[n++] = len;
	sink_write(p->sink, b, n);
}

/* Packs 'm'; false without memory. The message is in p->buf. */
static bool pprof_pack(struct pprof *p, const ProtobufCMessage *m, size_t *len)
{
	*len = protobuf_c_message_get_packed_size(m);
	p->buf = pprof_room(p, p->buf, &p->buf_cap, *len, 1);
	if (!p->buf)
		return false;
	protobuf_c_message_pack(m, p->buf);
	return true;
}

static void pprof_put(struct pprof *p, enum pprof_field field,
		      const ProtobufCMessage *m)
{
	size_t len;

	if (!pprof_pack(p, m, &len))
		return;
	pprof_prefix(p, field, len);
	sink_write(p->sink, p->buf, len);
}

static void pprof_set_type(Perftools__Profiles__ValueType *v,
			   const struct pprof_type *t)
{
	perftools__profiles__value_type__init(v);
	v->type = t->type;
	v->unit = t->unit;
}

/* A Profile without its tables: what is put before or behind belongs to it. */
void pprof_header(struct pprof *p, const struct pprof_header *h)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType period_type, *types, **type;
	size_t len, i;

	types = calloc(h->ntypes, sizeof(*types));
	type = calloc(h->ntypes, sizeof(*type));
	if (!types || !type) {
		p->err = -ENOMEM;
		goto out;
	}
	for (i = 0; i < h->ntypes; i++) {
		pprof_set_type(&types[i], &h->types[i]);
		type[i] = &types[i];
	}
	pprof_set_type(&period_type, &h->period_type);
	m.sample_type = type;
	m.n_sample_type = h->ntypes;
	m.time_nanos = h->time_ns;
	m.duration_nanos = h->duration_ns;
	m.period_type = &period_type;
	m.period = h->period;
	m.default_sample_type = h->default_type;
	m.comment = (int64_t *)h->comments;
	m.n_comment = h->ncomments;
	if (pprof_pack(p, &m.base, &len))
		sink_write(p->sink, p->buf, len);
out:
	free(type);
	free(types);
}

void pprof_sample(struct pprof *p, const struct pprof_sample *s)
{
	Perftools__Profiles__Sample m = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Label *l;
	size_t i;

	p->ids = pprof_room(p, p->ids, &p->ids_cap, s->nlocations,
			    sizeof(*p->ids));
	if (!p->ids)
		return;
	for (i = 0; i < s->nlocations; i++)
		p->ids[i] = s->locations[i];
	for (i = 0; i < s->nlabels; i++) {
		l = &p->label[i];
		perftools__profiles__label__init(l);
		l->key = s->labels[i].key;
		l->str = s->labels[i].str;
		l->num = s->labels[i].num;
	}
	m.location_id = p->ids;
	m.n_location_id = s->nlocations;
	m.value = (int64_t *)s->values;
	m.n_value = s->nvalues;
	m.label = p->labels;
	m.n_label = s->nlabels;
	pprof_put(p, PPROF_SAMPLE, &m.base);
}

void pprof_mapping(struct pprof *p, const struct pprof_mapping *mp)
{
	Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;

	m.id = mp->id;
	m.memory_start = mp->start;
	m.memory_limit = mp->limit;
	m.file_offset = mp->offset;
	m.filename = mp->filename;
	m.build_id = mp->build_id;
	/* Keeps readers from looking for symbols on the machine they are on. */
	m.has_functions = true;
	m.has_filenames = mp->filenames;
	m.has_line_numbers = mp->line_numbers;
	m.has_inline_frames = mp->inline_frames;
	pprof_put(p, PPROF_MAPPING, &m.base);
}

static bool pprof_lines_room(struct pprof *p, size_t n)
{
	p->line = pprof_room(p, p->line, &p->line_cap, n, sizeof(*p->line));
	p->lines = pprof_room(p, p->lines, &p->lines_cap, n,
			      sizeof(Perftools__Profiles__Line *));
	return p->line && p->lines;
}

void pprof_location(struct pprof *p, const struct pprof_location *l)
{
	Perftools__Profiles__Location m = PERFTOOLS__PROFILES__LOCATION__INIT;
	size_t i;

	if (!pprof_lines_room(p, l->nlines))
		return;
	for (i = 0; i < l->nlines; i++) {
		perftools__profiles__line__init(&p->line[i]);
		p->line[i].function_id = l->lines[i].function;
		p->line[i].line = l->lines[i].line;
		p->lines[i] = &p->line[i];
	}
	m.id = l->id;
	m.mapping_id = l->mapping_id;
	m.address = l->address;
	m.line = p->lines;
	m.n_line = l->nlines;
	pprof_put(p, PPROF_LOCATION, &m.base);
}

void pprof_function(struct pprof *p, const struct pprof_function *f)
{
	Perftools__Profiles__Function m = PERFTOOLS__PROFILES__FUNCTION__INIT;

	m.id = f->id;
	m.name = f->name;
	m.system_name = f->system_name;
	m.filename = f->filename;
	m.start_line = f->start_line;
	pprof_put(p, PPROF_FUNCTION, &m.base);
}

/*
 * Unicode 15, table 3-7: the second byte's range depends on the first, so that
 * overlong forms, surrogates and what is above U+10FFFF are not valid.
 */
static const struct {
	uint8_t first_lo, first_hi;
	uint8_t second_lo, second_hi;
	uint8_t len;
} pprof_utf8_forms[] = {
	{ 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 },
	{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
	{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
	{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
	{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

size_t pprof_utf8(const unsigned char *s)
{
	size_t i, k, n = ARRAY_SIZE(pprof_utf8_forms);

	for (i = 0; i < n && s[0] > pprof_utf8_forms[i].first_hi; i++)
		;
	if (i == n || s[0] < pprof_utf8_forms[i].first_lo)
		return 0;
	if (pprof_utf8_forms[i].len == 1)
		return 1;
	if (s[1] < pprof_utf8_forms[i].second_lo ||
	    s[1] > pprof_utf8_forms[i].second_hi)
		return 0;
	/* A NUL ends the loop: it is no continuation byte. */
	for (k = 2; k < pprof_utf8_forms[i].len; k++)
		if ((s[k] & 0xc0) != 0x80)
			return 0;
	return k;
}

static const char pprof_replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

void pprof_string(struct pprof *p, const char *str)
{
	const unsigned char *s = (const unsigned char *)str;
	size_t i, n, len = 0, bad = 0;

	for (i = 0; s[i]; i += n ? n : 1) {
		n = pprof_utf8(s + i);
		len += n ? n : sizeof(pprof_replacement) - 1;
		bad += !n;
	}
	pprof_prefix(p, PPROF_STRING, len);
	if (!bad) {
		sink_write(p->sink, s, len);
		return;
	}
	for (i = 0; s[i]; i += n ? n : 1) {
		n = pprof_utf8(s + i);
		if (n)
			sink_write(p->sink, s + i, n);
		else
			sink_write(p->sink, pprof_replacement,
				   sizeof(pprof_replacement) - 1);
	}
}
