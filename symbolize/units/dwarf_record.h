/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_record: tables of units that were read together, and their texts: all units of
 * a small file, one of a large one. It is one block, which is the same in memory and in
 * the cache on disk:
 *
 *	struct dwarf_record_head
 *	n times struct dwarf_record_table
 *	the texts, and zeros to a multiple of DWARF_TABLE_ALIGN
 *	the tables
 */
#ifndef SYMBOLIZE_DWARF_RECORD_H
#define SYMBOLIZE_DWARF_RECORD_H

#include <sys/queue.h>

#include "symbolize/dwarf/dwarf_table.h"

struct dwarf_record_head {
	uint32_t n;
	uint32_t texts_len;
};

struct dwarf_record_table {
	uint32_t unit; /* its index in the file */
	uint32_t at, len; /* in the block */
};

struct dwarf_record {
	TAILQ_ENTRY(dwarf_record) lru;
	bool kept; /* it need not be written to the cache, or must not be */
	uint32_t len; /* of the block */
	uint8_t bytes[] __attribute__((aligned(8)));
};

/* Tables that become one record. */
struct dwarf_making {
	struct dwarf_text texts;
	struct strbuf tables;
	struct dwarf_record_table *all; /* 'at' is in 'tables' */
	uint32_t n, cap;
};

/* Adds the table of a unit; -ENOMEM; -EFBIG. */
int dwarf_making_add(struct dwarf_making *m, uint32_t unit,
		     const struct dwarf_source *from);
/* Bytes of the record so far. */
size_t dwarf_making_bytes(const struct dwarf_making *m);
/* NULL: no memory, or 4 GiB and more. */
struct dwarf_record *dwarf_making_end(const struct dwarf_making *m);
void dwarf_making_fini(struct dwarf_making *m);

/* With room for a block of 'len' bytes, to be freed with free(3). NULL: no memory. */
struct dwarf_record *dwarf_record_new(uint32_t len);
/*
 * Whether all parts are in the block, for units below 'n_units'. What is in the tables
 * may be anything.
 */
bool dwarf_record_ok(const struct dwarf_record *r, uint32_t n_units);
uint32_t dwarf_record_count(const struct dwarf_record *r);
struct dwarf_record_table dwarf_record_at(const struct dwarf_record *r,
					  uint32_t i);
/* The table at this place. */
struct dwarf_table dwarf_record_table(const struct dwarf_record *r, uint32_t at,
				      uint32_t len,
				      const struct dwarf_bounds *bounds);

#endif /* SYMBOLIZE_DWARF_RECORD_H */
