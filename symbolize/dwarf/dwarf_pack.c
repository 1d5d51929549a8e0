// SPDX-License-Identifier: Apache-2.0
/* dwarf_pack: see symbolize/dwarf/dwarf_pack.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/mem/vector.h"
#include "symbolize/dwarf/dwarf_pack.h"

struct dwarf_pack_mark {
	uint32_t start, at;
};

_Static_assert(sizeof(struct dwarf_pack_mark) == DWARF_PACK_MARK, "of a mark");

void dwarf_pack_fini(struct dwarf_pack *p)
{
	strbuf_fini(&p->bytes);
	strbuf_fini(&p->marks);
}

void dwarf_pack_put(struct strbuf *sb, uint32_t v)
{
	uint8_t bytes[5];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	strbuf_add(sb, bytes, n);
}

uint32_t dwarf_bytes_get(const struct dwarf_bytes *b, size_t *at)
{
	uint32_t v = 0;
	uint8_t byte;

	for (unsigned int shift = 0; *at < b->len && shift < 35; shift += 7) {
		byte = b->p[(*at)++];
		v |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return v;
}

/* Small numbers of either sign as small numbers. */
static uint32_t dwarf_pack_fold(uint32_t difference)
{
	return difference << 1 ^ -(difference >> 31);
}

static uint32_t dwarf_pack_unfold(uint32_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

static void dwarf_pack_flush(struct dwarf_pack *p)
{
	const struct dwarf_pack_row *row = &p->pending;
	struct dwarf_pack_mark mark = { row->start, (uint32_t)p->bytes.len };

	if (!p->is_pending)
		return;
	p->is_pending = false;
	if (p->n && row->a == p->last.a && row->b == p->last.b)
		return;
	if (p->n % DWARF_PACK_ROWS == 0) {
		strbuf_add(&p->marks, &mark, sizeof(mark));
		p->last = (struct dwarf_pack_row){ .start = row->start };
	}
	dwarf_pack_put(&p->bytes, row->start - p->last.start);
	dwarf_pack_put(&p->bytes, dwarf_pack_fold(row->a - p->last.a));
	dwarf_pack_put(&p->bytes, dwarf_pack_fold(row->b - p->last.b));
	p->last = *row;
	p->n++;
}

void dwarf_pack_add(struct dwarf_pack *p, const struct dwarf_pack_row *row)
{
	if (p->is_pending && row->start < p->pending.start)
		return;
	if (p->is_pending && row->start > p->pending.start)
		dwarf_pack_flush(p);
	p->pending = *row;
	p->is_pending = true;
}

int dwarf_pack_end(struct dwarf_pack *p)
{
	dwarf_pack_flush(p);
	return strbuf_str(&p->bytes) && strbuf_str(&p->marks) &&
			       p->bytes.len < UINT32_MAX
		       ? 0
		       : -ENOMEM;
}

struct dwarf_rows dwarf_pack_rows(const struct dwarf_pack *p)
{
	return (struct dwarf_rows){
		.marks = (const uint8_t *)p->marks.data,
		.bytes = { (const uint8_t *)p->bytes.data, p->bytes.len },
		.n = p->n,
	};
}

/* --- reading ----------------------------------------------------------------- */

static struct dwarf_pack_mark rows_mark(const struct dwarf_rows *r, size_t i)
{
	struct dwarf_pack_mark mark;

	memcpy(&mark, r->marks + i * sizeof(mark), sizeof(mark));
	return mark;
}

static void rows_next(const struct dwarf_rows *r, size_t *at,
		      struct dwarf_pack_row *row)
{
	row->start += dwarf_bytes_get(&r->bytes, at);
	row->a += dwarf_pack_unfold(dwarf_bytes_get(&r->bytes, at));
	row->b += dwarf_pack_unfold(dwarf_bytes_get(&r->bytes, at));
}

/* Damaged rows may not ascend: none of the found ones contradicts 'at'. */
bool dwarf_rows_find(const struct dwarf_rows *r, uint32_t at,
		     struct dwarf_pack_row *row, uint32_t *next)
{
	size_t n = DWARF_PACK_MARKS(r->n), i, pos;
	struct dwarf_pack_mark mark;
	struct dwarf_pack_row ahead;
	uint32_t left;

	VECTOR_SEARCH(i, n, rows_mark(r, i).start <= at);
	*next = i < n ? rows_mark(r, i).start : UINT32_MAX;
	if (*next <= at)
		*next = UINT32_MAX;
	if (!i)
		return false;
	mark = rows_mark(r, i - 1);
	pos = mark.at;
	left = MIN((uint32_t)DWARF_PACK_ROWS,
		   r->n - (uint32_t)(i - 1) * DWARF_PACK_ROWS);
	ahead = (struct dwarf_pack_row){ .start = mark.start };
	rows_next(r, &pos, &ahead);
	for (*row = ahead; --left > 0; *row = ahead) {
		rows_next(r, &pos, &ahead);
		if (ahead.start > at) {
			*next = ahead.start;
			break;
		}
	}
	return row->start <= at;
}
