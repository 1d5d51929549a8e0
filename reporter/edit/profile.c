// SPDX-License-Identifier: Apache-2.0
/* profile: see reporter/edit/profile.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/edit/edit.h"
#include "reporter/pprof.h"
#include "reporter/sink.h"

/* --- what is in it ---------------------------------------------------------- */

int64_t reporter_profile_time(const struct reporter_profile *p)
{
	return p->time;
}

bool reporter_profile_comment(const struct reporter_profile *p, size_t i,
			      char *out, size_t size)
{
	struct edit_bytes b;
	size_t len;

	if (i >= p->ncomments)
		return false;
	b = edit_text(p, p->comments[i]);
	len = MIN(b.len, size - 1);
	memcpy(out, b.p, len);
	out[len] = '\0';
	return true;
}

size_t reporter_profile_mappings(const struct reporter_profile *p)
{
	return p->nmappings;
}

/* "" if it does not fit, or is not a C string. */
static void profile_copy(struct edit_bytes b, char *out, size_t size)
{
	size_t len = b.len < size && !memchr(b.p, 0, b.len) ? b.len : 0;

	memcpy(out, b.p, len);
	out[len] = '\0';
}

void reporter_profile_mapping(const struct reporter_profile *p, size_t i,
			      struct reporter_profile_mapping *out)
{
	const struct edit_mapping *m = &p->mappings[i];

	profile_copy(edit_text(p, m->path), out->path, sizeof(out->path));
	profile_copy(edit_text(p, m->build_id), out->build_id,
		     sizeof(out->build_id));
	out->start = m->start;
	out->offset = m->offset;
}

size_t reporter_profile_locations(const struct reporter_profile *p)
{
	return p->nlocations;
}

void reporter_profile_location(const struct reporter_profile *p, size_t i,
			       struct reporter_profile_location *out)
{
	const struct edit_location *l = &p->locations[i];

	*out = (struct reporter_profile_location){
		.mapping = l->mapping ? l->mapping - 1 : REPORTER_PROFILE_NONE,
		.address = l->address,
		.named = l->named,
		.lined = l->lined,
	};
}

/* --- new lines --------------------------------------------------------------- */

static int profile_text(struct reporter_profile *p, const char *s,
			uint32_t *out)
{
	struct strbuf sb = STRBUF_INIT;
	size_t len = strlen(s);
	const char *text = pprof_utf8(s, &len, &sb);
	int64_t id = text ? strtab_id_len(&p->texts, text, len) : -ENOMEM;

	strbuf_fini(&sb);
	*out = id > 0 ? (uint32_t)id : 0;
	return id < 0 ? -ENOMEM : 0;
}

static bool profile_same(const struct edit_new *a, const struct edit_new *b)
{
	return a->name == b->name && a->system_name == b->system_name &&
	       a->file == b->file && a->start_line == b->start_line;
}

/* The index of a new function. */
static int profile_function(struct reporter_profile *p,
			    const struct reporter_function *f, uint32_t *out)
{
	struct edit_new key = { .start_line = f->start_line }, *e;
	uint64_t h;
	int err = profile_text(p, f->name, &key.name);

	if (!err)
		err = profile_text(p, f->system_name, &key.system_name);
	if (!err)
		err = profile_text(p, f->file, &key.file);
	if (err)
		return err;
	h = hash_mix(hash_mix(key.name, key.system_name),
		     (uint64_t)key.file << 32 | key.start_line);
	HASH_FIND(e, &p->known, h, node, profile_same(e, &key));
	if (!e) {
		if (VECTOR_ROOM(p->added, p->nadded, p->added_cap))
			return -ENOMEM;
		e = arena_memdup(&p->arena, &key, sizeof(key));
		if (!e)
			return -ENOMEM;
		e->index = (uint32_t)p->nadded;
		p->added[p->nadded++] = e;
		hash_insert(&p->known, &e->node, h);
	}
	*out = e->index;
	return 0;
}

