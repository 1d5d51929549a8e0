/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_pack: rows of two numbers by ascending address, packed; see
 * symbolize/dwarf/dwarf_table.h. They are made in a dwarf_pack, and read wherever
 * their bytes are, which may be any.
 */
#ifndef SYMBOLIZE_DWARF_PACK_H
#define SYMBOLIZE_DWARF_PACK_H

#include <stdint.h>

#include "base/strbuf.h"

#define DWARF_PACK_ROWS 32

struct dwarf_pack_row {
	uint32_t start;
	uint32_t a, b;
};

/* 'bytes' and 'marks' may be read when all rows were added. */
struct dwarf_pack {
	struct strbuf bytes, marks;
	struct dwarf_pack_row last, pending;
	uint32_t n; /* rows in 'bytes' */
	bool is_pending;
};

/* Bytes of a mark: the address of a row, and where it is in 'bytes'. */
#define DWARF_PACK_MARK 8

/* Numbers as LEB128. */
struct dwarf_bytes {
	const uint8_t *p;
	size_t len;
};

/* The rows of a dwarf_pack: 'marks' has DWARF_PACK_MARKS(n) of them. */
struct dwarf_rows {
	const uint8_t *marks;
	struct dwarf_bytes bytes;
	uint32_t n;
};

#define DWARF_PACK_MARKS(n) \
	(((size_t)(n) + DWARF_PACK_ROWS - 1) / DWARF_PACK_ROWS)

void dwarf_pack_fini(struct dwarf_pack *p);

/*
 * Adds a row; of several with the same address the last counts, and one below the
 * address of the row before is left out.
 */
void dwarf_pack_add(struct dwarf_pack *p, const struct dwarf_pack_row *row);
/* After the last row. 0 or -ENOMEM. */
int dwarf_pack_end(struct dwarf_pack *p);
/* Those of a pack that was ended; valid as long as it is. */
struct dwarf_rows dwarf_pack_rows(const struct dwarf_pack *p);

/*
 * The last row that does not begin behind 'at', and where the next one begins, or
 * UINT32_MAX: row->start <= at < *next. False: there is none.
 */
bool dwarf_rows_find(const struct dwarf_rows *r, uint32_t at,
		     struct dwarf_pack_row *row, uint32_t *next);

/* LEB128, unsigned. */
void dwarf_pack_put(struct strbuf *sb, uint32_t v);
/* 0 at the end. */
uint32_t dwarf_bytes_get(const struct dwarf_bytes *b, size_t *at);

#endif /* SYMBOLIZE_DWARF_PACK_H */
