// SPDX-License-Identifier: Apache-2.0
/* dwarf_record: see symbolize/units/dwarf_record.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/units/dwarf_record.h"

/* Bytes before the tables. */
static size_t record_front(uint32_t n, uint32_t texts_len)
{
	size_t len = sizeof(struct dwarf_record_head) +
		     n * sizeof(struct dwarf_record_table) + texts_len;

	return (len + DWARF_TABLE_ALIGN - 1) & ~(size_t)(DWARF_TABLE_ALIGN - 1);
}

/* --- making ------------------------------------------------------------------ */

int dwarf_making_add(struct dwarf_making *m, uint32_t unit,
		     const struct dwarf_source *from)
{
	size_t before = m->tables.len;
	int err = VECTOR_ROOM(m->all, m->n, m->cap);

	if (!err)
		err = dwarf_table_add(&m->tables, &m->texts, from);
	if (!err && m->tables.len > UINT32_MAX)
		err = -EFBIG;
	if (err)
		return err;
	m->all[m->n++] = (struct dwarf_record_table){
		.unit = unit,
		.at = (uint32_t)before,
		.len = (uint32_t)(m->tables.len - before),
	};
	return 0;
}

size_t dwarf_making_bytes(const struct dwarf_making *m)
{
	return record_front(m->n, m->texts.len) + m->tables.len;
}

struct dwarf_record *dwarf_making_end(const struct dwarf_making *m)
{
	const struct dwarf_record_head head = { m->n, m->texts.len };
	size_t front = record_front(m->n, m->texts.len);
	struct dwarf_record_table *to;
	struct dwarf_record *r;

	if (dwarf_making_bytes(m) > UINT32_MAX)
		return NULL;
	r = dwarf_record_new((uint32_t)dwarf_making_bytes(m));
	if (!r)
		return NULL;
	memset(r->bytes, 0, front);
	memcpy(r->bytes, &head, sizeof(head));
	to = (void *)(r->bytes + sizeof(head));
	for (uint32_t i = 0; i < m->n; i++) {
		to[i] = m->all[i];
		to[i].at += (uint32_t)front;
	}
	if (m->texts.len)
		memcpy(to + m->n, m->texts.bytes, m->texts.len);
	if (m->tables.len)
		memcpy(r->bytes + front, m->tables.data, m->tables.len);
	return r;
}

void dwarf_making_fini(struct dwarf_making *m)
{
	dwarf_text_fini(&m->texts);
	strbuf_fini(&m->tables);
	free(m->all);
	*m = (struct dwarf_making){ 0 };
}

/* --- a record ---------------------------------------------------------------- */

struct dwarf_record *dwarf_record_new(uint32_t len)
{
	struct dwarf_record *r = malloc(sizeof(*r) + len);

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->len = len;
	return r;
}

static struct dwarf_record_head record_head(const struct dwarf_record *r)
{
	struct dwarf_record_head head;

	memcpy(&head, r->bytes, sizeof(head));
	return head;
}

static struct dwarf_texts record_texts(const struct dwarf_record *r)
{
	struct dwarf_record_head head = record_head(r);

	return (struct dwarf_texts){
		(const char *)r->bytes + sizeof(head) +
			head.n * sizeof(struct dwarf_record_table),
		head.texts_len,
	};
}

uint32_t dwarf_record_count(const struct dwarf_record *r)
{
	return record_head(r).n;
}

struct dwarf_record_table dwarf_record_at(const struct dwarf_record *r,
					  uint32_t i)
{
	struct dwarf_record_table t;

	memcpy(&t, r->bytes + sizeof(struct dwarf_record_head) + i * sizeof(t),
	       sizeof(t));
	return t;
}

bool dwarf_record_ok(const struct dwarf_record *r, uint32_t n_units)
{
	struct dwarf_record_head head;
	struct dwarf_record_table t;
	struct dwarf_texts texts;

	if (r->len < sizeof(head))
		return false;
	head = record_head(r);
	if (head.n > n_units || record_front(head.n, head.texts_len) > r->len)
		return false;
	texts = record_texts(r);
	if (!dwarf_texts_ok(&texts))
		return false;
	for (uint32_t i = 0; i < head.n; i++) {
		t = dwarf_record_at(r, i);
		if (t.unit >= n_units || t.at > r->len || t.len > r->len - t.at)
			return false;
	}
	return true;
}

struct dwarf_table dwarf_record_table(const struct dwarf_record *r, uint32_t at,
				      uint32_t len,
				      const struct dwarf_bounds *bounds)
{
	return (struct dwarf_table){
		.p = r->bytes + at,
		.len = len,
		.texts = record_texts(r),
		.bounds = *bounds,
	};
}