int reporter_profile_set(struct reporter_profile *p, size_t i,
			 const struct reporter_line *lines, size_t n)
{
	struct edit_location *l = &p->locations[i];
	struct edit_mapping *m =
		l->mapping ? &p->mappings[l->mapping - 1] : NULL;
	struct edit_line *to;
	size_t k;
	int err = 0;

	if (p->arena.bytes + p->texts.arena.bytes > REPORTER_PROFILE_MAX)
		return -EFBIG;
	to = arena_alloc(&p->arena, n * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (k = 0; k < n && !err; k++) {
		to[k].line = lines[k].line;
		err = profile_function(p, lines[k].function, &to[k].function);
	}
	if (err)
		return err;
	l->lines = to;
	l->nlines = (uint32_t)n;
	if (!m)
		return 0;
	m->named += !l->named;
	l->named = true;
	m->set = true;
	for (k = 0; k < n; k++) {
		m->flags[1] |= *lines[k].function->file != 0;
		m->flags[2] |= lines[k].line != 0;
	}
	m->flags[3] |= n > 1;
	m->flags[0] |= m->named == m->locations;
	return 0;
}

/* --- writing ------------------------------------------------------------------ */

static void write_varint(struct strbuf *sb, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		b[n++] = (uint8_t)(v | 0x80);
	b[n++] = (uint8_t)v;
	strbuf_add(sb, b, n);
}

static void write_number(struct strbuf *sb, unsigned int field, uint64_t v)
{
	write_varint(sb, field << 3 | EDIT_VARINT);
	write_varint(sb, v);
}

/* Appends the fields of a message, except those from 'first' to 'last'. */
static void write_rest(struct strbuf *sb, struct edit_bytes msg, uint64_t first,
		       uint64_t last)
{
	struct edit_field f;

	while (edit_next(&msg, &f) > 0)
		if (f.number < first || f.number > last)
			strbuf_add(sb, f.whole.p, f.whole.len);
}

static void write_line(struct strbuf *sb, const struct reporter_profile *p,
		       const struct edit_line *l)
{
	uint64_t last = p->nfunctions ? p->functions[p->nfunctions - 1].id : 0;
	struct strbuf msg = STRBUF_INIT;

	write_number(&msg, EDIT_LINE_FUNCTION, last + 1 + l->function);
	if (l->line)
		write_number(&msg, EDIT_LINE_LINE, l->line);
	write_varint(sb, EDIT_LOCATION_LINE << 3 | EDIT_LEN);
	write_varint(sb, msg.len);
	strbuf_add(sb, msg.data, msg.len);
	sb->failed |= msg.failed;
	strbuf_fini(&msg);
}

/* A location or mapping that has changed, without its tag. */
static void write_location(struct strbuf *sb, const struct reporter_profile *p,
			   const struct edit_location *l)
{
	write_rest(sb, l->msg, EDIT_LOCATION_LINE, EDIT_LOCATION_LINE);
	for (size_t i = 0; i < l->nlines; i++)
		write_line(sb, p, &l->lines[i]);
}

static void write_mapping(struct strbuf *sb, struct edit_bytes msg,
			  const struct edit_mapping *m)
{
	size_t n = ARRAY_SIZE(m->flags);

	write_rest(sb, msg, EDIT_MAPPING_FLAGS, EDIT_MAPPING_FLAGS + n - 1);
	for (size_t i = 0; i < n; i++)
		if (m->flags[i])
			write_number(sb, EDIT_MAPPING_FLAGS + i, true);
}

/* How far reporter_profile_write() is. */
struct writing {
	const struct reporter_profile *p;
	struct sink *sink;
	const uint8_t *from; /* copied as it is, from here to the next change */
	size_t mapping, location; /* index of the next one */
	struct strbuf msg;
	int err;
};

/* Writes what was not changed before 'f', and 'w->msg' instead of it. */
static void write_changed(struct writing *w, const struct edit_field *f)
{
	struct strbuf head = STRBUF_INIT;

	sink_write(w->sink, w->from, (size_t)(f->whole.p - w->from));
	w->from = f->whole.p + f->whole.len;
	write_varint(&head, f->number << 3 | EDIT_LEN);
	write_varint(&head, w->msg.len);
	if (head.failed || w->msg.failed)
		w->err = -ENOMEM;
	sink_write(w->sink, head.data, head.len);
	sink_write(w->sink, w->msg.data, w->msg.len);
	strbuf_fini(&head);
	strbuf_reset(&w->msg);
}

static void write_field(struct writing *w, const struct edit_field *f)
{
	const struct edit_location *l;
	const struct edit_mapping *m;

	if (f->number == EDIT_MAPPING) {
		m = &w->p->mappings[w->mapping++];
		if (!m->set)
			return;
		write_mapping(&w->msg, f->bytes, m);
		write_changed(w, f);
	} else if (f->number == EDIT_LOCATION) {
		l = &w->p->locations[w->location++];
		if (!l->nlines)
			return;
		write_location(&w->msg, w->p, l);
		write_changed(w, f);
	}
}

static uint64_t write_text_id(const struct reporter_profile *p, uint32_t text)
{
	return text ? p->nstrings + text - 1 : 0;
}

/* The functions and strings that are new. */
static void write_added(struct writing *w)
{
	const struct reporter_profile *p = w->p;
	uint64_t id = p->nfunctions ? p->functions[p->nfunctions - 1].id : 0;
	struct pprof pprof = { .sink = w->sink };
	size_t i;

	for (i = 0; i < p->nadded; i++) {
		Perftools__Profiles__Function m =
			PERFTOOLS__PROFILES__FUNCTION__INIT;
		const struct edit_new *e = p->added[i];

		m.id = ++id;
		m.name = (int64_t)write_text_id(p, e->name);
		m.system_name = (int64_t)write_text_id(p, e->system_name);
		m.filename = (int64_t)write_text_id(p, e->file);
		m.start_line = e->start_line;
		pprof_put(&pprof, PPROF_FUNCTION, &m.base);
	}
	for (i = 1; i < p->texts.count; i++)
		pprof_string(&pprof, strtab_str(&p->texts, (uint32_t)i));
	w->err = w->err ? w->err : pprof.err;
	pprof_fini(&pprof);
}

int reporter_profile_write(struct reporter_profile *p, int fd, int format)
{
	struct edit_bytes msg = { p->data, p->len };
	struct writing w = { .p = p, .from = p->data };
	struct edit_field f;
	int err = sink_new(&w.sink, (enum reporter_format)format, fd);

	if (err)
		return err;
	while (edit_next(&msg, &f) > 0)
		write_field(&w, &f);
	sink_write(w.sink, w.from, (size_t)(p->data + p->len - w.from));
	write_added(&w);
	err = sink_finish(w.sink);
	sink_free(w.sink);
	strbuf_fini(&w.msg);
	return w.err ? w.err : err;
}
